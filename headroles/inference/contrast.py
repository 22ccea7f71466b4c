"""Contrasts of means that were estimated independently of one another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from headroles.errors import StatisticsError
from headroles.inference._columns import FloatArray, check_share
from headroles.inference.intervals import Intervals
from headroles.inference.one_sample import p_of_t, reach_of_t


@dataclass(frozen=True)
class Contrast:
    """One entry per contrast, all arrays (contrasts, ...); NaN where a mean has no error."""

    estimate: FloatArray
    standard_error: FloatArray
    df: FloatArray
    p_value: FloatArray

    def interval(self, confidence: float = 0.95) -> Intervals:
        """Two-sided t intervals, each for itself."""
        check_share(confidence, "confidence")
        reach = reach_of_t(self.standard_error, self.df, confidence)
        return Intervals(self.estimate - reach, self.estimate + reach)


def contrast_test(
    means: ArrayLike, standard_errors: ArrayLike, df: ArrayLike, weights: ArrayLike
) -> Contrast:
    """Test weighted sums of independent means against 0, two-sided.

    Variances may differ: degrees of freedom are those of Welch (1947) and Satterthwaite (1946). For
    two means and weights 1 and -1 it is Welch's test.

    Args:
        means: (samples, ...).
        standard_errors: of the means, of the same shape.
        df: degrees of freedom of the errors, of the same shape.
        weights: (contrasts, samples).

    Raises:
        StatisticsError: arrays that do not fit.
    """
    mean, error, free = (np.asarray(one, dtype=np.float64) for one in (means, standard_errors, df))
    weight = np.asarray(weights, dtype=np.float64)
    if not mean.shape == error.shape == free.shape or weight.shape[1:] != mean.shape[:1]:
        raise StatisticsError(
            f"means have shape {mean.shape}, errors {error.shape}, degrees of freedom "
            f"{free.shape} and weights {weight.shape}; they do not fit"
        )
    squared = np.tensordot(weight**2, error**2, 1)
    fourth = np.tensordot(weight**4, error**4 / free, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.where(squared > 0, squared**2 / fourth, np.nan)
        estimate = np.tensordot(weight, mean, 1)
        statistic = np.where(squared > 0, estimate / np.sqrt(squared), np.nan)
    return Contrast(estimate, np.sqrt(squared), found, p_of_t(statistic, found, "two-sided"))
