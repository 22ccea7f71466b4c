"""Many columns at once: t-tests and t intervals of means, tests of draws and of signs (McNemar)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from headroles.arrays import FloatArray
from headroles.inference.sample import (
    DEGENERATE,
    OK,
    Alternative,
    Sample,
    check_thresholds,
    check_values,
)


class TTest(NamedTuple):
    """Statistics and p-values (tests,), NaN for untestable and degenerate columns."""

    statistic: FloatArray
    p_value: FloatArray


def t_test(sample: Sample, threshold: ArrayLike, alternative: Alternative = "greater") -> TTest:
    """Test the mean of every column against the threshold.

    The statistic, (mean - threshold) / SE, is compared with t; `Sample` has the error and the
    degrees of freedom, which account for few clusters and for clusters of different sizes. Clusters
    of one example each give the ordinary t-test.

    Args:
        sample: values and their clusters.
        threshold: the mean under H0, at its limit: a number, or (tests,) one for each test.
        alternative: H1, the mean is ``"greater"`` or ``"less"`` than the threshold, or differs
            from it (``"two-sided"``).

    Raises:
        StatisticsError: ``threshold`` does not fit.

    >>> result = t_test(Sample.from_values([[3.4], [2.9], [4.1], [3.8], [3.0]]), threshold=3)
    >>> round(float(result.p_value[0]), 6)
    0.063746
    """
    distance = sample.moments.mean - check_thresholds(threshold, sample.n_tests)
    ok = sample.moments.status == OK
    statistic, p_value = np.full((2, sample.n_tests), np.nan)
    statistic[ok] = distance[ok] / sample.moments.standard_error[ok]
    p_value[ok] = p_of_t(statistic[ok], sample.moments.df[ok], alternative)
    return TTest(statistic, p_value)


def p_of_t(statistic: FloatArray, df: FloatArray, alternative: Alternative) -> FloatArray:
    """Return p-values of t statistics on ``df`` degrees of freedom."""
    from scipy import stats  # half a second to import

    if alternative == "two-sided":
        return np.asarray(2 * stats.t.sf(np.abs(statistic), df))
    return np.asarray(stats.t.sf(statistic if alternative == "greater" else -statistic, df))


class Intervals(NamedTuple):
    """Limits (tests,): NaN for untestable columns, the mean itself for degenerate ones."""

    ci_low: FloatArray
    ci_high: FloatArray


def open_intervals(sample: Sample) -> Intervals:
    """Create intervals whose limits of testable columns are still to be filled in."""
    low = np.where(sample.moments.status == DEGENERATE, sample.moments.mean, np.nan)
    return Intervals(low, low.copy())


def t_interval(sample: Sample, *, confidence: float = 0.95) -> Intervals:
    """Compute two-sided t intervals of the mean of every column separately."""
    from scipy import stats  # half a second to import

    moments, result = sample.moments, open_intervals(sample)
    ok = moments.status == OK
    reach = stats.t.ppf((1 + confidence) / 2, moments.df[ok]) * moments.standard_error[ok]
    result.ci_low[ok], result.ci_high[ok] = moments.mean[ok] - reach, moments.mean[ok] + reach
    return result


def rank_test(
    drawn: ArrayLike,
    observed: ArrayLike,
    rounding: ArrayLike = 0.0,
    alternative: Alternative = "greater",
) -> FloatArray:
    """Test whether each observation is larger, or smaller, than draws under H0.

    Exact if the observation and its draws are exchangeable under H0. The observation counts as one
    more draw, so that no p-value is 0 and the test keeps its level at any number of draws (Phipson
    and Smyth 2010). ``"two-sided"`` doubles the smaller of both p-values.

    Args:
        drawn: (draws, tests), NaN for draws that are missing.
        observed: (tests,).
        rounding: draws that differ by no more than this (tests,) from the observation tie with it.
        alternative: H1: the observation is ``"greater"`` or ``"less"`` than draws under H0.

    Returns:
        p-values (tests,), NaN without draws.

    Raises:
        StatisticsError: arrays that do not fit.

    >>> rank_test([[1.0], [2.0], [3.0]], [2.5]).tolist()
    [0.5]
    """
    values = check_values(drawn, "draws")
    limits = check_thresholds(observed, values.shape[1])
    n_draws = (~np.isnan(values)).sum(axis=0)
    slack = np.asarray(rounding, dtype=np.float64)
    above, below = (values >= limits - slack), (values <= limits + slack)
    greater, less = ((side.sum(axis=0) + 1) / (n_draws + 1) for side in (above, below))
    both = np.minimum(1, 2 * np.minimum(greater, less))
    p = {"greater": greater, "less": less, "two-sided": both}[alternative]
    return np.where(n_draws > 0, p, np.nan)


def draw_test(
    drawn: ArrayLike, observed: ArrayLike, alternative: Alternative = "greater"
) -> FloatArray:
    """Test whether each observation is larger, or smaller, than one more draw would be.

    By t: the observation less the mean of n draws has the variance s^2 (1 + 1/n) if it is one more
    of them. Exact for normal draws; five of them can have small p-values, unlike in `rank_test`,
    which decides where draws do not vary.

    Args, returned values and errors are those of `rank_test`.

    >>> draw_test([[1.0], [2.0], [3.0]], [7.0]).round(3).tolist()
    [0.025]
    """
    values = check_values(drawn, "draws")
    limits = check_thresholds(observed, values.shape[1])
    n = (~np.isnan(values)).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.nanstd(values, axis=0, ddof=1) * np.sqrt(1 + 1 / n)
        statistic = (limits - np.nanmean(values, axis=0)) / spread
    by_t = p_of_t(statistic, n - 1, alternative)
    by_rank = rank_test(values, limits, 0.0, alternative)
    return np.where((n > 1) & (spread > 0), by_t, by_rank)


def mcnemar_test(differences: ArrayLike) -> FloatArray:
    """Return two-sided p-values (tests,) of H0: as many differences are above 0 as below.

    Of the examples that only one classifier has right, half should belong to each (McNemar 1947),
    by the exact binomial test; without any such example p is 1.

    Args:
        differences: (examples, tests), 1 if only one is right, -1 if only the other is, else 0.

    >>> mcnemar_test([[1], [1], [1], [0]])
    array([0.25])
    """
    from scipy import stats  # half a second to import

    values = np.asarray(differences)
    gained, lost = (values > 0).sum(0), (values < 0).sum(0)
    fewer, total = np.minimum(gained, lost), gained + lost
    return np.asarray(np.minimum(1, 2 * stats.binom.cdf(fewer, total, 0.5)), dtype=np.float64)
