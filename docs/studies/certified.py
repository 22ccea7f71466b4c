"""Errors and answers of the t-test and of betting over a whole family of real scores.

python -m docs.studies.certified DIR [DIR ...] [--replicates N]

Each DIR is a folder that `headroles score` or `headroles classify` wrote; its scores, all columns
of heads and roles together, are the population. Examples, or whole documents, are drawn from it
with replacement. In the cells "error" the threshold of each column is its own mean (for betting,
the weighted mean that it tests): all H0 are true at their limit, and any rejection of a family
after Holm is an error. In the cells "answers" thresholds are the default ones, answers are
corrected by Benjamini-Hochberg, and an answer is wrong where the mean of the population lies on the
other side.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from docs.studies.documents import markdown, rows_by_document, sample_of
from headroles import HeadScores
from headroles.arrays import FloatArray
from headroles.inference import (
    OK,
    Alternative,
    Bounds,
    Sample,
    adjust_p_values,
    bet,
    t_test,
)
from headroles.studies.heads import HeadColumns, hypotheses_of
from headroles.testing.options import TestOptions

SIDES: tuple[Alternative, ...] = ("greater", "less")
ALPHA = 0.05
SIZES = {"examples": (20, 100, 1000), "documents": (10, 20, 50, 300)}
METHODS = ("t", "betting")


@dataclass(frozen=True)
class Population:
    """All columns of a score set that can be tested, with their bounds and usual thresholds."""

    name: str
    values: NDArray[np.floating]
    bounds: Bounds
    documents: tuple[NDArray[np.intp], ...]
    thresholds: FloatArray

    @classmethod
    def load(cls, folder: Path) -> Population:
        """Load a population from a folder of scores."""
        scores = HeadScores.load(folder)
        tested = hypotheses_of(scores, HeadColumns.of(scores), TestOptions())
        if tested.bounds is None:
            raise SystemExit(f"{folder} has no bounds; score again")
        usable = np.flatnonzero(tested.sample.moments.status == OK)
        return cls(
            scores.score.name,
            tested.sample.values[:, usable],
            tested.bounds.take(usable),
            rows_by_document(scores),
            tested.threshold[usable],
        )

    def draw(self, size: int, by: str, rng: np.random.Generator) -> tuple[Sample, Bounds]:
        """Draw a sample with its bounds."""
        if by == "examples":
            rows, clusters = rng.integers(0, len(self.values), size), None
        else:
            drawn = rng.integers(0, len(self.documents), size)
            rows, clusters = sample_of(self.documents, drawn)
        low, high = self.bounds.low[rows], self.bounds.high[rows]
        return Sample.of(self.values[rows], clusters), replace(self.bounds, low=low, high=high)

    def means(self, by: str) -> dict[str, FloatArray]:
        """Return the mean that each method tests; in betting, weights depend on the threshold."""
        codes = np.arange(len(self.values))
        if by == "documents":
            for number, rows in enumerate(self.documents):
                codes[rows] = number
        sample = Sample.of(self.values, codes)
        mean = sample.moments.mean
        weighted = mean
        for _ in range(200):
            moved = betting_mean(sample, weighted, self.bounds)
            if np.abs(moved - weighted).max() < 1e-12:
                break
            weighted = moved
        return {"t": mean, "betting": weighted}


def betting_mean(sample: Sample, threshold: FloatArray, bounds: Bounds) -> FloatArray:
    """Return the weighted mean that betting on a threshold tests."""
    return bet(sample, threshold, bounds).mean


def p_values(
    method: str, sample: Sample, bounds: Bounds, threshold: FloatArray, side: Alternative
) -> FloatArray:
    """Return the p-value of each column (tests,)."""
    if method == "t":
        return t_test(sample, threshold, alternative=side).p_value
    return bet(sample, threshold, bounds).p_value(side)


def measure(
    population: Population, size: int, by: str, n_replicates: int
) -> Iterator[dict[str, Any]]:
    """Yield the cells of one kind of sample."""
    means = population.means(by)
    wrong: dict[str, list[bool]] = {}
    given: dict[str, list[float]] = {}
    rng = np.random.default_rng([size, len(by)])
    for _ in range(n_replicates):
        sample, bounds = population.draw(size, by, rng)
        for method in METHODS:
            for side in SIDES:
                p = p_values(method, sample, bounds, means[method], side)
                smallest = np.nanmin(adjust_p_values(p, "holm"))
                wrong.setdefault(f"{method}/{side}", []).append(bool(smallest <= ALPHA))
                p = p_values(method, sample, bounds, population.thresholds, side)
                answered = adjust_p_values(p, "fdr_bh") <= ALPHA
                above = population.thresholds < means[method]
                true = above if side == "greater" else ~above
                key = f"{method}/{'yes' if side == 'greater' else 'no'}"
                given.setdefault(f"{key}/given", []).append(float(answered.mean()))
                false = (answered & ~true).sum() / max(1, answered.sum())
                given.setdefault(f"{key}/wrong", []).append(float(false))
    cell = {"score": population.name, "size": size, "by": by, "replicates": n_replicates}
    yield {**cell, "kind": "error", **{name: float(np.mean(x)) for name, x in wrong.items()}}
    yield {**cell, "kind": "answers", **{name: float(np.mean(x)) for name, x in given.items()}}


def tables(cells: list[dict[str, Any]]) -> Iterator[str]:
    """Yield tables: errors of families, then answers."""
    names = [f"{method}/{side}" for method in METHODS for side in SIDES]
    yield markdown(
        ["score and sample", "replicates", *(name.replace("/", ", ") for name in names)],
        (
            [
                f"{cell['score']}, {cell['size']} {cell['by']}",
                str(cell["replicates"]),
                *(f"{100 * cell[name]:.1f}" for name in names),
            ]
            for cell in cells
            if cell["kind"] == "error"
        ),
    )
    names = [f"{method}/{answer}" for answer in ("yes", "no") for method in METHODS]
    yield markdown(
        ["score and sample", *(name.replace("/", ", ") for name in names)],
        (
            [
                f"{cell['score']}, {cell['size']} {cell['by']}",
                *(
                    f"{100 * cell[n + '/given']:.1f} ({100 * cell[n + '/wrong']:.2f})"
                    for n in names
                ),
            ]
            for cell in cells
            if cell["kind"] == "answers"
        ),
    )


def main() -> None:
    """Parse the command line; print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scores", type=Path, nargs="+", help="folders of scores")
    parser.add_argument("--replicates", type=int, default=200)
    given = parser.parse_args()
    cells = [
        cell
        for population in map(Population.load, given.scores)
        for by, sizes in SIZES.items()
        for size in sizes
        for cell in measure(population, size, by, given.replicates)
    ]
    for table in tables(cells):
        print(f"\n{table}")


if __name__ == "__main__":
    main()
