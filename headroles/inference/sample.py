"""Samples: values of many tests side by side, and what is worked out of them once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headroles.errors import StatisticsError
from headroles.inference._columns import (
    DEGENERATE,
    OK,
    UNTESTABLE,
    FloatArray,
    check_clusters,
    check_thresholds,
    check_values,
    cluster_sums,
    columns_with_the_same_gaps,
    renumber,
    resolution_of,
)


@dataclass(frozen=True)
class Moments:
    """One entry per test, all arrays (tests,). What is not defined is NaN.

    ``n`` counts the values that were there and ``n_clusters`` the clusters that they come from (as
    many as values if there are no clusters). ``sd`` is the deviation of single examples,
    ``standard_error`` that of the mean, robust to clusters, and ``df`` its degrees of freedom:
    ``n_clusters`` - 1 where clusters are of one size, and fewer the more their sizes differ.

    ``status`` is ``""``; ``"untestable"`` (fewer than two values, fewer than two clusters, or
    clusters that cancel so that nothing is left to estimate an error from); or ``"degenerate"``
    (all values alike).
    """

    n: NDArray[np.int64]
    n_clusters: NDArray[np.int64]
    mean: FloatArray
    sd: FloatArray
    standard_error: FloatArray
    df: FloatArray
    status: NDArray[np.str_]

    @property
    def effective_clusters(self) -> FloatArray:
        """How many clusters of one size (tests,) those there are amount to: ``df`` + 1."""
        return np.asarray(np.round(self.df + 1, 9))

    @classmethod
    def empty(cls, n_tests: int) -> Moments:
        """Those of ``n_tests`` columns without values, to be filled in."""
        return cls(
            n=np.zeros(n_tests, dtype=np.int64),
            n_clusters=np.zeros(n_tests, dtype=np.int64),
            mean=np.full(n_tests, np.nan),
            sd=np.full(n_tests, np.nan),
            standard_error=np.full(n_tests, np.nan),
            df=np.full(n_tests, np.nan),
            status=np.full(n_tests, UNTESTABLE, dtype=f"U{len(UNTESTABLE)}"),
        )

    def put(self, columns: NDArray[np.intp], part: Moments) -> None:
        """Fill in the moments of some columns."""
        for one in fields(self):
            getattr(self, one.name)[columns] = getattr(part, one.name)

    def take(self, columns: NDArray[np.intp]) -> Moments:
        """The moments of some columns."""
        return Moments(*(getattr(self, one.name)[columns] for one in fields(self)))


@dataclass(frozen=True, eq=False)
class Sample:
    """Checked ``values`` (examples, tests), NaN where an example has none, and their ``clusters``.

    ``clusters`` (examples,) are numbered from 0. ``ddof`` is that of standard deviations. ``size``
    (tests,) is how large the numbers are that the values are differences of, None for values that
    stand for themselves: deviations that are tiny beside it, or beside the mean, are rounding.
    """

    values: NDArray[np.floating]
    clusters: NDArray[np.intp]
    ddof: int = 1
    size: FloatArray | None = None
    _found: dict[Any, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        values: ArrayLike | Sample,
        clusters: ArrayLike | None = None,
        ddof: int = 1,
        size: FloatArray | None = None,
    ) -> Sample:
        """A sample of values, or ``values`` itself if it is one, which has all else already.

        Args:
            values: (examples, tests); NaN where an example has no value.
            clusters: (examples,) integer or string label of each example's cluster, such as its
                document; None if the examples are independent.
            ddof: 1 for the sample standard deviation; 0 for the one that the released notebooks
                of the published method use, which inflates t by sqrt(n / (n - 1)).
            size: (tests,), see above.

        Raises:
            StatisticsError: ``values`` is not two-dimensional, not numeric or holds an infinity;
                ``clusters`` do not fit, or are given beside a sample.
        """
        if isinstance(values, Sample):
            if clusters is not None or ddof != 1 or size is not None:
                raise StatisticsError("a sample has clusters and ddof of its own; leave them out")
            return values
        data = check_values(values)
        return cls(data, check_clusters(clusters, len(data)), ddof, size)

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return len(self.values)

    @property
    def n_tests(self) -> int:
        """Number of tests."""
        return int(self.values.shape[1])

    def take(self, columns: NDArray[np.intp]) -> Sample:
        """The tests at ``columns``; what was worked out of them stays."""
        part = Sample(
            self.values[:, columns],
            self.clusters,
            self.ddof,
            None if self.size is None else self.size[columns],
        )
        if "moments" in self.__dict__:
            part.__dict__["moments"] = self.moments.take(columns)
        return part

    @cached_property
    def gaps(self) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """(columns, rows that are there) for every pattern of missing values."""
        return list(columns_with_the_same_gaps(self.values))

    @cached_property
    def moments(self) -> Moments:
        """Moments of all columns.

        With clusters the standard error is the cluster-robust one of a mean with the correction
        CR2 (Bell and McCaffrey 2002), which is free of bias if values are independent:

            SE^2 = sum over clusters of (sum of the cluster's residuals)^2 / (n^2 (1 - s_g))

        s_g = n_g / n being the shares of the clusters in the values of the column. Its degrees of
        freedom are Bell and McCaffrey's, those of the chi-squared distribution of the same mean and
        variance: with q_g = s_g^2 / (1 - s_g),

            df = 1 / (sum of s_g^2 + (sum of q_g)^2 - sum of q_g^2)

        For G clusters of one size these are the usual G / (G - 1) and G - 1. With ``ddof`` 0 the
        terms 1 - s_g are left out.
        """
        moments = Moments.empty(self.n_tests)
        resolution = resolution_of(self.values)
        for columns, present in self.gaps:
            complete = self.values[np.ix_(present, columns)].astype(np.float64)
            size = None if self.size is None else self.size[columns]
            codes = renumber(self.clusters[present])
            moments.put(columns, _describe(complete, codes, self.ddof, resolution, size))
        return moments

    @cached_property
    def skewness(self) -> FloatArray:
        """Skewness (tests,) of the values, NaN where nothing varies."""
        moments = self.moments
        centred = np.nan_to_num(self.values - moments.mean.astype(self.values.dtype))
        squares = centred * centred
        with np.errstate(invalid="ignore", divide="ignore"):
            second = squares.sum(axis=0, dtype=np.float64) / moments.n
            third = (squares * centred).sum(axis=0, dtype=np.float64) / moments.n
            return np.asarray(third / second**1.5)

    def about(self, threshold: ArrayLike) -> FloatArray:
        """Sums (clusters, tests) of value - threshold in each cluster, missing ones left out."""
        limits = check_thresholds(threshold, self.n_tests)
        return self._once(("about", limits.tobytes()), lambda: self._sums_about(limits))

    def _sums_about(self, limits: FloatArray) -> FloatArray:
        differences = self.values.astype(np.float64) - limits
        return cluster_sums(np.where(np.isnan(differences), 0, differences), self.clusters)

    @cached_property
    def cluster_sizes(self) -> FloatArray:
        """Number of values (clusters, tests) in each cluster."""
        return cluster_sums((~np.isnan(self.values)).astype(np.float64), self.clusters)

    def _once(self, key: Any, work: Callable[[], FloatArray]) -> FloatArray:
        if key not in self._found:
            self._found[key] = work()
        found: FloatArray = self._found[key]
        return found


def _describe(
    data: FloatArray,
    codes: NDArray[np.intp],
    ddof: int,
    resolution: float,
    size: FloatArray | None,
) -> Moments:
    """Moments of columns without missing values."""
    n, n_tests = data.shape
    n_clusters = int(codes.max()) + 1 if n else 0
    moments = Moments.empty(n_tests)
    moments.n[:], moments.n_clusters[:] = n, n_clusters
    if n:
        moments.mean[:] = data.mean(axis=0)
    if n < 2:
        return moments
    size = np.abs(moments.mean) if size is None else size
    sd = data.std(axis=0, ddof=ddof)
    varies = sd > resolution * np.maximum(size, np.finfo(float).tiny)
    moments.sd[:] = sd
    if n_clusters < 2:
        return moments
    error = _standard_error(data, codes, n_clusters, moments.mean, sd, ddof)
    moments.standard_error[:] = error
    moments.df[:] = _degrees_of_freedom(codes)
    # Clusters of one make this the same comparison as that of the deviation above.
    tells = error * np.sqrt(n_clusters) > resolution * np.maximum(size, sd)
    moments.status[varies & tells] = OK
    moments.status[~varies] = DEGENERATE
    return moments


def _standard_error(
    data: FloatArray,
    codes: NDArray[np.intp],
    n_clusters: int,
    mean: FloatArray,
    sd: FloatArray,
    ddof: int,
) -> FloatArray:
    n = len(data)
    if n_clusters == n:
        return np.asarray(sd / np.sqrt(n))
    residuals = cluster_sums(data - mean, codes)
    if ddof:
        residuals /= np.sqrt(1 - np.bincount(codes) / n)[:, None]
    return np.asarray(np.sqrt((residuals**2).sum(axis=0)) / n)


def _degrees_of_freedom(codes: NDArray[np.intp]) -> float:
    """Those of Bell and McCaffrey, for clusters ``codes`` of the values."""
    sizes = np.bincount(codes)
    if (sizes == sizes[0]).all():
        return len(sizes) - 1.0
    shares = sizes / sizes.sum()
    q = shares**2 / (1 - shares)
    return float(1 / ((shares**2).sum() + q.sum() ** 2 - (q**2).sum()))
