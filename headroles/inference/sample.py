"""Samples: values of many tests side by side, checked, with moments that are computed once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headroles.arrays import BoolArray, FloatArray, IndexArray, IntArray, column_slices, new_array
from headroles.errors import StatisticsError

Alternative: TypeAlias = Literal["greater", "less", "two-sided"]

S = TypeVar("S", bound="Sample")
OK, UNTESTABLE, DEGENERATE = "", "untestable", "degenerate"


# Checks of what callers give


def check_values(values: ArrayLike, name: str = "values") -> NDArray[np.floating]:
    """Return ``values`` as a real array (examples, tests) without infinities, NaN for missing."""
    data = np.asarray(values)
    if data.dtype.kind not in "fiub":
        raise StatisticsError(f"{name} have the type {data.dtype}; give real numbers")
    if data.ndim != 2:
        raise StatisticsError(f"{name} have {data.ndim} dimensions; give (examples, tests)")
    if any(np.isinf(data[:, columns]).any() for columns in column_slices(*data.shape)):
        raise StatisticsError(f"{name} include an infinity; remove it, or mark it as missing (NaN)")
    return data if data.dtype.kind == "f" else data.astype(np.float64)


def check_thresholds(threshold: ArrayLike, n_tests: int) -> FloatArray:
    """Return one finite threshold per test (tests,), from one number or one for each test."""
    try:
        thresholds = np.asarray(threshold, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise StatisticsError(f"the threshold is {threshold!r}; give numbers") from error
    if thresholds.shape not in ((), (1,), (n_tests,)):
        raise StatisticsError(
            f"thresholds have shape {thresholds.shape}; give one number, or one for each of the "
            f"{n_tests} tests"
        )
    if not np.isfinite(thresholds).all():
        raise StatisticsError("a threshold is infinite or missing (NaN); give finite numbers")
    return np.broadcast_to(thresholds, (n_tests,))


# Moments


@dataclass(frozen=True)
class Moments:
    """One entry per test, all arrays (tests,); NaN if undefined.

    ``n`` counts the values present and ``n_clusters`` their clusters (as many as values without
    clusters). ``sd`` is the deviation of single examples, ``standard_error`` the cluster-robust
    deviation of the mean, and ``df`` its degrees of freedom: ``n_clusters`` - 1 for clusters of one
    size, and fewer the more their sizes differ.

    ``status`` is ``""``; ``"untestable"`` (fewer than two values, fewer than two clusters, or
    clusters that cancel so that no error can be estimated); or ``"degenerate"`` (all values equal).
    """

    n: IntArray
    n_clusters: IntArray
    mean: FloatArray
    sd: FloatArray
    standard_error: FloatArray
    df: FloatArray
    status: NDArray[np.str_]

    def effect_size(self, threshold: ArrayLike) -> FloatArray:
        """Return (mean - threshold) / sd (tests,), with clusters or without; NaN without an sd."""
        sd = np.where((self.sd > 0) & (self.status != DEGENERATE), self.sd, np.nan)
        return np.asarray((self.mean - np.asarray(threshold)) / sd)

    @property
    def effective_clusters(self) -> FloatArray:
        """Effective number of clusters (tests,), as if of one size: ``df`` + 1."""
        return np.asarray(np.round(self.df + 1, 9))

    @classmethod
    def empty(cls, n_tests: int) -> Moments:
        """Create moments of ``n_tests`` columns without values, to be filled in."""
        return cls(
            n=np.zeros(n_tests, dtype=np.int64),
            n_clusters=np.zeros(n_tests, dtype=np.int64),
            mean=np.full(n_tests, np.nan),
            sd=np.full(n_tests, np.nan),
            standard_error=np.full(n_tests, np.nan),
            df=np.full(n_tests, np.nan),
            status=np.full(n_tests, UNTESTABLE, dtype=f"U{len(UNTESTABLE)}"),
        )

    @property
    def size(self) -> FloatArray:
        """Size (tests,) of the values: the larger of their mean and their deviation."""
        return np.asarray(np.fmax(np.abs(self.mean), self.sd))

    def set_status(self, rounding: FloatArray) -> None:
        """Set the status of each column; ``rounding`` (tests,) bounds the error of a value."""
        enough = (self.n >= 2) & (self.n_clusters >= 2)
        self.status[enough] = UNTESTABLE
        self.status[enough & self._tells(rounding)] = OK
        self.status[enough & self.are_alike(rounding)] = DEGENERATE

    def are_alike(self, rounding: FloatArray) -> BoolArray:
        """Tell which columns (tests,) vary by rounding only, by single values or by clusters.

        Clusters that deviate by rounding cancel if independent values with the deviation of the
        column would have left more; else all that they can tell is rounding.
        """
        left = self.sd * np.sqrt(self.n_clusters / np.maximum(self.n, 1))
        return np.asarray((self.sd <= rounding) | ~self._tells(rounding) & (left <= rounding))

    def _tells(self, rounding: FloatArray) -> BoolArray:
        """Tell which columns (tests,) have clusters that deviate by more than rounding."""
        # for clusters of one this is the deviation of single values
        return np.asarray(self.standard_error * np.sqrt(self.n_clusters) > rounding)

    def take(self, columns: IndexArray | slice) -> Moments:
        """Return the moments of some columns."""
        return Moments(*(getattr(self, field.name)[columns] for field in fields(self)))


def describe(data: FloatArray, codes: IndexArray, ddof: int, resolution: float) -> Moments:
    """Compute the moments of columns without missing values."""
    n, n_tests = data.shape
    n_clusters = int(codes.max()) + 1 if n else 0
    moments = Moments.empty(n_tests)
    moments.n[:], moments.n_clusters[:] = n, n_clusters
    if n:
        moments.mean[:] = data.mean(axis=0)
    if n < 2:
        return moments
    sd = data.std(axis=0, ddof=ddof)
    moments.sd[:] = sd
    if n_clusters < 2:
        return moments
    moments.standard_error[:] = _standard_error(data, codes, n_clusters, moments.mean, sd, ddof)
    moments.df[:] = _degrees_of_freedom(codes)
    moments.set_status(resolution * moments.size)
    return moments


def _standard_error(
    data: FloatArray,
    codes: IndexArray,
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
        # a large cluster pulls the mean towards itself, so its residuals are too small
        residuals /= np.sqrt(1 - np.bincount(codes) / n)[:, None]
    return np.asarray(np.sqrt((residuals**2).sum(axis=0)) / n)


def _degrees_of_freedom(codes: IndexArray) -> float:
    """Return the degrees of freedom of Bell and McCaffrey for clusters ``codes`` of values."""
    sizes = np.bincount(codes)
    # exact, where the formula below leaves a rounding error
    if (sizes == sizes[0]).all():
        return len(sizes) - 1.0
    shares = sizes / sizes.sum()
    q = shares**2 / (1 - shares)
    return float(1 / ((shares**2).sum() + q.sum() ** 2 - (q**2).sum()))


def renumber(labels: NDArray[np.generic]) -> IndexArray:
    """Replace labels (n,) by 0 to (number of distinct labels - 1)."""
    return np.asarray(np.unique(labels, return_inverse=True)[1].reshape(-1), dtype=np.intp)


def cluster_sums(data: FloatArray, codes: IndexArray) -> FloatArray:
    """Sum the rows (examples, tests) of each cluster to (clusters, tests).

    ``codes`` must use every number from 0 on. A cluster of one gives its row unchanged.
    """
    # stable, so that terms are added in the order of examples: other orders have other last bits
    if (np.diff(codes) < 0).any():
        order = np.argsort(codes, kind="stable")
        data, codes = data[order], codes[order]
    sums: FloatArray = np.add.reduceat(data, np.flatnonzero(np.diff(codes, prepend=-1)), axis=0)
    return sums


def resolution_of(data: NDArray[np.floating]) -> float:
    """Return the relative difference of this type's numbers below which it may be rounding."""
    return 8 * float(np.finfo(data.dtype).eps)


# Samples


@dataclass(frozen=True, eq=False)
class Sample:
    """Checked ``values`` (examples, tests), NaN where an example has none, and their ``clusters``.

    ``clusters`` (examples,) are numbered from 0. ``ddof`` is that of standard deviations.
    """

    values: NDArray[np.floating]
    clusters: IndexArray
    ddof: int = 1

    @classmethod
    def from_values(
        cls,
        values: ArrayLike,
        clusters: ArrayLike | None = None,
        ddof: int = 1,
    ) -> Sample:
        """Make a sample of values.

        Args:
            values: (examples, tests); NaN where an example has no value.
            clusters: (examples,) integer or string label of each example's cluster, such as its
                document; None if the examples are independent.
            ddof: 1 for the sample standard deviation; 0 for the one that the released notebooks
                of the published method use, which inflates t by sqrt(n / (n - 1)).

        Raises:
            StatisticsError: ``values`` is not two-dimensional, not numeric or has an infinity;
                ``clusters`` do not fit.
        """
        data = check_values(values)
        labels = np.arange(len(data)) if clusters is None else np.asarray(clusters)
        if labels.shape != (len(data),):
            raise StatisticsError(
                f"clusters have shape {labels.shape}; give ({len(data)},), one for each example"
            )
        if labels.dtype.kind not in "iubUS":
            raise StatisticsError(
                f"clusters have the type {labels.dtype}; label them with integers or strings"
            )
        return cls(data, renumber(labels), ddof)

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return len(self.values)

    @cached_property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.clusters.max(initial=-1)) + 1

    @property
    def n_tests(self) -> int:
        """Number of tests."""
        return int(self.values.shape[1])

    @property
    def column_slices(self) -> list[slice]:
        """Slices of the columns that are small enough to compute with at once; mostly one."""
        return column_slices(*self.values.shape)

    @classmethod
    def from_moments(cls, moments: Moments, skewness: FloatArray | None = None) -> Self:
        """Make a sample that is known by its moments alone, for t-tests and t intervals."""
        nothing = np.empty((0, len(moments.n))), np.empty(0, np.intp)
        skewness = np.full(len(moments.n), np.nan) if skewness is None else skewness
        n_clusters = int(moments.n_clusters.max(initial=0))
        return _knowing(cls(*nothing), moments=moments, skewness=skewness, n_clusters=n_clusters)

    @classmethod
    def joined(cls, samples: Sequence[Sample]) -> Self:
        """Join the moments of samples of different examples: their tests side by side."""
        parts = zip(*(vars(sample.moments).values() for sample in samples), strict=True)
        moments = Moments(*map(np.concatenate, parts))
        return cls.from_moments(moments, np.concatenate([sample.skewness for sample in samples]))

    def take(self, columns: IndexArray | slice) -> Sample:
        """Return the tests at ``columns``, with moments that were computed already."""
        part = replace(self, values=self.values[:, columns])
        if "moments" in self.__dict__:
            _knowing(part, moments=self.moments.take(columns))
        return part

    def with_means(self, means: FloatArray) -> Sample:
        """Return the sample with these ``means`` (tests,) in place of those of the values."""
        return _knowing(replace(self), moments=replace(self.moments, mean=means))

    def without_rounding(self, rounding: FloatArray) -> Sample:
        """Return the sample without differences that are only rounding.

        Each value may be off by ``rounding`` (tests,), whatever the type of the array: differences
        of float32 numbers are as rough in float64. Columns that vary by less get their mean in
        place of all values, as do those whose clusters can tell rounding only (`are_alike`);
        columns whose residuals cancel within all clusters are untestable.
        """
        moments = self.moments.take(np.arange(self.n_tests))
        alike = moments.are_alike(rounding) & (rounding > 0)
        values = self.values
        if alike.any():
            values = new_array(values.shape, values.dtype)
            values[...] = self.values
            replaced = values[:, alike]
            values[:, alike] = np.where(np.isnan(replaced), np.nan, moments.mean[alike])
        moments.mean[alike] = moments.mean[alike].astype(values.dtype)
        moments.sd[alike & (moments.n >= 2)] = 0
        moments.standard_error[alike & (moments.n_clusters >= 2)] = 0
        moments.set_status(np.fmax(rounding, resolution_of(values) * moments.size))
        statistics: dict[str, Any] = {"moments": moments, "n_clusters": self.n_clusters}
        if "skewness" in self.__dict__:
            statistics["skewness"] = np.where(alike, np.nan, self.skewness)
        return _knowing(replace(self, values=values), **statistics)

    @cached_property
    def moments(self) -> Moments:
        """Moments of all columns.

        With clusters the standard error is the cluster-robust one of a mean with the correction CR2
        (Bell and McCaffrey 2002), which is unbiased if values are independent:

            SE^2 = sum over clusters of (sum of the cluster's residuals)^2 / (n^2 (1 - s_g))

        s_g = n_g / n being the shares of the clusters in the values of the column. Its degrees of
        freedom are Bell and McCaffrey's, those of the chi-squared distribution of the same mean and
        variance: with q_g = s_g^2 / (1 - s_g),

            df = 1 / (sum of s_g^2 + (sum of q_g)^2 - sum of q_g^2)

        For G clusters of one size these are the usual G / (G - 1) and G - 1. With ``ddof`` 0 the
        terms 1 - s_g are omitted.
        """
        moments = Moments.empty(self.n_tests)
        resolution = resolution_of(self.values)
        for columns, present in _columns_with_the_same_gaps(self.values):
            codes = renumber(self.clusters[present])
            for part in column_slices(len(present), len(columns)):
                complete = self.values[np.ix_(present, columns[part])].astype(np.float64)
                described = describe(complete, codes, self.ddof, resolution)
                for name, array in vars(moments).items():
                    array[columns[part]] = getattr(described, name)
        return moments

    @cached_property
    def skewness(self) -> FloatArray:
        """Skewness (tests,) of what a t-test adds up, NaN if all is equal.

        These are the values, or with clusters the sums of the residuals of each.
        """
        mean = self.moments.mean.astype(self.values.dtype)
        second, third = np.empty((2, self.n_tests))
        for part in self.column_slices:
            # in the type of the values: skewness is read to a digit or two
            centred = np.nan_to_num(self.values[:, part] - mean[part])
            if self.n_clusters < self.n_examples:
                centred = cluster_sums(centred, self.clusters)
            squares = centred * centred
            second[part] = squares.sum(axis=0, dtype=np.float64)
            third[part] = (squares * centred).sum(axis=0, dtype=np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            n = self.moments.n_clusters
            return np.asarray(third / n / (second / n) ** 1.5)


def _knowing(sample: S, **statistics: Any) -> S:
    """Set properties of a sample that are known without being computed."""
    sample.__dict__.update(statistics)
    return sample


def _columns_with_the_same_gaps(
    data: NDArray[np.floating],
) -> Iterator[tuple[IndexArray, IndexArray]]:
    """Yield (columns, rows with values) for every pattern of missing values."""
    packed = [
        np.packbits(~np.isnan(data[:, columns]), axis=0) for columns in column_slices(*data.shape)
    ]
    patterns, which = np.unique(np.concatenate(packed, axis=1), axis=1, return_inverse=True)
    which = which.reshape(-1)
    for pattern in range(patterns.shape[1]):
        columns = np.flatnonzero(which == pattern)
        yield columns, np.flatnonzero(~np.isnan(data[:, columns[0]]))


# Bounds of values, for bets


@dataclass(frozen=True, eq=False)
class Bounds:
    """Bounds of values, known before the data.

    Tests have one of K ``kinds`` (tests,). ``low`` and ``high`` (examples, K) bound the value of
    each example; an example with unknown bounds, NaN, is not part of the test. ``least`` and
    ``most`` (K,) bound the values of all possible examples, infinite if unknown. Examples whose
    value could be farther than ``cap`` from the threshold are downweighted.
    """

    low: FloatArray
    high: FloatArray
    least: FloatArray
    most: FloatArray
    kinds: IndexArray
    cap: float

    def ends_beyond(self, side: FloatArray) -> BoolArray:
        """Tell whether a bound of all possible examples lies opposite to ``side`` (tests,).

        That is the upper one for tests with a negative side.
        """
        farthest = np.where(side > 0, self.least[self.kinds], self.most[self.kinds])
        return np.isfinite(farthest)

    def take(self, columns: IndexArray | slice) -> Bounds:
        """Return the bounds of some tests."""
        return replace(self, kinds=self.kinds[columns])
