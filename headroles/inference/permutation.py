"""Permutations within strata."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from headroles.errors import StatisticsError
from headroles.inference._columns import FloatArray


def permute_within(
    values: ArrayLike,
    marked: ArrayLike,
    strata: ArrayLike,
    n_resamples: int = 9999,
    seed: int = 0,
) -> tuple[float, FloatArray]:
    """Return how much marked units differ from the rest of their strata, and at random.

    The difference is the mean, over marked units, of the value less the mean of the stratum. Under
    H0 marks are exchangeable within each stratum. Strata in which all units or none are marked are
    ignored.

    Args:
        values: (units,).
        marked: (units,) whether each unit is marked.
        strata: (units,) integer label of each unit's stratum.
        n_resamples: number of permutations.
        seed: of the permutations.

    Returns:
        The difference, and those of permuted marks (n_resamples,); NaN if all strata are ignored.

    Raises:
        StatisticsError: arguments of different lengths, or values that are not finite.
    """
    numbers = np.asarray(values, dtype=np.float64)
    marks, labels = np.asarray(marked, dtype=bool), np.asarray(strata)
    if not numbers.shape == marks.shape == labels.shape or numbers.ndim != 1:
        raise StatisticsError("values, marks and strata have different lengths; give one per unit")
    if not np.isfinite(numbers).all():
        raise StatisticsError("values must be finite; remove units without one")
    rng = np.random.default_rng(seed)
    observed, drawn, n_marked = 0.0, np.zeros(n_resamples), 0
    for label in np.unique(labels):
        own = labels == label
        count = int(marks[own].sum())
        if count in (0, own.sum()):
            continue
        centred: FloatArray = numbers[own] - numbers[own].mean()
        observed += centred[marks[own]].sum()
        order = rng.random((n_resamples, len(centred))).argpartition(count - 1, axis=1)[:, :count]
        drawn += centred[order].sum(axis=1)
        n_marked += count
    n = n_marked or np.nan
    return observed / n, drawn / n
