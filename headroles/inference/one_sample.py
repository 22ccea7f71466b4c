"""One-sample, one-sided t-tests of many columns at once, missing values left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from headroles.errors import StatisticsError

OK, UNTESTABLE, DEGENERATE = "", "untestable", "degenerate"


@dataclass(frozen=True)
class OneSampleResult:
    """One entry per test, all arrays (tests,). What is not defined is NaN.

    ``n`` counts the values that were there. ``effect_size`` is (mean - threshold) / sd. The
    interval is two-sided, for one test, at the level that was asked for. ``status`` is ``""``,
    ``"untestable"`` (fewer than two values) or ``"degenerate"`` (all values alike): the latter
    two have no p-value.
    """

    n: NDArray[np.int64]
    mean: NDArray[np.float64]
    sd: NDArray[np.float64]
    effect_size: NDArray[np.float64]
    ci_low: NDArray[np.float64]
    ci_high: NDArray[np.float64]
    statistic: NDArray[np.float64]
    p_value: NDArray[np.float64]
    status: NDArray[np.str_]


def one_sample_t(
    values: ArrayLike, threshold: float, confidence: float = 0.95, ddof: int = 1
) -> OneSampleResult:
    """Test H0: mean <= threshold against H1: mean > threshold for every column.

    Args:
        values: (examples, tests); NaN where an example has no value.
        threshold: the mean under H0, at its limit.
        confidence: level of the two-sided confidence interval of each mean.
        ddof: 1 for the sample standard deviation; 0 for the one that the released notebooks of
            the published method use, which inflates the statistic by sqrt(n / (n - 1)).

    Raises:
        StatisticsError: ``values`` is not two-dimensional or holds an infinity.

    >>> result = one_sample_t([[3.4], [2.9], [4.1], [3.8], [3.0]], threshold=3)
    >>> round(float(result.p_value[0]), 6)
    0.063746
    """
    data = np.asarray(values)
    if data.ndim != 2:
        raise StatisticsError(f"values have {data.ndim} dimensions instead of (examples, tests)")
    if np.isinf(data).any():
        raise StatisticsError("values hold an infinity; remove it or mark it as missing (NaN)")
    # What differs by no more than rounding of the input does not vary.
    resolution = 8 * float(np.finfo(data.dtype if data.dtype.kind == "f" else float).eps)
    result = _empty_result(data.shape[1])
    for columns, present in _columns_with_the_same_gaps(data):
        part = _test_complete(
            data[np.ix_(present, columns)].astype(np.float64),
            threshold,
            confidence,
            ddof,
            resolution,
        )
        for field in fields(OneSampleResult):
            getattr(result, field.name)[columns] = getattr(part, field.name)
    return result


def _empty_result(n_tests: int) -> OneSampleResult:
    numbers = {
        field.name: np.full(n_tests, np.nan)
        for field in fields(OneSampleResult)
        if field.name not in ("n", "status")
    }
    return OneSampleResult(
        n=np.zeros(n_tests, dtype=np.int64),
        status=np.full(n_tests, UNTESTABLE, dtype=f"U{len(UNTESTABLE)}"),
        **numbers,
    )


def _columns_with_the_same_gaps(
    data: NDArray[np.floating],
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """(columns, rows that are there) for every pattern of missing values."""
    present = ~np.isnan(data)
    patterns, which = np.unique(np.packbits(present, axis=0), axis=1, return_inverse=True)
    which = which.reshape(-1)
    for pattern in range(patterns.shape[1]):
        columns = np.flatnonzero(which == pattern)
        yield columns, np.flatnonzero(present[:, columns[0]])


def _test_complete(
    data: NDArray[np.float64], threshold: float, confidence: float, ddof: int, resolution: float
) -> OneSampleResult:
    """The test of columns without missing values, of any number of rows."""
    n, n_tests = data.shape
    result = _empty_result(n_tests)
    result.n[:] = n
    if n:
        result.mean[:] = data.mean(axis=0)
    if n < 2:
        return result
    result.sd[:] = data.std(axis=0, ddof=ddof)
    varies = result.sd > resolution * np.maximum(np.abs(result.mean), np.finfo(float).tiny)
    result.status[:] = np.where(varies, OK, DEGENERATE)
    result.ci_low[~varies] = result.ci_high[~varies] = result.mean[~varies]

    mean, sd = result.mean[varies], result.sd[varies]
    error = sd / np.sqrt(n)
    result.effect_size[varies] = (mean - threshold) / sd
    result.statistic[varies] = (mean - threshold) / error
    result.p_value[varies] = stats.t.sf(result.statistic[varies], df=n - 1)
    reach = stats.t.ppf((1 + confidence) / 2, df=n - 1) * error
    result.ci_low[varies], result.ci_high[varies] = mean - reach, mean + reach
    return result
