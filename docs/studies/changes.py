"""How often a comparison finds a change where there is none, and where it equals the margin.

python -m docs.studies.changes BEFORE AFTER [AFTER ...] [--tables N]

`headroles score` wrote all folders, over one corpus. Documents are drawn from it without
replacement; in each sample one of three null hypotheses is made true for all heads and roles:

* exchanged: before and after are exchanged in each document with probability 1/2, so that both are
  draws of one model, and no mean differs;
* shrunk: the differences that rose, or those that fell, are shrunk until the mean difference over
  the whole corpus is 0, which keeps their skewness;
* exchanged, or shrunk, at the margin: as above, and half of the columns are moved up, half down by
  the margin.

A cell is the share of tables with any change found, in %, and in brackets of rows: beyond the
margin, as `headroles compare` asks, and beside it by the same t-test against 0.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from docs.studies.documents import markdown
from headroles import HeadScores
from headroles.arrays import FloatArray
from headroles.studies.heads import HeadColumns
from headroles.testing.evidence import find_change
from headroles.testing.hypotheses import Hypotheses
from headroles.testing.options import TestOptions

SIZES = (10, 20, 50, 150)
NULLS = ("exchanged", "exchanged at the margin", "shrunk", "shrunk at the margin")


def shrunk(differences: FloatArray) -> FloatArray:
    """Return differences (examples, tests) whose means are 0, by shrinking one side."""
    rise, fall = (np.nansum(np.maximum(side * differences, 0), axis=0) for side in (1, -1))
    with np.errstate(invalid="ignore", divide="ignore"):
        up, down = (np.nan_to_num(np.minimum(rise, fall) / one) for one in (rise, fall))
    return differences * np.where(differences > 0, up, down)


def draw(
    differences: FloatArray, documents: NDArray[np.intp], size: int, rng: np.random.Generator
) -> tuple[NDArray[np.intp], FloatArray]:
    """Draw whole documents: rows, and a random sign for each row, shared by its document."""
    n = int(documents.max()) + 1
    rows = np.flatnonzero(np.isin(documents, rng.permutation(n)[:size]))
    return rows, rng.choice([-1.0, 1.0], n)[documents[rows], None]


def found(
    null: str, differences: FloatArray, margin: float, rows: NDArray[np.intp], signs: FloatArray
) -> FloatArray:
    """Return the differences of a sample (rows, tests) under a null hypothesis."""
    is_exchanged = null.startswith("exchanged")
    still = signs * differences[rows] if is_exchanged else shrunk(differences)[rows]
    sides = np.where(np.arange(still.shape[1]) % 2, margin, -margin)
    return still + sides if null.endswith("at the margin") else still


def errors(before: HeadScores, after: HeadScores, n_tables: int, seed: int) -> Iterator[list[str]]:
    """Yield a row for each null hypothesis and number of documents."""
    columns, margin = HeadColumns.of(before), before.score.margin
    differences = columns.values(after).astype(np.float64) - columns.values(before)
    documents = np.unique(np.asarray(before.documents), return_inverse=True)[1]
    rng = np.random.Generator(np.random.MT19937(seed))
    for null in NULLS:
        for size in (one for one in SIZES if one <= documents.max() + 1):
            shares = []
            for _ in range(n_tables):
                rows, signs = draw(differences, documents, size, rng)
                tested = Hypotheses.of(
                    found(null, differences, margin, rows, signs),
                    0,
                    size=2.0,
                    clusters=np.unique(documents[rows], return_inverse=True)[1],
                )
                changes = (find_change(tested, TestOptions(), one) for one in (margin, 0.0))
                shares.append([float(change.shows(0.05).mean()) for change in changes])
            of_rows = np.array(shares)
            cells = zip((of_rows > 0).mean(axis=0), of_rows.mean(axis=0), strict=True)
            yield [
                f"{null}, {size} documents",
                *(f"{100 * tables:.0f} ({100 * share:.2f})" for tables, share in cells),
            ]


def main() -> None:
    """Parse the command line; print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path, nargs="+")
    parser.add_argument("--tables", type=int, default=100)
    arguments = parser.parse_args()
    before = HeadScores.load(arguments.before)
    for folder in arguments.after:
        rows = list(errors(before, HeadScores.load(folder), arguments.tables, seed=24))
        names = ["no change, and sample", "beyond the margin", "against 0"]
        print(f"\n{folder.name}\n\n{markdown(names, rows)}", flush=True)


if __name__ == "__main__":
    main()
