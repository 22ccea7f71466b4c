"""Moments of many columns: means, deviations, and cluster-robust errors."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import DTypeLike, NDArray

from headroles.arrays import BoolArray, FloatArray, IndexArray, IntArray
from headroles.inference._columns import DEGENERATE, OK, UNTESTABLE, cluster_sums


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

    def put(self, columns: IndexArray, part: Moments) -> None:
        """Fill in the moments of some columns."""
        for one in fields(self):
            getattr(self, one.name)[columns] = getattr(part, one.name)

    def set_status(self, resolution: float) -> None:
        """Set the status of each column from its other moments."""
        size = np.abs(self.mean)
        varies = self.sd > resolution * np.maximum(size, np.finfo(float).tiny)
        # for clusters of one this is the same comparison as that of the deviation above
        error = self.standard_error * np.sqrt(self.n_clusters)
        # residuals that cancel within all clusters leave an error that is rounding
        tells = error > resolution * np.maximum(size, self.sd)
        enough = (self.n >= 2) & (self.n_clusters >= 2)
        self.status[enough & varies & tells] = OK
        self.status[enough & ~varies] = DEGENERATE

    def flattened(self, columns: BoolArray, dtype: DTypeLike, resolution: float) -> Moments:
        """Return the moments without deviation in ``columns``, whose means have type ``dtype``."""
        moments = self.take(np.arange(len(self.n)))
        moments.mean[columns] = moments.mean[columns].astype(dtype)
        moments.sd[columns & (moments.n >= 2)] = 0
        moments.standard_error[columns & (moments.n_clusters >= 2)] = 0
        moments.set_status(resolution)
        return moments

    def take(self, columns: IndexArray | slice) -> Moments:
        """Return the moments of some columns."""
        return Moments(*(getattr(self, one.name)[columns] for one in fields(self)))


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
    error = _standard_error(data, codes, n_clusters, moments.mean, sd, ddof)
    moments.standard_error[:] = error
    moments.df[:] = _degrees_of_freedom(codes)
    moments.set_status(resolution)
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
