"""Roles of heads by score, threshold and measure; first choices; tokens of each kind.

python -m docs.studies.roles --models DIR [DIR ...] --treebank FILE --scores FOLDER
    [--relations LIST] [--tables contrasts thresholds positional best rare tokens norms]

Results are saved in FOLDER, in a sub-folder for each model and kind, and read from there by a
second run. --relations are those of first choices, with subtypes. Tables, in Markdown:

contrasts    heads with a mean above the threshold of each role of arcs, and those with the role
thresholds   syntactic heads by threshold; for excess, agreement of two halves of the documents
positional   heads that look one token back or ahead, at 0.9 and at 0.5, and their confidence
best         the best head of each relation, chosen on one half of the documents and counted on
             the other: share of arcs, beside that of the best fixed offset; by rows and by columns
rare         heads with the role rare, and the best one
tokens       shares of tokens of each kind by weights and by norms; correlations with frequency
norms        heads with each role by weights and by norms, and how many gain and lose it
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from docs.studies.simulations import markdown
from headroles import (
    HeadScores,
    TokenGroups,
    assign_roles,
    compare_roles,
    find_best_heads,
    measure_token_groups,
    read_conllu,
    score_heads,
)
from headroles.roles import contrast_of
from headroles.studies.classification.assignment import assign
from headroles.studies.classification.role_table import AssignOptions

THRESHOLDS = {"bias": (2, 3, 4, 5, 8), "excess": (0.02, 0.05, 0.1, 0.15, 0.2)}
POSITIONS = ("position:-1", "position:+1")
RELATIONS = (
    "nsubj,nsubj:pass,obj,det,case,amod,advmod,aux,aux:pass,mark,ccomp,xcomp,conj,cop,compound,"
    "compound:prt,nummod,nmod:poss"
)
SYNTACTIC = "syntactic"
"""All roles of arcs."""
Rows = Iterator[dict[str, object]]


def main() -> None:
    """Parse the command line and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", nargs="+", required=True)
    parser.add_argument("--treebank", type=Path, required=True)
    parser.add_argument("--scores", type=Path, required=True, help="folder to keep results in")
    parser.add_argument("--relations", default=RELATIONS)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    given = parser.parse_args()
    results = Results(tuple(given.models), given.treebank, given.scores, given.relations)
    for name in given.tables:
        show(name, TABLES[name](results))


def show(title: str, rows: Rows) -> None:
    """Print a table in Markdown."""
    print(f"\n{title}\n\n{markdown(rows)}", flush=True)


@dataclass(frozen=True)
class Results:
    """Results of several models over a treebank: from a folder, or made and kept there."""

    models: tuple[str, ...]
    treebank: Path
    folder: Path
    relations: str

    def scores(self, model: str, kind: str) -> HeadScores:
        """Return scores: by ``bias`` or ``excess``, of first choices (``hit``), by ``norms``."""
        options: dict[str, dict[str, Any]] = {
            "bias": {},
            "excess": {"score": "excess"},
            "norms": {"measure": "norms"},
            "hit": {
                "score": "hit",
                "roles": ("position", "rare", "syntactic", "confidence"),
                "relations": self.relations,
                "keep_subtypes": True,
                "columns": True,
            },
        }
        place = self.folder / f"{Path(model).name}-{kind}"
        if not place.exists():
            score_heads(model, read_conllu(self.treebank), **options[kind]).save(place)
        return HeadScores.load(place)

    def of_each(self, *kinds: str) -> Iterator[tuple[str, str, HeadScores]]:
        """Yield the name of each model, the kind of scores and the scores."""
        for model in self.models:
            for kind in kinds:
                yield Path(model).name, kind, self.scores(model, kind)

    def tokens(self, model: str) -> TokenGroups:
        """Return the token groups of a model."""
        place = self.folder / f"{Path(model).name}-tokens"
        if not place.exists():
            measure_token_groups(model, read_conllu(self.treebank)).save(place)
        return TokenGroups.load(place)


def by_contrast(results: Results) -> Rows:
    """Count heads whose mean is above the threshold, and those that have the role."""
    for model, _, scores in results.of_each("bias"):
        table = assign_roles(scores)
        roles = [role for role in table.roles if contrast_of(role) in scores.role_ids]
        alone = assign(scores.select(roles=roles), AssignOptions(), {})
        for role in (*roles, SYNTACTIC):
            of_mean, both = (len(set(one.heads_with(role))) for one in (alone, table))
            yield {"model": model, "role": role, "mean": of_mean, "with the role": both}


def by_threshold(results: Results) -> Rows:
    """Count syntactic heads, all answers, and how alike two halves of the documents are."""
    for model, kind, scores in results.of_each(*THRESHOLDS):
        names = np.random.default_rng(0).permutation(np.unique(scores.documents))
        first = np.isin(scores.documents, names[: len(names) // 2])
        halves = [scores.select(np.flatnonzero(half)) for half in (first, ~first)]
        for threshold in THRESHOLDS[kind]:
            table = assign_roles(scores, threshold=threshold)
            has = [assign_roles(half, threshold=threshold).wide() for half in halves]
            one, other = (table.select_dtypes("bool").to_numpy() for table in has)
            yield {
                "model": model,
                "score": kind,
                "threshold": threshold,
                "syntactic heads": len(set(table.heads_with(SYNTACTIC))),
                "yes": int((table.frame["answer"] == "yes").sum()),
                "undecided": int((table.frame["answer"] == "undecided").sum()),
                "Jaccard of halves": round((one & other).sum() / (one | other).sum(), 2),
            }


def positional(results: Results) -> Rows:
    """Yield positional heads of each model, tested alone, with their largest weights."""
    for model, _, scores in results.of_each("hit"):
        own = scores.select(roles=POSITIONS)
        confidence = np.nanmean(scores.column("confidence"), axis=0)
        high, low = (assign_roles(own, threshold=threshold) for threshold in (0.9, 0.5))
        for role in POSITIONS:
            heads = high.heads_with(role)
            of_high = [confidence[layer * scores.n_heads + head] for layer, head in heads]
            yield {
                "model": model,
                "role": role,
                "at 0.9": named(heads),
                "at 0.5": len(low.heads_with(role)),
                "confidence": ", ".join(f"{one:.2f}" for one in of_high),
                "of all heads": f"{confidence.mean():.2f}",
            }


def named(heads: list[tuple[int, int]]) -> str:
    """Name heads as layer-head."""
    return ", ".join(f"{layer}-{head}" for layer, head in heads)


def best(results: Results) -> Rows:
    """Yield the best head and rules of each relation and reading, and the gains over rules."""
    readings = {
        "to_governor": "to governor",
        "to_dependent": "to dependent",
        "from_governor": "by columns",
    }
    for model, _, scores in results.of_each("hit"):
        frame = find_best_heads(scores).frame
        by_role = {row.role: row for row in frame[frame["half"] == 2].itertuples()}
        for role, own in by_role.items():
            relation, _, end = role.removeprefix("syntactic:").rpartition(":")
            if end == "to_governor":
                cells = {
                    title: described(by_role[f"syntactic:{relation}:{reading}"])
                    for reading, title in readings.items()
                }
                rule = {"class rule, to governor": own.class_rule}
                yield {"model": model, "relation": f"{relation} ({own.arcs})", **cells, **rule}


def described(row: Any) -> str:
    """Format the head, the shares of arcs of head / offset / class rule, and both gains."""
    return (
        f"{row.layer}-{row.head}: {row.share_of_arcs:.3f} / {row.offset_share_of_arcs:.3f} / "
        f"{row.class_share_of_arcs:.3f} ({row.gain_ci_low:+.2f} to {row.gain_ci_high:+.2f}; "
        f"{row.class_gain_ci_low:+.2f} to {row.class_gain_ci_high:+.2f})"
    )


def rare(results: Results) -> Rows:
    """Yield the head with most hits of the rarest word, and the number of heads at 0.5."""
    for model, _, scores in results.of_each("hit"):
        means = np.nanmean(scores.column("rare"), axis=0)
        yield {
            "model": model,
            "best": named([divmod(int(means.argmax()), scores.n_heads)]),
            "hits": round(float(means.max()), 3),
            "mean of heads": round(float(means.mean()), 3),
            "heads": len(assign_roles(scores.select(roles=["rare"])).heads_with("rare")),
        }


def tokens(results: Results) -> Rows:
    """Yield shares of each kind of token."""
    for model in results.models:
        for row in results.tokens(model).summary().reset_index().round(3).to_dict("records"):
            yield {"model": Path(model).name, **{str(key): cell for key, cell in row.items()}}


def norms(results: Results) -> Rows:
    """Count the heads with each role by weights and by norms, and those that gain and lose it."""
    for model in results.models:
        scores = [results.scores(model, kind) for kind in ("bias", "norms")]
        statuses = compare_roles(*scores).frame.groupby("role")["status"].value_counts()
        before, after = map(assign_roles, scores)
        for role in before.roles:
            yield {
                "model": Path(model).name,
                "role": role,
                "weights": len(before.heads_with(role)),
                "norms": len(after.heads_with(role)),
                **{name: int(statuses.get((role, name), 0)) for name in ("gained", "lost")},
            }


TABLES: dict[str, Callable[[Results], Rows]] = {
    "contrasts": by_contrast,
    "thresholds": by_threshold,
    "positional": positional,
    "best": best,
    "rare": rare,
    "tokens": tokens,
    "norms": norms,
}

if __name__ == "__main__":
    main()
