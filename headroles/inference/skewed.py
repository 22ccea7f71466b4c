"""Intervals of means of values that are never negative and have a long upper tail."""

from __future__ import annotations

import numpy as np

from headroles.errors import StatisticsError
from headroles.inference._columns import OK, FloatArray, check_share
from headroles.inference.intervals import Intervals, open_intervals
from headroles.inference.sample import Sample

_LEAST_SKEWNESS = 1e-3
"""Below it the transformation is the identity, but for rounding."""


def skewed_interval(sample: Sample, *, confidence: float = 0.95) -> Intervals:
    """Two-sided intervals of means of skewed values >= 0, each for itself.

    Hall (1992), "On the removal of skewness by transformation": w = (mean - mu) / sd becomes
    symmetric, up to terms of order 1 / n, as

        g(w) = w + c w^2 / 3 + c^2 w^3 / 27 + c / (6 n)

    with the skewness c, and the limits come from the inverse of g at quantiles of t. A sample tells
    too little of a long tail, so that c is estimated with one value more, twice as far from the
    mean as the largest.

    Columns that are untestable have NaN for limits, degenerate ones their mean.

    Raises:
        StatisticsError: clusters, some values of a column missing, or values below 0.
    """
    from scipy import stats  # half a second to import

    check_share(confidence, "confidence")
    moments, result = sample.moments, open_intervals(sample)
    ok = moments.status == OK
    values = sample.values[:, ok].astype(np.float64)
    if sample.n_clusters < sample.n_examples or np.isnan(values).any() or (values < 0).any():
        raise StatisticsError("these intervals are of independent values >= 0, none missing")
    n = len(values)
    farther = 2 * values.max(axis=0, initial=0) - moments.mean[ok]
    skewness = stats.skew(np.concatenate([values, farther[None]]))
    reach = stats.t.ppf((1 + confidence) / 2, n - 1) / np.sqrt(n)
    low, high = (_inverse(place, skewness, n) * moments.sd[ok] for place in (reach, -reach))
    result.ci_low[ok] = np.maximum(0, moments.mean[ok] - low)
    result.ci_high[ok] = moments.mean[ok] - high
    return result


def _inverse(place: float, skewness: FloatArray, n: int) -> FloatArray:
    """The w whose g(w) is ``place``."""
    c = np.maximum(skewness, _LEAST_SKEWNESS)
    return np.asarray(3 * (np.cbrt(1 + c * (place - c / (6 * n))) - 1) / c)
