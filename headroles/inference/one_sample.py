"""One-sample t-tests of many columns at once, with missing values and clusters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from headroles.arrays import FloatArray
from headroles.inference._columns import (
    DEGENERATE,
    OK,
    Alternative,
    check_alternative,
    check_thresholds,
)
from headroles.inference.moments import Moments
from headroles.inference.sample import Sample


@dataclass(frozen=True)
class TTest:
    """One entry per test, all arrays (tests,); NaN if undefined.

    ``effect_size`` is (mean - threshold) / sd, with clusters or without. Columns that are
    untestable or degenerate have no statistic and no p-value.
    """

    moments: Moments
    effect_size: FloatArray
    statistic: FloatArray
    p_value: FloatArray


def t_test(
    values: ArrayLike | Sample,
    threshold: ArrayLike,
    alternative: Alternative = "greater",
) -> TTest:
    """Test the mean of every column against the threshold.

    The statistic, (mean - threshold) / SE, is compared with t; `Sample` has the error and the
    degrees of freedom, which account for few clusters and for clusters of different sizes. Clusters
    of one example each give the ordinary t-test.

    Args:
        values: a sample, or values for `Sample.of`.
        threshold: the mean under H0, at its limit: a number, or (tests,) one for each test.
        alternative: H1, the mean is ``"greater"`` or ``"less"`` than the threshold, or differs
            from it (``"two-sided"``).

    Raises:
        StatisticsError: as `Sample.of`; ``threshold`` does not fit; unknown alternative.

    >>> result = t_test([[3.4], [2.9], [4.1], [3.8], [3.0]], threshold=3)
    >>> round(float(result.p_value[0]), 6)
    0.063746
    """
    check_alternative(alternative)
    sample = Sample.of(values)
    limits = check_thresholds(threshold, sample.n_tests)
    moments = sample.moments
    effect_size, statistic, p_value = np.full((3, sample.n_tests), np.nan)
    distance = moments.mean - limits
    described = (moments.sd > 0) & (moments.status != DEGENERATE)
    effect_size[described] = distance[described] / moments.sd[described]
    ok = moments.status == OK
    statistic[ok] = distance[ok] / moments.standard_error[ok]
    p_value[ok] = p_of_t(statistic[ok], moments.df[ok], alternative)
    return TTest(moments, effect_size, statistic, p_value)


def p_of_t(statistic: FloatArray, df: FloatArray, alternative: Alternative) -> FloatArray:
    """Return p-values of t statistics on ``df`` degrees of freedom."""
    from scipy import stats  # half a second to import

    if alternative == "two-sided":
        return np.asarray(2 * stats.t.sf(np.abs(statistic), df))
    return np.asarray(stats.t.sf(statistic if alternative == "greater" else -statistic, df))
