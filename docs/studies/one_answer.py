"""One answer for mean and contrast together: errors and power, and what the margin does.

python -m docs.studies.one_answer SCORES [--tables N] [--moved MODEL TREEBANK --seeds N]

`headroles score` wrote SCORES. Documents are drawn from it with replacement; the means of all
documents are the truth: a head has a role of arcs if its mean is above the threshold and its
contrast above the margin. Rules:

* one answer: the larger p-value of both, one test of a row, corrected with all other roles;
* two rows: mean and contrast are rows of one family, and a head needs yes in both.

Power is the share of the true rows that a rule finds. Where "half at the limit", a random half of
the rows of arcs is moved so that the mean lies exactly at the threshold or the contrast exactly at
the margin, by turns, and the other of the two well above it: the most wrong answers that H0 allows.

With ``--moved`` arcs of the treebank are moved at random within their sentence, each with its
offset, as in `docs.studies.roles`: no head can know them, so every role of such arcs that a head is
said to have is an error. A row for each margin, in parts of the usual one.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from docs.studies.documents import rows_by_document, sample_of
from docs.studies.roles import move_arcs, show
from headroles import HeadScores, assign_roles, read_conllu, score_heads
from headroles.arrays import BoolArray, FloatArray
from headroles.corpus import Corpus, Skipped
from headroles.corpus.sentence import Sentence
from headroles.inference import Sample, adjust_p_values, t_test
from headroles.roles import contrast_of

ALPHA = 0.05
SIZES = (20, 50, 150)
MARGINS = (0.0, 0.25, 0.5, 1.0)


class Arcs:
    """Scores of a family of tests: means of all roles, contrasts of the roles of arcs."""

    def __init__(self, scores: HeadScores) -> None:
        table = assign_roles(scores).frame
        role_ids = list(scores.role_ids)
        heads = [table["layer"].to_numpy(), table["head"].to_numpy()]

        def columns(rows: BoolArray, ids: list[str]) -> FloatArray:
            places = np.array([role_ids.index(name) for name in ids])
            return scores.values[:, heads[0][rows], heads[1][rows], places].astype(np.float64)

        names = [str(role) for role in table["role"]]
        self.of_arcs = np.array([contrast_of(role) in role_ids for role in names])
        self.means = columns(np.ones(len(names), dtype=bool), names)
        chosen = [name for name, has in zip(names, self.of_arcs, strict=True) if has]
        self.contrasts = columns(self.of_arcs, [contrast_of(name) for name in chosen])
        self.thresholds = table["threshold"].to_numpy(dtype=np.float64)
        self.margin = scores.score.margin
        self.documents = rows_by_document(scores)

    def move_to_limits(self, rng: np.random.Generator) -> None:
        """Move half of the rows of arcs to the limit of H0; the other requirement holds by far."""
        moved = rng.permutation(len(self.contrasts.T))[: len(self.contrasts.T) // 2]
        at_mean, at_contrast = moved[::2], moved[1::2]
        means = self.means[:, self.of_arcs]
        thresholds = self.thresholds[self.of_arcs]
        for values, limits, exactly, far in (
            (means, thresholds, at_mean, at_contrast),
            (self.contrasts, np.full(len(thresholds), self.margin), at_contrast, at_mean),
        ):
            center, spread = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
            values[:, exactly] += (limits - center)[exactly]
            values[:, far] += (limits - center + 2 * spread)[far]
        self.means[:, self.of_arcs] = means

    @property
    def truth(self) -> BoolArray:
        """Whether the head of each row has the role; a mean at its limit is not above it."""
        truth: BoolArray = np.nanmean(self.means, axis=0) > self.thresholds + 1e-9
        truth[self.of_arcs] &= np.nanmean(self.contrasts, axis=0) > self.margin + 1e-9
        return truth

    def answers(self, drawn: np.ndarray) -> dict[str, BoolArray]:
        """Return which rows get yes in a sample of documents, by rule."""
        rows, clusters = sample_of(self.documents, drawn)
        p_mean = t_test(Sample.of(self.means[rows], clusters), self.thresholds).p_value
        p_contrast = t_test(Sample.of(self.contrasts[rows], clusters), self.margin).p_value
        together = p_mean.copy()
        together[self.of_arcs] = np.maximum(p_mean[self.of_arcs], p_contrast)
        apart = adjust_p_values(np.concatenate([p_mean, p_contrast]), "fdr_bh") <= ALPHA
        of_means, of_contrasts = np.split(apart, [len(p_mean)])
        of_means[self.of_arcs] &= of_contrasts
        return {
            "one answer": adjust_p_values(together, "fdr_bh") <= ALPHA,
            "two rows": of_means,
        }


def errors_and_power(folder: Path, n_tables: int) -> Iterator[dict[str, object]]:
    """Yield a row for each null hypothesis, number of documents, and rule."""
    scores = HeadScores.load(folder)
    rng = np.random.Generator(np.random.Philox(11))
    for null in ("as scored", "half at the limit"):
        arcs = Arcs(scores)
        if null != "as scored":
            arcs.move_to_limits(rng)
        truth = arcs.truth
        for size in (size for size in SIZES if size <= len(arcs.documents)):
            counts: dict[str, list[tuple[float, ...]]] = {}
            for _ in range(n_tables):
                drawn = rng.integers(0, len(arcs.documents), size)
                for rule, yes in arcs.answers(drawn).items():
                    wrong = yes & ~truth
                    of_arcs = [row[arcs.of_arcs] for row in (yes, truth, wrong)]
                    counts.setdefault(rule, []).append(
                        (
                            of_arcs[0][of_arcs[1]].mean(),
                            of_arcs[2].sum() / max(of_arcs[0].sum(), 1),
                            wrong.sum() / max(yes.sum(), 1),
                        )
                    )
            for rule, found in counts.items():
                power, false_arcs, false_all = 100 * np.mean(found, axis=0)
                yield {
                    "rows": f"{null}, {size} documents",
                    "rule": rule,
                    "power": f"{power:.1f}",
                    "wrong among yes of arcs": f"{false_arcs:.2f}",
                    "among all yes": f"{false_all:.2f}",
                }


def moved(model: str, treebank: Path, seeds: int) -> Iterator[dict[str, object]]:
    """Yield a row for each margin: roles that heads are said to have of arcs that were moved."""
    corpus = read_conllu(treebank)
    counts: dict[float, list[tuple[float, ...]]] = {}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)

        def read(skipped: Skipped, rng: np.random.Generator = rng) -> Iterator[Sentence]:
            return (move_arcs(sentence, rng) for sentence in corpus.read(skipped))

        scores = score_heads(model, Corpus(corpus.source, read))
        for part in MARGINS:
            frame = assign_roles(scores, distance_margin=part * scores.score.margin).frame
            tested = frame[frame["p_beyond"].notna()]
            has = tested[tested["assigned"]]
            above = (tested["p_beyond"] <= ALPHA).mean()
            heads = len(has[["layer", "head"]].drop_duplicates())
            counts.setdefault(part, []).append((100 * above, len(has), heads, heads > 0))
    for part, found in counts.items():
        single, rows, heads, tables = np.mean(found, axis=0)
        yield {
            "margin": part * scores.score.margin,
            "contrasts above, single tests": f"{single:.2f} %",
            "roles of moved arcs": f"{rows:.2f}",
            "heads": f"{heads:.2f}",
            "tables with one": f"{100 * tables:.0f} %",
        }


def main() -> None:
    """Parse the command line; print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scores", type=Path, nargs="*")
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--moved", nargs=2, metavar=("MODEL", "TREEBANK"))
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args()
    for folder in given.scores:
        show(folder.name, pd.DataFrame(errors_and_power(folder, given.tables)))
    if given.moved:
        model, treebank = given.moved
        show("moved arcs", pd.DataFrame(moved(model, Path(treebank), given.seeds)))


if __name__ == "__main__":
    main()
