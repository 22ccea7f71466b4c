"""Roles of heads by correction, by score, by threshold, and beyond position.

python -m docs.studies.roles --models DIR [DIR ...] --treebank FILE --scores FOLDER
    [--permutations 10]

Scores are saved in FOLDER, in a sub-folder for each model and score; a second run reads them from
there. Tables, in markdown:

corrections   answers yes, no and undecided after each correction, for bias and excess
contrasts     heads with each syntactic role, and how many of them have its contrast too
scores        heads with each role by bias and by excess, each at its default threshold
thresholds    answers of excess at several thresholds, from which its default was chosen
permuted      contrasts of trees whose arcs were moved at random within their sentence, each with
              its offset: no head can know them, so rejections are errors
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headroles import HeadScores, RoleTable, assign_roles, read_conllu, score_heads
from headroles.corpus import DEFAULT_RELATIONS, Corpus, Skipped, fold_subtype
from headroles.corpus.sentence import ROOT, Sentence
from headroles.inference import Sample, adjust_p_values, t_test
from headroles.roles import contrast_of, is_contrast

CORRECTIONS = ("none", "fdr_bh", "fdr_by", "hochberg", "holm", "bonferroni")
THRESHOLDS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
SCORED = DEFAULT_RELATIONS["ud"]
SYNTACTIC = "syntactic"
"""All roles of arcs."""
BOTH = ("bias", "excess")
"""The scores that are compared."""


def main() -> None:
    """Parse the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", required=True)
    parser.add_argument("--treebank", type=Path, required=True)
    parser.add_argument("--scores", type=Path, required=True, help="folder to keep scores in")
    parser.add_argument("--permutations", type=int, default=10)
    arguments = parser.parse_args()
    corpus = read_conllu(arguments.treebank)
    kept = {
        (Path(model).name, score): scores_of(model, corpus, score, arguments.scores)
        for model in arguments.models
        for score in BOTH
    }
    show("corrections", pd.DataFrame(by_correction(kept)))
    show("contrasts", by_contrast({name: kept[name, "bias"] for name, _ in kept}))
    show("scores", by_score(kept))
    for name, score in kept:
        if score == "excess":
            show(f"thresholds of excess, {name}", by_threshold(kept[name, score]))
    show(
        "permuted",
        pd.DataFrame(
            permuted_row(model, corpus, seed)
            for model in arguments.models[:1]
            for seed in range(arguments.permutations)
        ),
    )


def show(title: str, table: pd.DataFrame) -> None:
    """Print a table in markdown."""
    print(f"\n{title}\n\n{table.to_markdown(index=False)}", flush=True)


def scores_of(model: str, corpus: Corpus, score: str, folder: Path) -> HeadScores:
    """Return scores from the folder; make and save them there first if necessary."""
    place = folder / f"{Path(model).name}-{score}"
    if not place.exists():
        score_heads(model, corpus, score=score).save(place)
    return HeadScores.load(place)


def by_correction(kept: dict[tuple[str, str], HeadScores]) -> Iterator[dict[str, object]]:
    """Count the answers yes, no and undecided of each correction."""
    for (model, score), scores in kept.items():
        for correction in CORRECTIONS:
            table = assign_roles(scores, correction=correction)
            answers = table.frame["answer"].value_counts()
            yield {
                "model": model,
                "score": score,
                "correction": correction,
                "tests": len(table),
                **{answer: int(answers.get(answer, 0)) for answer in ("yes", "no", "undecided")},
            }


def by_contrast(kept: dict[str, HeadScores]) -> pd.DataFrame:
    """Count heads whose mean is above the threshold, and those that have the role: the contrast
    is above its margin too.
    """
    columns: dict[str, list[str]] = {}
    for model, scores in kept.items():
        both = assign_roles(scores)
        roles = [role for role in both.roles if contrast_of(role) in scores.role_ids]
        alone = assign_roles(scores.select(roles=roles))
        columns["role"] = [*roles, "any of them"]
        columns[model] = [
            " -> ".join(str(len(set(table.heads_with(role)))) for table in (alone, both))
            for role in (*roles, SYNTACTIC)
        ]
    return pd.DataFrame(columns)


def by_score(kept: dict[tuple[str, str], HeadScores]) -> pd.DataFrame:
    """Count heads with each role by either score, and by both."""
    columns: dict[str, list[object]] = {}
    for model in dict.fromkeys(model for model, _ in kept):
        tables = {score: assign_roles(kept[model, score]) for score in BOTH}
        shared = [role for role in tables["bias"].roles if role in tables["excess"].roles]
        columns["role"] = list(shared)
        heads = {score: {r: set(t.heads_with(r)) for r in shared} for score, t in tables.items()}
        columns[f"{model}: bias, excess, both"] = [
            f"{len(heads['bias'][role])}, {len(heads['excess'][role])}, "
            f"{len(heads['bias'][role] & heads['excess'][role])}"
            for role in shared
        ]
    return pd.DataFrame(columns)


def by_threshold(scores: HeadScores) -> pd.DataFrame:
    """Tabulate answers at several thresholds, and the agreement of two halves of the documents.

    ``controls above`` is the share of the means that heads give to pairs at the offsets of arcs
    that are no arcs: what position alone brings about.
    """
    roles = [r.id for r in scores.roles if r.is_tested and not is_contrast(r.id)]
    values = np.concatenate([scores.column(role) for role in roles], axis=1)
    documents = np.asarray(scores.documents)
    names = np.random.default_rng(0).permutation(np.unique(documents))
    first = np.isin(documents, names[: len(names) // 2])
    halves = [np.nanmean(values[half], axis=0) for half in (first, ~first)]
    controls = control_means(scores)
    rows = []
    for threshold in THRESHOLDS:
        p = t_test(Sample.of(values, documents), threshold).p_value
        yes = adjust_p_values(p, "fdr_bh") <= 0.05
        no = adjust_p_values(1 - p, "fdr_bh") <= 0.05
        above = [half > threshold for half in halves]
        rows.append(
            {
                "threshold": threshold,
                "yes": int(yes.sum()),
                "undecided": int((~yes & ~no).sum()),
                "Jaccard of halves": (above[0] & above[1]).sum() / (above[0] | above[1]).sum(),
                "controls above": (controls > threshold).mean(),
            }
        )
    return pd.DataFrame(rows).round(3)


def control_means(scores: HeadScores) -> NDArray[np.float64]:
    """Return the mean of every head for the controls of every relation and direction.

    Nearly: the few arcs without a control are in the mean of a role and not in its contrast's.
    """
    means = []
    for role in scores.role_ids:
        if is_contrast(role) and role.count(":") == 3:
            contrast = np.nanmean(scores.column(role), axis=0)
            means.append(np.nanmean(scores.column(role.rsplit(":", 1)[0]), axis=0) - contrast)
    return np.concatenate(means)


def permuted_row(model: str, corpus: Corpus, seed: int) -> dict[str, object]:
    """Count rejections among the contrasts of moved arcs."""
    generator = np.random.default_rng(seed)

    def read(skipped: Skipped) -> Iterator[Sentence]:
        return (move_arcs(sentence, generator) for sentence in corpus.read(skipped))

    scores = score_heads(model, Corpus(corpus.source, read), controls="none")
    table: RoleTable = assign_roles(scores, distance_margin=0)
    contrasts = table.frame[table.frame["beyond_distance"].notna()]
    p = contrasts["p_beyond"].to_numpy()
    return {
        "seed": seed,
        "tests": len(p),
        "p <= 0.05": float((p <= 0.05).mean()),
        "p <= 0.01": float((p <= 0.01).mean()),
        "after fdr_bh": int((adjust_p_values(p, "fdr_bh") <= 0.05).sum()),
        "after holm": int((adjust_p_values(p, "holm") <= 0.05).sum()),
        "largest mean": float(contrasts["beyond_distance"].max()),
    }


def move_arcs(sentence: Sentence, generator: np.random.Generator) -> Sentence:
    """Move each scored arc to a random place that its offset allows.

    Arcs are moved one after the other, in random order, to dependents that are still free. Other
    arcs are left out: were every word to have a governor, arcs could no longer lie anywhere.
    """
    n = len(sentence.words)
    arcs = [
        (governor - dependent, sentence.relations[dependent])
        for dependent, governor in enumerate(sentence.governors)
        if governor >= 0 and fold_subtype(sentence.relations[dependent]) in SCORED
    ]
    governors, relations = [ROOT] * n, ["root"] * n
    for k in generator.permutation(len(arcs)).tolist():
        offset, relation = arcs[k]
        free = [d for d in range(max(0, -offset), min(n, n - offset)) if governors[d] == ROOT]
        if free:
            dependent = free[generator.integers(len(free))]
            governors[dependent], relations[dependent] = dependent + offset, relation
    return replace(sentence, governors=tuple(governors), relations=tuple(relations))


if __name__ == "__main__":
    main()
