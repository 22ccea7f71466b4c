"""Moments of many columns: means, deviations, and errors that are robust to clusters."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import DTypeLike, NDArray

from headroles.inference._columns import DEGENERATE, OK, UNTESTABLE, FloatArray, cluster_sums


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

    def settle(self, resolution: float) -> None:
        """Say which columns can be tested, all else being known."""
        size = np.abs(self.mean)
        varies = self.sd > resolution * np.maximum(size, np.finfo(float).tiny)
        # Clusters of one make this the same comparison as that of the deviation above.
        error = self.standard_error * np.sqrt(self.n_clusters)
        tells = error > resolution * np.maximum(size, self.sd)
        enough = (self.n >= 2) & (self.n_clusters >= 2)
        self.status[enough & varies & tells] = OK
        self.status[enough & ~varies] = DEGENERATE

    def flattened(self, columns: NDArray[np.bool_], dtype: DTypeLike, resolution: float) -> Moments:
        """The same with no deviation in some columns, whose means are of type ``dtype``."""
        moments = self.take(np.arange(len(self.n)))
        moments.mean[columns] = moments.mean[columns].astype(dtype)
        moments.sd[columns & (moments.n >= 2)] = 0
        moments.standard_error[columns & (moments.n_clusters >= 2)] = 0
        moments.settle(resolution)
        return moments

    def take(self, columns: NDArray[np.intp]) -> Moments:
        """The moments of some columns."""
        return Moments(*(getattr(self, one.name)[columns] for one in fields(self)))


def describe(data: FloatArray, codes: NDArray[np.intp], ddof: int, resolution: float) -> Moments:
    """Moments of columns without missing values."""
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
    moments.settle(resolution)
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
