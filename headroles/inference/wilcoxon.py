"""Wilcoxon's signed-rank test of many columns at once; missing values are ignored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headroles.arrays import FloatArray, IntArray
from headroles.inference._columns import OK, Alternative, check_alternative, check_thresholds
from headroles.inference._flipped import all_sign_flips
from headroles.inference.sample import Sample

_EXACT_UP_TO = 50
_ENUMERATED_UP_TO = 13


@dataclass(frozen=True)
class WilcoxonResult:
    """One entry per test, all arrays (tests,); NaN if undefined.

    ``n`` counts the values present and ``n_nonzero`` those that differ from the threshold.
    ``statistic`` is the sum of the ranks of the values above the threshold. ``effect_size`` is the
    matched-pairs rank-biserial correlation (Kerby 2014): the share of rank sums above the threshold
    less the share below, -1 to 1. ``status`` is that of `Moments`; a column of equal values has no
    p-value.
    """

    n: IntArray
    n_nonzero: IntArray
    statistic: FloatArray
    effect_size: FloatArray
    p_value: FloatArray
    status: NDArray[np.str_]


def wilcoxon_signed_rank(
    values: ArrayLike | Sample, threshold: ArrayLike, alternative: Alternative = "greater"
) -> WilcoxonResult:
    """Test whether every column is centred at the threshold, by signed ranks.

    H0: the values scatter symmetrically about the threshold. Values equal to the threshold are
    removed before ranking (Wilcoxon's own rule); ties share their mean rank. The p-value is exact
    without ties and zeros up to 50 values, and with them up to 13 values, by enumerating all signs;
    otherwise it comes from the normal approximation with the variance corrected for ties and no
    continuity correction. These are the rules of ``scipy.stats.wilcoxon`` for one column, applied
    to each column separately: in scipy one tied column changes the method of all.

    Examples count as independent; clusters are not supported.

    Args:
        values: a sample, whose clusters are ignored, or values for `Sample.of`.
        threshold: the centre under H0: a number, or (tests,) one for each test.
        alternative: ``"greater"``, ``"less"`` or ``"two-sided"``.

    Raises:
        StatisticsError: as `Sample.of`, or an unknown alternative.

    >>> float(wilcoxon_signed_rank([[3.4], [2.9], [4.1], [3.8], [3.2]], 3).p_value[0])
    0.0625
    """
    check_alternative(alternative)
    sample = Sample.of(values)
    status, n_tests = sample.moments.status, sample.n_tests
    centre = check_thresholds(threshold, n_tests)
    p_value, statistic, effect_size = (np.full(n_tests, np.nan) for _ in range(3))
    n_nonzero = np.zeros(n_tests, dtype=np.int64)
    for columns, present in sample.gaps:
        complete = sample.values[np.ix_(present, columns)].astype(np.float64)
        differences = complete - centre[columns]
        n_nonzero[columns] = (differences != 0).sum(axis=0)
        ok = status[columns] == OK
        tested, differences = columns[ok], differences[:, ok]
        if len(tested):
            ranks = _ranks(differences)
            statistic[tested] = above = np.where(differences > 0, ranks, 0).sum(axis=0)
            effect_size[tested] = 2 * above / ranks.sum(axis=0) - 1
            p_value[tested] = _p_values(differences, ranks, alternative)
    return WilcoxonResult(sample.moments.n, n_nonzero, statistic, effect_size, p_value, status)


def _ranks(differences: FloatArray) -> FloatArray:
    """Rank the distances (examples, tests); distances of 0 are not ranked and get 0."""
    from scipy import stats  # half a second to import

    distances = np.where(differences == 0, np.nan, np.abs(differences))
    return np.nan_to_num(stats.rankdata(distances, axis=0, nan_policy="omit"))


def _p_values(differences: FloatArray, ranks: FloatArray, alternative: Alternative) -> FloatArray:
    """Return p-values (tests,) of complete columns, with a method chosen for each column."""
    n = len(differences)
    ordered = np.sort(np.abs(differences), axis=0)
    tied = (ordered[0] == 0) | (np.diff(ordered, axis=0) == 0).any(axis=0)
    p = np.empty(differences.shape[1])
    if (~tied).any():
        p[~tied] = _by_scipy(differences[:, ~tied], n <= _EXACT_UP_TO, alternative)
    if tied.any() and n <= _ENUMERATED_UP_TO:
        p[tied] = _enumerated(differences[:, tied], ranks[:, tied], alternative)
    elif tied.any():
        p[tied] = _by_scipy(differences[:, tied], False, alternative)
    return p


def _by_scipy(differences: FloatArray, exact: bool, alternative: Alternative) -> FloatArray:
    from scipy import stats  # half a second to import

    method: Literal["exact", "asymptotic"] = "exact" if exact else "asymptotic"
    result = stats.wilcoxon(
        differences, alternative=alternative, method=method, axis=0, keepdims=True
    )
    return np.asarray(result.pvalue[0])


def _enumerated(differences: FloatArray, ranks: FloatArray, alternative: Alternative) -> FloatArray:
    """Return exact p-values over all signs of the ranks, whose sums are exact multiples of 1/2."""
    fold = {"greater": np.positive, "less": np.negative, "two-sided": np.abs}[alternative]
    observed = fold((np.sign(differences) * ranks).sum(axis=0))
    flips = all_sign_flips(len(ranks))
    reached = np.zeros(ranks.shape[1], dtype=np.int64)
    for signs in flips.chunks(ranks.shape[1]):
        reached += (fold(signs @ ranks) >= observed).sum(axis=0)
    return flips.p_values(reached)
