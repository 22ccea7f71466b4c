"""Permutation tests within strata."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headroles.errors import StatisticsError


def permutation_test_within(
    values: ArrayLike,
    marked: ArrayLike,
    strata: ArrayLike,
    n_resamples: int = 9999,
    seed: int = 0,
) -> tuple[float, float]:
    """Whether marked units have other values than the rest of their strata: difference, p-value.

    The difference is the mean, over marked units, of the value less the mean of the stratum. Under
    H0 marks are exchangeable within each stratum; p is two-sided, (1 + b) / (1 + n_resamples) with
    b permutations at least as far from 0 (Phipson and Smyth 2010). Strata in which all units or
    none are marked tell nothing. NaN, NaN if none tells anything.

    Args:
        values: (units,).
        marked: (units,) whether each unit is marked.
        strata: (units,) integer label of each unit's stratum.
        n_resamples: number of permutations.
        seed: of the permutations.

    Raises:
        StatisticsError: arguments of different lengths, or values that are not finite.
    """
    numbers = np.asarray(values, dtype=np.float64)
    marks, labels = np.asarray(marked, dtype=bool), np.asarray(strata)
    if not numbers.shape == marks.shape == labels.shape or numbers.ndim != 1:
        raise StatisticsError("values, marks and strata must be of one length")
    if not np.isfinite(numbers).all():
        raise StatisticsError("values must be finite; leave out units without one")
    rng = np.random.default_rng(seed)
    observed, drawn, n_marked = 0.0, np.zeros(n_resamples), 0
    for label in np.unique(labels):
        own = labels == label
        count = int(marks[own].sum())
        if count in (0, own.sum()):
            continue
        centred: NDArray[np.float64] = numbers[own] - numbers[own].mean()
        observed += centred[marks[own]].sum()
        order = rng.random((n_resamples, len(centred))).argpartition(count - 1, axis=1)[:, :count]
        drawn += centred[order].sum(axis=1)
        n_marked += count
    if not n_marked:
        return np.nan, np.nan
    tolerance = 1e-12 * np.abs(numbers).max()
    extreme = int((np.abs(drawn) >= abs(observed) - tolerance).sum())
    return observed / n_marked, (1 + extreme) / (1 + n_resamples)
