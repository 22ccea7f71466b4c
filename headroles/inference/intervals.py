"""Confidence intervals of means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from headroles.inference._columns import DEGENERATE, OK, FloatArray, check_share
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


def t_interval(
    values: ArrayLike | Sample,
    *,
    confidence: float = 0.95,
    clusters: ArrayLike | None = None,
    ddof: int = 1,
) -> Intervals:
    """Compute two-sided t intervals of the mean of every column separately.

    Limits are NaN for untestable columns, the mean for degenerate ones. Raises StatisticsError as
    `Sample.of`, and for a confidence outside (0, 1).
    """
    check_share(confidence, "confidence")
    sample = Sample.of(values, clusters, ddof)
    moments, result = sample.moments, open_intervals(sample)
    ok = moments.status == OK
    reach = reach_of_t(moments.standard_error[ok], moments.df[ok], confidence)
    result.ci_low[ok], result.ci_high[ok] = moments.mean[ok] - reach, moments.mean[ok] + reach
    return result


def reach_of_t(standard_error: FloatArray, df: FloatArray, confidence: float) -> FloatArray:
    """Return half the width of two-sided t intervals."""
    from scipy import stats  # half a second to import

    return np.asarray(stats.t.ppf((1 + confidence) / 2, df) * standard_error)
