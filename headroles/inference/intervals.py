"""Confidence intervals of means: of skewed values, of shares and of their differences."""

from __future__ import annotations

import numpy as np

from headroles.arrays import FloatArray
from headroles.errors import StatisticsError
from headroles.inference.one_sample import Intervals, open_intervals
from headroles.inference.sample import (
    OK,
    UNTESTABLE,
    Sample,
    resolution_of,
)

_LEAST_SKEWNESS = 1e-3
"""Skewness below which the transformation is the identity, up to rounding."""


def skewed_interval(sample: Sample, *, confidence: float = 0.95) -> Intervals:
    """Compute two-sided intervals of means of skewed values >= 0, for each column separately.

    Hall (1992), "On the removal of skewness by transformation": w = (mean - mu) / sd becomes
    symmetric, up to terms of order 1 / n, as

        g(w) = w + c w^2 / 3 + c^2 w^3 / 27 + c / (6 n)

    with the skewness c, and the limits come from the inverse of g at quantiles of t. Since samples
    underestimate long tails, c is estimated with one more value, twice as far from the mean as the
    largest.

    Limits are NaN for untestable columns, the mean for degenerate ones.

    Raises:
        StatisticsError: clusters, some values of a column missing, or values below 0.
    """
    from scipy import stats  # half a second to import

    moments, result = sample.moments, open_intervals(sample)
    ok = moments.status == OK
    values = sample.values[:, ok].astype(np.float64)
    if sample.n_clusters < sample.n_examples or np.isnan(values).any() or (values < 0).any():
        raise StatisticsError(
            "values are clustered, missing or negative; give independent values >= 0"
        )
    n = len(values)
    farther = 2 * values.max(axis=0, initial=0) - moments.mean[ok]
    skewness = stats.skew(np.concatenate([values, farther[None]]))
    reach = stats.t.ppf((1 + confidence) / 2, n - 1) / np.sqrt(n)
    low, high = (_inverse(place, skewness, n) * moments.sd[ok] for place in (reach, -reach))
    result.ci_low[ok] = np.maximum(0, moments.mean[ok] - low)
    result.ci_high[ok] = moments.mean[ok] - high
    return result


def _inverse(place: float, skewness: FloatArray, n: int) -> FloatArray:
    """Return the w for which g(w) is ``place``."""
    c = np.maximum(skewness, _LEAST_SKEWNESS)
    return np.asarray(3 * (np.cbrt(1 + c * (place - c / (6 * n))) - 1) / c)


def wilson_interval(sample: Sample, *, confidence: float = 0.95) -> Intervals:
    """Compute two-sided Wilson intervals of the mean of every column of shares.

    The interval contains the shares p whose distance from the mean m is at most t times their
    standard error, sqrt(p (1 - p) / n). Here n is the effective sample size: the number of
    independent hits and misses with the cluster-robust standard error of the mean,

        n = m (1 - m) / error^2

    and t has the degrees of freedom of that error (Dean and Pagano 2015). If all values of a column
    are equal, such as only hits, they do not show the error, and n is the number of clusters.
    Limits are NaN for untestable columns.

    Raises StatisticsError for values outside 0 to 1.
    """
    from scipy import stats  # half a second to import

    _check_range(sample, 0, "a value lies outside 0 to 1; give shares for Wilson intervals")
    moments, result = sample.moments, open_intervals(sample)
    some = moments.status != UNTESTABLE
    m, error, n = (
        array[some]
        for array in (np.clip(moments.mean, 0, 1), moments.standard_error, moments.n_clusters)
    )
    tells = (moments.status[some] == OK) & (m * (1 - m) > 0)
    # the number of independent examples that would have this error
    n = np.divide(m * (1 - m), error**2, where=tells, out=n.astype(np.float64))
    per_n = stats.t.ppf((1 + confidence) / 2, moments.df[some]) ** 2 / n
    centre = (m + per_n / 2) / (1 + per_n)
    reach = np.sqrt(per_n * m * (1 - m) + per_n**2 / 4) / (1 + per_n)
    result.ci_low[some] = np.maximum(centre - reach, 0)  # rounding
    result.ci_high[some] = np.minimum(centre + reach, 1)
    return result


def difference_interval(sample: Sample, *, confidence: float = 0.95) -> Intervals:
    """Compute two-sided intervals of the mean of columns of differences of shares, -1 to 1.

    The mean difference d is the gain, w = mean of max(value, 0), less the loss, l = mean of
    max(-value, 0). Both are shares with Wilson limits (`wilson_interval`), which square-and-add
    combines (Newcombe 1998, method 10; Zou and Donner 2008):

        lower = d - sqrt((w - w_low)^2 - 2 r (w - w_low) (l_high - l) + (l_high - l)^2)
        upper = d + sqrt((w_high - w)^2 - 2 r (w_high - w) (l - l_low) + (l - l_low)^2)

    where r is the cluster-robust correlation of w and l. If two classifiers differ in hardly any
    example, t intervals have no data for an error; Wilson limits of gain and loss exist even then.
    Limits are NaN for untestable columns.

    Raises StatisticsError for values outside -1 to 1.
    """
    _check_range(sample, -1, "a value lies outside -1 to 1; give differences of shares")
    # shares that agree up to rounding are neither won nor lost
    is_rounding = np.abs(sample.values) < resolution_of(sample.values)
    differences = np.where(is_rounding, 0, sample.values)
    won, lost = (Sample(np.maximum(side * differences, 0), sample.clusters) for side in (1, -1))
    of_won, of_lost = (wilson_interval(part, confidence=confidence) for part in (won, lost))
    wins, losses, r = won.moments.mean, lost.moments.mean, _correlation(sample, won, lost)

    def reach(on_won: FloatArray, on_lost: FloatArray) -> FloatArray:
        return np.sqrt(np.maximum(on_won**2 - 2 * r * on_won * on_lost + on_lost**2, 0))

    low = wins - losses - reach(wins - of_won.ci_low, of_lost.ci_high - losses)
    high = wins - losses + reach(of_won.ci_high - wins, losses - of_lost.ci_low)
    return Intervals(np.maximum(low, -1), np.minimum(high, 1))


def _correlation(difference: Sample, first: Sample, second: Sample) -> FloatArray:
    """Return the correlation of two means (tests,), from their errors and their difference's."""
    both, a, b = (part.moments.standard_error for part in (difference, first, second))
    varies = (first.moments.status == OK) & (second.moments.status == OK)
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = (a**2 + b**2 - both**2) / (2 * a * b)
    return np.where(varies, np.clip(correlation, -1, 1), 0)


def _check_range(sample: Sample, least: float, refusal: str) -> None:
    lowest, highest = (
        find(sample.values, initial=start) for find, start in ((np.nanmin, least), (np.nanmax, 1))
    )
    rounding = resolution_of(sample.values)
    if lowest < least - rounding or highest > 1 + rounding:
        raise StatisticsError(refusal)
