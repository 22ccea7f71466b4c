"""One-sample t-tests of many columns at once: missing values left out, clusters respected."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from headroles.inference._columns import (
    DEGENERATE,
    OK,
    UNTESTABLE,
    Alternative,
    FloatArray,
    check_alternative,
    check_groups,
    check_share,
    check_thresholds,
    check_values,
    cluster_sums,
    columns_with_the_same_gaps,
    renumber,
    resolution_of,
)


@dataclass(frozen=True)
class OneSampleResult:
    """One entry per test, all arrays (tests,). What is not defined is NaN.

    ``n`` counts the values that were there and ``n_groups`` the clusters that they come from
    (as many as values if there are no clusters). ``sd`` is the deviation of single examples and
    ``effect_size`` is (mean - threshold) / sd, with clusters or without. The interval is
    two-sided, for one test, at the level that was asked for.

    ``status`` is ``""``; ``"untestable"`` (fewer than two values, fewer than two clusters, or
    clusters that cancel so that nothing is left to estimate an error from); or ``"degenerate"``
    (all values alike: the interval is the mean). The latter two have no p-value.
    """

    n: NDArray[np.int64]
    n_groups: NDArray[np.int64]
    mean: FloatArray
    sd: FloatArray
    standard_error: FloatArray
    effect_size: FloatArray
    ci_low: FloatArray
    ci_high: FloatArray
    statistic: FloatArray
    p_value: FloatArray
    status: NDArray[np.str_]


def one_sample_t(
    values: ArrayLike,
    threshold: ArrayLike,
    confidence: float = 0.95,
    ddof: int = 1,
    groups: ArrayLike | None = None,
    alternative: Alternative = "greater",
) -> OneSampleResult:
    """Test the mean of every column against the threshold.

    With clusters the standard error is the cluster-robust one of a mean (Liang and Zeger 1986,
    with the small-sample factor G / (G - 1)):

        SE^2 = G / (G - ddof) * sum over clusters of (sum of the cluster's residuals)^2 / n^2

    and the statistic is compared with t on G - 1 degrees of freedom, G being the number of
    clusters that have a value in the column. Clusters of one example each give the ordinary
    t-test. With few clusters (under about 20), or very unequal ones, the robust error is too
    small on average; ``sign_flip_test`` is then the safer test of symmetric values.

    Args:
        values: (examples, tests); NaN where an example has no value.
        threshold: the mean under H0, at its limit: a number, or (tests,) one for each test.
        confidence: level of the two-sided confidence interval of each mean.
        ddof: 1 for the sample standard deviation; 0 for the one that the released notebooks of
            the published method use, which inflates the statistic by sqrt(n / (n - 1)).
        groups: (examples,) integer or string label of each example's cluster, such as its
            document; None if the examples are independent.
        alternative: H1, the mean is ``"greater"`` or ``"less"`` than the threshold, or differs
            from it (``"two-sided"``).

    Raises:
        StatisticsError: ``values`` is not two-dimensional, not numeric or holds an infinity;
            ``threshold`` or ``groups`` do not fit; unknown alternative; confidence outside
            (0, 1).

    >>> result = one_sample_t([[3.4], [2.9], [4.1], [3.8], [3.0]], threshold=3)
    >>> round(float(result.p_value[0]), 6)
    0.063746
    """
    data = check_values(values)
    return compute_t(data, threshold, confidence, ddof, groups, alternative, resolution_of(data))


def compute_t(
    data: NDArray[np.floating],
    threshold: ArrayLike,
    confidence: float,
    ddof: int,
    groups: ArrayLike | None,
    alternative: Alternative,
    resolution: float,
    magnitude: FloatArray | None = None,
) -> OneSampleResult:
    """``one_sample_t`` of checked data (examples, tests).

    What deviates by no more than ``resolution`` times ``magnitude`` (tests,) does not vary: it is
    rounding of the input. The magnitude is that of the mean unless the data are differences of
    larger numbers.
    """
    check_alternative(alternative)
    check_share(confidence, "confidence")
    codes = check_groups(groups, len(data))
    limits = check_thresholds(threshold, data.shape[1])
    result = _empty_result(data.shape[1])
    for columns, present in columns_with_the_same_gaps(data):
        complete = data[np.ix_(present, columns)].astype(np.float64)
        scale = None if magnitude is None else magnitude[columns]
        part = _describe(complete, renumber(codes[present]), ddof, resolution, scale)
        _test(part, limits[columns], confidence, alternative)
        for field in fields(OneSampleResult):
            getattr(result, field.name)[columns] = getattr(part, field.name)
    return result


def p_of_t(statistic: FloatArray, df: NDArray[np.int64], alternative: Alternative) -> FloatArray:
    """p-values of t statistics on ``df`` degrees of freedom."""
    if alternative == "two-sided":
        return np.asarray(2 * stats.t.sf(np.abs(statistic), df))
    return np.asarray(stats.t.sf(statistic if alternative == "greater" else -statistic, df))


def _empty_result(n_tests: int) -> OneSampleResult:
    numbers = {
        field.name: np.full(n_tests, np.nan)
        for field in fields(OneSampleResult)
        if field.name not in ("n", "n_groups", "status")
    }
    status = np.full(n_tests, UNTESTABLE, dtype=f"U{len(UNTESTABLE)}")
    return OneSampleResult(
        n=np.zeros(n_tests, dtype=np.int64),
        n_groups=np.zeros(n_tests, dtype=np.int64),
        status=status,
        **numbers,
    )


def _describe(
    data: FloatArray,
    codes: NDArray[np.intp],
    ddof: int,
    resolution: float,
    magnitude: FloatArray | None,
) -> OneSampleResult:
    """Moments, standard errors and status of columns without missing values."""
    n, n_tests = data.shape
    n_groups = int(codes.max()) + 1 if n else 0
    result = _empty_result(n_tests)
    result.n[:], result.n_groups[:] = n, n_groups
    if n:
        result.mean[:] = data.mean(axis=0)
    if n < 2:
        return result
    size = np.abs(result.mean) if magnitude is None else magnitude
    sd = data.std(axis=0, ddof=ddof)
    varies = sd > resolution * np.maximum(size, np.finfo(float).tiny)
    result.sd[:] = sd
    if n_groups < 2:
        return result
    result.standard_error[:] = error = _standard_error(data, codes, n_groups, result.mean, sd, ddof)
    # Clusters of one make this the same comparison as that of the deviation above.
    tells = error * np.sqrt(n_groups) > resolution * np.maximum(size, sd)
    result.status[varies & tells] = OK
    result.status[~varies] = DEGENERATE
    return result


def _standard_error(
    data: FloatArray,
    codes: NDArray[np.intp],
    n_groups: int,
    mean: FloatArray,
    sd: FloatArray,
    ddof: int,
) -> FloatArray:
    n = len(data)
    if n_groups == n:
        return np.asarray(sd / np.sqrt(n))
    residuals = cluster_sums(data - mean, codes)
    factor = n_groups / (n_groups - ddof)
    return np.asarray(np.sqrt(factor * (residuals**2).sum(axis=0)) / n)


def _test(
    result: OneSampleResult, threshold: FloatArray, confidence: float, alternative: Alternative
) -> None:
    """Fill in effect size, statistic, p-value and interval where they are defined."""
    alike = result.status == DEGENERATE
    result.ci_low[alike] = result.ci_high[alike] = result.mean[alike]
    ok = result.status == OK
    described = (result.sd > 0) & ~alike
    distance = result.mean - threshold
    result.effect_size[described] = distance[described] / result.sd[described]
    df = result.n_groups[ok] - 1
    mean, error = result.mean[ok], result.standard_error[ok]
    result.statistic[ok] = distance[ok] / error
    result.p_value[ok] = p_of_t(result.statistic[ok], df, alternative)
    reach = stats.t.ppf((1 + confidence) / 2, df) * error
    result.ci_low[ok], result.ci_high[ok] = mean - reach, mean + reach
