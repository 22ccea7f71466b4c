"""First choices of heads, and changes by norms.

python -m docs.studies.choices_and_norms --models DIR [DIR ...] --treebank FILE
    --relations LIST --scores FOLDER

Scores are saved in FOLDER, in a sub-folder for each model and kind; a second run reads them from
there. Tables, in markdown:

positional   heads that look one token back or ahead, at 0.9 and at 0.5, and their confidence
best         the best head of each relation, chosen on one half of the documents and counted on
             the other: share of arcs, beside that of the best fixed offset; by rows and by columns
rare         heads with the role rare, and the best one
tokens       shares of tokens of each kind by weights and by norms; correlations with frequency
norms        heads with each role by weights and by norms, and how many gain and lose it
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from docs.studies.roles import show
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

POSITIONS = ("position:-1", "position:+1")
HITS = ("position", "rare", "syntactic", "confidence")


def main() -> None:
    """Parse the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", required=True)
    parser.add_argument("--treebank", type=Path, required=True)
    parser.add_argument("--relations", required=True, help="with subtypes, separated by commas")
    parser.add_argument("--scores", type=Path, required=True, help="folder to keep scores in")
    arguments = parser.parse_args()
    kept = Kept(arguments.treebank, arguments.scores)
    asked: dict[str, Any] = {
        "score": "hit",
        "roles": HITS,
        "relations": arguments.relations,
        "keep_subtypes": True,
        "columns": True,
    }
    hits = {Path(model).name: kept.scores(model, "hit", **asked) for model in arguments.models}
    show("positional", pd.DataFrame(positional_rows(hits)).round(3))
    for name, scores in hits.items():
        show(f"best, {name}", best_heads(scores))
    show("rare", pd.DataFrame(rare_rows(hits)).round(3))
    for model in arguments.models:
        show(f"tokens, {Path(model).name}", kept.tokens(model).summary().reset_index().round(3))
    for model in arguments.models:
        weights, norms = (kept.scores(model, name, measure=name) for name in ("weights", "norms"))
        show(f"norms, {Path(model).name}", changes(weights, norms))


class Kept:
    """Results from a folder, or made and kept there."""

    def __init__(self, treebank: Path, folder: Path) -> None:
        self._treebank, self._folder = treebank, folder

    def scores(self, model: str, name: str, **options: Any) -> HeadScores:
        """Return the scores of a model over the treebank."""
        place = self._folder / f"{Path(model).name}-{name}"
        if not place.exists():
            score_heads(model, read_conllu(self._treebank), **options).save(place)
        return HeadScores.load(place)

    def tokens(self, model: str) -> TokenGroups:
        """Return the token groups of a model over the treebank."""
        place = self._folder / f"{Path(model).name}-tokens"
        if not place.exists():
            measure_token_groups(model, read_conllu(self._treebank)).save(place)
        return TokenGroups.load(place)


def positional_rows(hits: dict[str, HeadScores]) -> Iterator[dict[str, Any]]:
    """Yield positional heads of each model, tested alone, with their largest weights."""
    for name, scores in hits.items():
        own = scores.select(roles=POSITIONS)
        confidence = np.nanmean(scores.column("confidence"), axis=0)
        for role in POSITIONS:
            high, low = (
                assign_roles(own, threshold=threshold).heads_with(role) for threshold in (0.9, 0.5)
            )
            of_high = [confidence[layer * scores.n_heads + head] for layer, head in high]
            yield {
                "model": name,
                "role": role,
                "at 0.9": named(high),
                "at 0.5": len(low),
                "confidence": ", ".join(f"{one:.2f}" for one in of_high),
                "of all heads": confidence.mean(),
            }


def named(heads: list[tuple[int, int]]) -> str:
    """Name heads as layer-head."""
    return ", ".join(f"{layer}-{head}" for layer, head in heads)


def best_heads(scores: HeadScores) -> pd.DataFrame:
    """Tabulate the best head of each relation and reading: shares of arcs, and the gain."""
    frame = find_best_heads(scores).frame
    frame = frame[frame["half"] == 2]
    readings = {"to_governor": "to governor", "to_dependent": "to dependent"}
    columns: dict[str, list[str]] = {"relation": []}
    columns |= {name: [] for name in (*readings.values(), "by columns")}
    by_role = {row.role: row for row in frame.itertuples()}
    for role in by_role:
        relation, _, end = role.removeprefix("syntactic:").rpartition(":")
        if end != "to_governor":
            continue
        columns["relation"].append(f"{relation} ({by_role[role].arcs})")
        for reading, title in {**readings, "from_governor": "by columns"}.items():
            columns[title].append(described(by_role[f"syntactic:{relation}:{reading}"]))
    return pd.DataFrame(columns)


def described(row: Any) -> str:
    """Format the head, its share of arcs / that of the offset, and the interval of the gain."""
    return (
        f"{row.layer}-{row.head}: {row.share_of_arcs:.2f} / {row.offset_share_of_arcs:.2f} "
        f"({row.gain_ci_low:+.2f} to {row.gain_ci_high:+.2f})"
    )


def rare_rows(hits: dict[str, HeadScores]) -> Iterator[dict[str, Any]]:
    """Yield the head with most hits of the rarest word, and the number of heads at 0.5."""
    for name, scores in hits.items():
        means = np.nanmean(scores.column("rare"), axis=0)
        head = divmod(int(means.argmax()), scores.n_heads)
        heads = assign_roles(scores.select(roles=["rare"])).heads_with("rare")
        yield {
            "model": name,
            "best": named([head]),
            "hits": means.max(),
            "mean of heads": means.mean(),
            "heads with the role": len(heads),
        }


def changes(weights: HeadScores, norms: HeadScores) -> pd.DataFrame:
    """Tabulate for each role its heads by weights and by norms, and the tests of both."""
    shifts = compare_roles(weights, norms).frame
    before, after = (assign_roles(scores) for scores in (weights, norms))
    rows = []
    for role in before.roles:
        own = shifts[shifts["role"] == role]
        statuses = own["status"].value_counts()
        rows.append(
            {
                "role": role,
                "by weights": len(before.heads_with(role)),
                "by norms": len(after.heads_with(role)),
                "gained": int(statuses.get("gained", 0)),
                "lost": int(statuses.get("lost", 0)),
                "changed": int((own["change"] == "changed").sum()),
            }
        )
    return pd.DataFrame(rows)


if __name__ == "__main__":
    main()
