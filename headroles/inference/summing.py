"""Moments of values that come in blocks, in memory that does not grow with the examples.

Two passes over the same blocks are needed: the first computes the means, the second the moments
about them. Each cluster must lie within one block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from headroles.errors import StatisticsError
from headroles.inference._columns import (
    FloatArray,
    check_clusters,
    check_values,
    cluster_sums,
    resolution_of,
)
from headroles.inference.moments import Moments
from headroles.inference.sample import Sample


class MeansInBlocks:
    """First pass: ``n`` (tests,) counts the values so far, ``mean`` (tests,) is their mean."""

    def __init__(self, n_tests: int) -> None:
        self.n: NDArray[np.int64] = np.zeros(n_tests, dtype=np.int64)
        self.mean: FloatArray = np.zeros(n_tests)

    def add(self, values: ArrayLike) -> None:
        """Add values (examples, tests), NaN for missing ones."""
        centred, there = _centred(check_values(values), self.mean)
        self.n += there.sum(axis=0)
        self.mean += centred.sum(axis=0) / np.maximum(self.n, 1)

    def take(self, columns: NDArray[np.intp]) -> MeansInBlocks:
        """Return the means of some tests."""
        part = MeansInBlocks(len(columns))
        part.n, part.mean = self.n[columns], self.mean[columns]
        return part


class MomentsInBlocks:
    """Second pass, over the values whose ``means`` the first pass computed.

    If ``clustered``, values come with their clusters; else they are independent. At the end
    `sample` returns moments and skewness as `Sample` has for all values at once, but no values.
    """

    def __init__(self, means: MeansInBlocks, *, clustered: bool, ddof: int = 1) -> None:
        n_tests = len(means.n)
        self._means, self._clustered, self._ddof = means, clustered, ddof
        self._second, self._third = np.zeros((2, n_tests))
        self._clusters = _ClusterSums(means.n, ddof)
        self._resolution = 0.0
        self._dtype: DTypeLike = np.float64
        self._n_examples = 0

    def add(self, values: ArrayLike, clusters: ArrayLike | None = None) -> None:
        """Add values (examples, tests), and the clusters (examples,) that they come from."""
        data = check_values(values)
        self._dtype, self._resolution = data.dtype, resolution_of(data)
        centred, there = _centred(data, self._means.mean)
        squares = centred * centred
        self._second += squares.sum(axis=0)
        self._third += (squares * centred).sum(axis=0)
        self._n_examples += len(data)
        if self._clustered:
            codes = check_clusters(clusters, len(data))
            self._clusters.add(
                cluster_sums(centred, codes), cluster_sums(there.astype(np.float64), codes)
            )

    def sample(self) -> Sample:
        """Return a sample of all added values, without the values themselves."""
        n = self._means.n
        moments = Moments.empty(len(n))
        moments.n[:] = n
        moments.mean[:] = np.where(n, self._means.mean, np.nan)
        several = n >= 2
        with np.errstate(invalid="ignore", divide="ignore"):
            sd = np.sqrt(self._second / (n - self._ddof))
            skewness = (self._third / n) / (self._second / n) ** 1.5
        moments.sd[several] = sd[several]
        n_clusters = self._n_examples
        if self._clustered:
            n_clusters = self._clusters.count
            self._clusters.put(moments)
        else:
            moments.n_clusters[:] = n
        apart = several & (moments.n_clusters == n)  # each value is a cluster
        moments.standard_error[apart] = sd[apart] / np.sqrt(n[apart])
        moments.df[apart] = n[apart] - 1.0
        moments.settle(self._resolution)
        return SummedSample(moments, skewness, n_clusters, self._dtype, self._ddof)


class _ClusterSums:
    """Sums for cluster-robust errors; `Sample` has the formulas."""

    def __init__(self, n: NDArray[np.int64], ddof: int) -> None:
        self._n, self._ddof = np.maximum(n, 1), ddof
        self.count = 0
        self._n_clusters = np.zeros(len(n), dtype=np.int64)
        self._error, self._shares, self._q, self._q_squared, self._largest = np.zeros((5, len(n)))
        self._smallest = np.full(len(n), np.inf)

    def add(self, residuals: FloatArray, sizes: FloatArray) -> None:
        """Add sums of residuals (clusters, tests), and numbers of values."""
        there = sizes > 0
        shares = sizes / self._n
        with np.errstate(divide="ignore", invalid="ignore"):  # one cluster has no error anyway
            free = 1 / (1 - shares) if self._ddof else 1.0
            q = shares**2 / (1 - shares)
            self._error += (residuals**2 * free).sum(axis=0)
        self._shares += (shares**2).sum(axis=0)
        self._q += q.sum(axis=0)
        self._q_squared += (q**2).sum(axis=0)
        self._largest = np.maximum(self._largest, sizes.max(axis=0, initial=0))
        self._smallest = np.minimum(
            self._smallest, np.where(there, sizes, np.inf).min(axis=0, initial=np.inf)
        )
        self._n_clusters += there.sum(axis=0)
        self.count += len(sizes)

    def put(self, moments: Moments) -> None:
        """Fill in clusters, errors and degrees of freedom."""
        moments.n_clusters[:] = self._n_clusters
        several = self._n_clusters >= 2
        moments.standard_error[several] = np.sqrt(self._error[several]) / self._n[several]
        with np.errstate(invalid="ignore", divide="ignore"):
            df = 1 / (self._shares + self._q**2 - self._q_squared)
        alike = self._largest == self._smallest
        moments.df[several] = np.where(alike, self._n_clusters - 1.0, df)[several]


class SummedSample(Sample):
    """A sample with known moments, whose values were not stored."""

    def __init__(
        self,
        moments: Moments,
        skewness: FloatArray,
        n_clusters: int,
        dtype: DTypeLike,
        ddof: int,
    ) -> None:
        super().__init__(np.empty((0, len(moments.n)), dtype), np.empty(0, np.intp), ddof)
        self.__dict__.update(moments=moments, skewness=skewness, n_clusters=n_clusters)

    @classmethod
    def of_moments(cls, moments: Moments) -> Sample:
        """Make a sample from its moments alone."""
        n_clusters = int(moments.n_clusters.max(initial=0))
        return cls(moments, np.full(len(moments.n), np.nan), n_clusters, np.float64, 1)

    @classmethod
    def joined(cls, samples: Sequence[Sample]) -> Sample:
        """Join samples of different examples: their tests side by side."""
        parts = [[getattr(one.moments, name.name) for one in samples] for name in fields(Moments)]
        joined = cls.of_moments(Moments(*(np.concatenate(part) for part in parts)))
        joined.__dict__["skewness"] = np.concatenate([one.skewness for one in samples])
        return joined

    def with_means_alone(self, columns: NDArray[np.bool_]) -> Sample:
        """Return the moments with zero deviation in some tests."""
        dtype = self.values.dtype
        moments = self.moments.flattened(columns, dtype, resolution_of(self.values))
        skewness = np.where(columns, np.nan, self.skewness)
        return SummedSample(moments, skewness, self.n_clusters, dtype, self.ddof)

    def about(self, threshold: ArrayLike) -> FloatArray:
        """Raise StatisticsError, since the values were not stored."""
        raise StatisticsError("only sums of the values were stored; pass a sample with its values")

    @cached_property
    def cluster_sizes(self) -> FloatArray:
        """Raise StatisticsError, as `about`."""
        return self.about(0)

    @cached_property
    def gaps(self) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Raise StatisticsError, as `about`."""
        self.about(0)
        return []


def _centred(data: NDArray[np.floating], mean: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return values less the mean, 0 if missing, and which are present, both (examples, tests)."""
    there = ~np.isnan(data)
    return np.where(there, data.astype(np.float64) - mean, 0), there
