"""Means over two crossed samples at once: examples, and random draws of what is done to each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from headroles.errors import StatisticsError
from headroles.inference._columns import FloatArray, check_share
from headroles.inference.intervals import Intervals
from headroles.inference.one_sample import p_of_t, reach_of_t

ENOUGH_DRAWS = 5
"""With fewer draws, degrees of freedom by Satterthwaite are too many: the test errs too often."""
_DIMENSIONS = 3


@dataclass(frozen=True)
class CrossedTest:
    """One entry per test, all arrays (tests,); NaN where nothing varies.

    ``standard_error`` is that of ``mean`` over other examples and other draws.
    """

    mean: FloatArray
    standard_error: FloatArray
    df: FloatArray
    p_value: FloatArray

    def interval(self, confidence: float = 0.95) -> Intervals:
        """Two-sided t intervals of the means, each for itself; the mean where nothing varies."""
        check_share(confidence, "confidence")
        reach = reach_of_t(self.standard_error, self.df, confidence)
        reach = np.where(self.standard_error == 0, 0, reach)
        return Intervals(self.mean - reach, self.mean + reach)


def crossed_t_test(values: ArrayLike, threshold: float = 0.0) -> CrossedTest:
    """Test means of examples that were all seen under the same random draws, two-sided.

    The squared error of the mean is that of the means of examples plus that of the means of draws.
    From ``ENOUGH_DRAWS`` draws on, degrees of freedom are those of Satterthwaite: min F' of Clark
    (1973), squared t. Where draws vary much more than examples, it errs in 5.8 % instead of 5 with
    five draws, and in 7.6 and 12.6 % with three and two. Fewer draws therefore have as many degrees
    of freedom as the smaller of both samples, with which the test errs too rarely (Mickey and
    Brown 1966). Draws that are all alike count as the only one there could be, as a single one
    does, which gives the ordinary t-test over examples.

    Args:
        values: (examples, draws, tests), without missing ones.
        threshold: the mean under H0.

    Raises:
        StatisticsError: another number of dimensions, fewer than two examples, missing values.

    >>> found = crossed_t_test([[[3.4]], [[2.9]], [[4.1]], [[3.8]], [[3.0]]], threshold=3)
    >>> round(float(found.p_value[0]), 6)
    0.127493
    """
    data = np.asarray(values, dtype=np.float64)
    if data.ndim != _DIMENSIONS or len(data) < 2 or not data.shape[1]:
        raise StatisticsError(
            f"values have shape {data.shape}; give (examples, draws, tests), two examples at least"
        )
    if not np.isfinite(data).all():
        raise StatisticsError("values are missing or infinite; every example needs every draw")
    n_examples, n_draws = data.shape[:2]
    by_example = data.mean(1).var(0, ddof=1) / n_examples
    by_draw = np.zeros_like(by_example)
    if n_draws > 1:
        by_draw = data.mean(0).var(0, ddof=1) / n_draws
    squared = by_example + by_draw
    weights = by_example**2 / (n_examples - 1) + by_draw**2 / max(1, n_draws - 1)
    mean = data.mean((0, 1))
    varies = squared > (8 * np.finfo(np.float64).eps * np.abs(mean)) ** 2
    df, statistic = np.full((2, len(mean)), np.nan)
    df[varies] = squared[varies] ** 2 / weights[varies]
    if n_draws < ENOUGH_DRAWS:
        df[varies & (by_draw > 0)] = min(n_examples, n_draws) - 1
    error = np.where(varies, np.sqrt(squared), 0)
    statistic[varies] = (mean[varies] - threshold) / error[varies]
    return CrossedTest(mean, error, df, p_of_t(statistic, df, "two-sided"))
