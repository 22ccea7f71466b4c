"""Confidence intervals of means, and of means of non-negative values with a long upper tail."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from headroles.arrays import FloatArray
from headroles.errors import StatisticsError
from headroles.inference._columns import DEGENERATE, OK, check_share
from headroles.inference.sample import Sample


@dataclass(frozen=True)
class Intervals:
    """Limits (tests,): NaN for untestable columns, the mean itself for degenerate ones."""

    ci_low: FloatArray
    ci_high: FloatArray


def open_intervals(sample: Sample) -> Intervals:
    """Create intervals whose limits of testable columns are still to be filled in."""
    low = np.where(sample.moments.status == DEGENERATE, sample.moments.mean, np.nan)
    return Intervals(low, low.copy())


def t_interval(values: ArrayLike | Sample, *, confidence: float = 0.95) -> Intervals:
    """Compute two-sided t intervals of the mean of every column separately.

    Limits are NaN for untestable columns, the mean for degenerate ones. Raises StatisticsError as
    `Sample.of`, and for a confidence outside (0, 1).
    """
    from scipy import stats  # half a second to import

    check_share(confidence, "confidence")
    sample = Sample.of(values)
    moments, result = sample.moments, open_intervals(sample)
    ok = moments.status == OK
    reach = stats.t.ppf((1 + confidence) / 2, moments.df[ok]) * moments.standard_error[ok]
    result.ci_low[ok], result.ci_high[ok] = moments.mean[ok] - reach, moments.mean[ok] + reach
    return result


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

    check_share(confidence, "confidence")
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
