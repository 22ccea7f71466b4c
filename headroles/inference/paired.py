"""Paired tests of many columns at once: has the mean changed, or is it the same for practice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headroles.errors import StatisticsError
from headroles.inference._columns import (
    Alternative,
    FloatArray,
    check_share,
    check_values,
    resolution_of,
)
from headroles.inference.one_sample import OneSampleResult, compute_t


@dataclass(frozen=True)
class EquivalenceResult:
    """One entry per test, all arrays (tests,). What is not defined is NaN.

    ``mean`` is that of after - before and ``sd`` its deviation. The interval is two-sided at the
    level 1 - 2 alpha: it lies inside (-margin, margin) exactly when ``p_value`` < alpha.
    ``p_above`` is for H1: mean > -margin, ``p_below`` for H1: mean < margin, and ``p_value``, for
    H1: |mean| < margin, the larger of the two. Counts and ``status`` are those of ``paired_t``.
    """

    n: NDArray[np.int64]
    n_groups: NDArray[np.int64]
    mean: FloatArray
    sd: FloatArray
    ci_low: FloatArray
    ci_high: FloatArray
    p_above: FloatArray
    p_below: FloatArray
    p_value: FloatArray
    status: NDArray[np.str_]


def paired_t(
    before: ArrayLike,
    after: ArrayLike,
    confidence: float = 0.95,
    ddof: int = 1,
    groups: ArrayLike | None = None,
    alternative: Alternative = "two-sided",
) -> OneSampleResult:
    """Test the mean of after - before against 0 for every column: ``one_sample_t`` of differences.

    Args:
        before: (examples, tests); NaN where an example has no value.
        after: (examples, tests), the same examples and tests in the same order. A pair of which
            one or both are missing is missing.
        confidence: level of the two-sided confidence interval of each mean difference.
        ddof: as in ``one_sample_t``.
        groups: (examples,) integer or string label of each example's cluster, or None.
        alternative: H1, the mean difference is not 0 (``"two-sided"``), is ``"greater"`` or
            ``"less"``.

    Returns:
        The result of ``one_sample_t``; ``effect_size`` is mean / sd of the differences. A column
        in which all pairs differ by the same, up to the rounding of the values, is degenerate.

    Raises:
        StatisticsError: shapes that differ, or input that ``one_sample_t`` refuses.

    >>> paired_t([[1.0], [2.0], [3.0]], [[2.0], [3.5], [3.5]]).mean.tolist()
    [1.0]
    """
    difference, resolution, magnitude = _differences(before, after)
    return compute_t(difference, 0, confidence, ddof, groups, alternative, resolution, magnitude)


def equivalence_t(
    before: ArrayLike,
    after: ArrayLike,
    margin: float,
    alpha: float = 0.05,
    ddof: int = 1,
    groups: ArrayLike | None = None,
) -> EquivalenceResult:
    """Test H0: |mean of after - before| >= margin against H1: it is less, for every column.

    Two one-sided t-tests (Schuirmann 1987): the change is shown to be smaller than the margin if
    the mean is above -margin and below margin, each at level alpha; p is the larger of both
    p-values and needs no correction for there being two. A change that is not significant is not
    thereby shown to be small: this test is.

    Args:
        before: (examples, tests); NaN where an example has no value.
        after: (examples, tests); pairs are missing as in ``paired_t``.
        margin: the smallest change that would matter, above 0, in the units of the values; to be
            chosen before the data are seen.
        alpha: level of the test, which sets the level 1 - 2 alpha of the interval.
        ddof: as in ``one_sample_t``.
        groups: (examples,) integer or string label of each example's cluster, or None.

    Raises:
        StatisticsError: a margin that is not above 0, alpha outside (0, 0.5), shapes that differ,
            or input that ``one_sample_t`` refuses.
    """
    if not 0 < margin < np.inf:
        raise StatisticsError(f"the margin is {margin}; it must be a number above 0")
    check_share(2 * alpha, "twice alpha")
    difference, resolution, magnitude = _differences(before, after)

    def against(limit: float, alternative: Alternative) -> OneSampleResult:
        return compute_t(
            difference, limit, 1 - 2 * alpha, ddof, groups, alternative, resolution, magnitude
        )

    above, below = against(-margin, "greater"), against(margin, "less")
    return EquivalenceResult(
        n=above.n,
        n_groups=above.n_groups,
        mean=above.mean,
        sd=above.sd,
        ci_low=above.ci_low,
        ci_high=above.ci_high,
        p_above=above.p_value,
        p_below=below.p_value,
        p_value=np.maximum(above.p_value, below.p_value),
        status=above.status,
    )


def _differences(
    before: ArrayLike, after: ArrayLike
) -> tuple[NDArray[np.floating], float, FloatArray]:
    """Differences, the relative rounding of the values, and their mean magnitude (tests,)."""
    first, second = check_values(before, "values before"), check_values(after, "values after")
    if first.shape != second.shape:
        raise StatisticsError(
            f"values before have shape {first.shape} but values after {second.shape}; "
            "give the same examples and tests in the same order"
        )
    difference = np.asarray(second.astype(np.float64) - first.astype(np.float64))
    resolution = max(resolution_of(first), resolution_of(second))
    size = np.maximum(np.abs(first), np.abs(second)).astype(np.float64)
    present = ~np.isnan(size)
    total = np.where(present, size, 0).sum(axis=0)
    return difference, resolution, total / np.maximum(present.sum(axis=0), 1)
