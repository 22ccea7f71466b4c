"""Confidence intervals of mean shares, which lie between 0 and 1 as shares do."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from headroles.errors import StatisticsError
from headroles.inference._columns import DEGENERATE, OK, check_share
from headroles.inference.intervals import Intervals, open_intervals
from headroles.inference.sample import Sample

_ROUNDING = 1e-5
"""Shares that were summed up in float32 may be off by less."""


def wilson_interval(
    values: ArrayLike | Sample,
    *,
    confidence: float = 0.95,
    clusters: ArrayLike | None = None,
) -> Intervals:
    """Two-sided Wilson intervals of the mean of every column of shares, each for itself.

    The interval holds the shares p that the mean m is not farther from than t times their standard
    error, sqrt(p (1 - p) / n). Here n is the effective sample size: of as many independent hits and
    misses the mean would have the standard error that it has, robust to clusters,

        n = m (1 - m) / error^2

    and t has the degrees of freedom of that error (Dean and Pagano 2015). A column of nothing but
    hits, or misses, has as many as it has clusters. Others whose values are all alike have their
    mean for limits, and untestable ones NaN.

    Raises StatisticsError for what `Sample.of` refuses, for values outside 0 to 1, and for a
    confidence outside (0, 1).
    """
    check_share(confidence, "confidence")
    sample = Sample.of(values, clusters)
    least, most = np.nanmin(sample.values, initial=0), np.nanmax(sample.values, initial=1)
    if least < -_ROUNDING or most > 1 + _ROUNDING:
        raise StatisticsError("Wilson intervals are of shares; values must lie between 0 and 1")
    moments, result = sample.moments, open_intervals(sample)
    mean = np.clip(moments.mean, 0, 1)
    is_end = np.minimum(mean, 1 - mean) < _ROUNDING
    is_extreme = (moments.status == DEGENERATE) & is_end
    some = (moments.status == OK) | is_extreme
    with np.errstate(divide="ignore", invalid="ignore"):
        n = np.where(is_extreme, moments.n_clusters, mean * (1 - mean) / moments.standard_error**2)[
            some
        ]
    m, per_n = mean[some], stats.t.ppf((1 + confidence) / 2, moments.df[some]) ** 2 / n
    centre = (m + per_n / 2) / (1 + per_n)
    reach = np.sqrt(per_n * m * (1 - m) + per_n**2 / 4) / (1 + per_n)
    result.ci_low[some] = np.maximum(centre - reach, 0)  # rounding
    result.ci_high[some] = np.minimum(centre + reach, 1)
    return result
