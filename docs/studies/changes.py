"""Changes that `compare` finds where nothing changed, and after fine-tuning.

python -m docs.studies.changes BEFORE AFTER [AFTER ...] [--tables N]

`headroles score` wrote the folders, for one corpus and models of one architecture. For the first
table the study undoes the changes: for every head and role it moves the examples that rose, or
those that fell, back towards their score before until the mean over the corpus is what it was;
differences stay as skewed, bounded and correlated as they are. For t this is the mean over
examples, for betting the weighted mean that it tests. Documents are then drawn without replacement,
and any row that changed is wrong. The second table has the changes found in the original scores.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from docs.studies.calibration_tables import markdown
from headroles import HeadScores, RoleShifts, compare_roles
from headroles.arrays import FloatArray
from headroles.inference import adjust_p_values

ALPHA = 0.05
SIZES = (20, 50, 150)
SHOWN = ("changed", "trivial")


def weights_of_bets(scores: HeadScores) -> FloatArray:
    """Return (examples, 1, 1, roles): equal for documents, smaller for far bounds."""
    widths = np.diff(scores.bounds.astype(float), axis=-1)[..., 0]
    weights = np.minimum(1, 10 * scores.score.margin / widths)
    documents = np.unique(np.asarray(scores.documents), return_inverse=True)[1]
    there = ~np.isnan(widths)
    sizes = np.stack([np.bincount(documents, own) for own in there.T], axis=1)[documents]
    return np.where(there, weights / np.maximum(sizes, 1), 0)[:, None, None]


def unchanged(before: HeadScores, after: HeadScores, weights: FloatArray | float) -> HeadScores:
    """Return scores after, moved until their weighted mean differences are all 0."""
    differences = np.nan_to_num(after.values.astype(float) - before.values)
    rise = (weights * np.maximum(differences, 0)).sum(axis=0)
    fall = (weights * np.maximum(-differences, 0)).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = [np.nan_to_num(np.minimum(rise, fall) / one) for one in (rise, fall)]
    moved = differences * np.where(differences > 0, *shares)
    return replace(after, values=(before.values + moved).astype(np.float32))


def draws(
    documents: tuple[str, ...], size: int, n: int, rng: np.random.Generator
) -> Iterator[NDArray[np.intp]]:
    """Yield rows of whole documents, drawn without replacement."""
    labels = np.asarray(documents)
    names = np.unique(labels)
    for _ in range(n):
        yield np.flatnonzero(np.isin(labels, rng.permutation(names)[:size]))


def errors(
    before: HeadScores, after: HeadScores, n_tables: int, rng: np.random.Generator
) -> Iterator[list[str]]:
    """Yield the shares of tables with a wrong change, and of wrong changes in all rows, %."""
    for size in SIZES:
        found: dict[str, list[float]] = {}
        for method in ("t", "betting") if "certified" in RoleShifts.columns else ("t",):
            weights = 1.0 if method == "t" else weights_of_bets(before)
            still = unchanged(before, after, weights)
            for rows in draws(before.documents, size, n_tables, rng):
                frame = compare_roles(before.select(rows), still.select(rows)).frame
                p = frame["p_value"].to_numpy()
                own = {name: adjust_p_values(p, name) <= ALPHA for name in ("fdr_bh", "holm")}
                if method == "betting":
                    own = {"certified": frame["certified"].isin(SHOWN).to_numpy()}
                for name, wrong in own.items():
                    found.setdefault(name, []).append(float(wrong.mean()))
        wrong_rows = {name: 100 * np.mean(own) for name, own in found.items()}
        wrong_tables = {name: 100 * np.mean(np.array(own) > 0) for name, own in found.items()}
        yield [
            str(size),
            *(f"{wrong_tables[name]:.0f} ({wrong_rows[name]:.2f})" for name in found),
        ]


def changes(before: HeadScores, after: HeadScores) -> Iterator[list[str]]:
    """Yield the changes found in all documents, and by examples."""
    for clusters in ("document", "none"):
        frame = compare_roles(before, after, clusters=clusters).frame
        certified = frame.get("certified", frame["change"].where(frame["n"] < 0, ""))
        numbers = [
            len(frame),
            *((frame["change"] == word).sum() for word in (*SHOWN, "equivalent")),
            *(((frame["change"] == word) & certified.isin(SHOWN)).sum() for word in SHOWN),
            (certified.isin(SHOWN) & ~frame["changed"]).sum(),
            certified.isin(("equivalent", "trivial")).sum(),
        ]
        yield [clusters, *map(str, numbers)]


def main() -> None:
    """Parse the command line; print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path, nargs="+")
    parser.add_argument("--tables", type=int, default=100)
    arguments = parser.parse_args()
    rng = np.random.Generator(np.random.MT19937(24))
    before = HeadScores.load(arguments.before)
    for folder in arguments.after:
        after = HeadScores.load(folder)
        rows = list(errors(before, after, arguments.tables, rng))
        names = ["documents", "t, fdr_bh", "t, holm", "certified"]
        print(f"\n{folder.name}: nothing changed\n\n{markdown(names, rows)}", flush=True)
        names = ["by", "tests", *SHOWN, "equivalent", *(f"certified of {one}" for one in SHOWN)]
        names += ["certified beside", "certified equivalent or trivial"]
        print(f"\n{folder.name}: as it is\n\n{markdown(names, list(changes(before, after)))}")


if __name__ == "__main__":
    main()
