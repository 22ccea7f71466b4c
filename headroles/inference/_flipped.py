"""Statistics of samples whose clusters have their signs flipped.

Flips are cheap for the following reason. For one column let D_g be the sum of (value - threshold)
in cluster g, n_g its number of values, n and G the numbers of values and clusters, and s_g the
signs. Write

    T = sum s_g D_g,   Q = sum D_g^2,   A = sum s_g n_g D_g,   N = sum n_g^2.

The flipped data have the mean m = T / n and cluster sums of residuals s_g D_g - n_g m, whose
squares add up to S = Q - 2 m A + m^2 N: only T and A depend on the flip, and both are products of a
matrix of signs with a matrix of sums. The cluster-robust statistic is t = T / sqrt(G / (G - 1) *
S). It is computed through

    r = T / sqrt(G S + T^2),   t = sqrt(G - 1) * r / sqrt(1 - r^2),

which grows with t but stays within [-1, 1] and keeps its digits where S is nearly 0. If all
clusters have the same size, then G S + T^2 = G Q and one product is enough; clusters of one are the
ordinary t-test. Products are in float64: on two cores float32 is a third faster at best, and its
rounding could break the ties that the count of flips must keep.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headroles.arrays import FloatArray, IndexArray, IntArray
from headroles.inference._columns import OK, Seed, check_resamples
from headroles.inference.ranks import p_of_draws
from headroles.inference.sample import Sample

_NUMBERS_AT_ONCE = 2**20
"""Limit of a chunk of flips: arrays of 8 MiB, large enough for fast products."""


@dataclass(frozen=True)
class SignFlips:
    """``n_flips`` vectors of signs for ``n_clusters`` clusters, the same for every test.

    ``exact`` means that they are all possible sign vectors, each once, including the one that
    changes nothing.
    """

    bits: NDArray[np.uint8]
    n_flips: int
    n_clusters: int
    exact: bool

    def chunks(self, n_tests: int) -> Iterator[FloatArray]:
        """Yield the signs, +1 and -1, as arrays (some flips, clusters), for work on ``n_tests``."""
        step = max(1, _NUMBERS_AT_ONCE // max(self.n_clusters, n_tests, 1))
        for start in range(0, self.n_flips, step):
            bits = np.unpackbits(self.bits[start : start + step], axis=1, count=self.n_clusters)
            yield np.asarray(1.0 - 2.0 * bits, dtype=np.float64)

    def p_values(self, reached: IntArray) -> FloatArray:
        """Compute p-values from the number of flips that reached the observed statistic."""
        return p_of_draws(reached, self.n_flips, complete=self.exact)


def sign_flips(n_clusters: int, n_resamples: int, seed: Seed) -> SignFlips:
    """Return all sign vectors if they are at most ``n_resamples``, else that many random ones."""
    check_resamples(n_resamples)
    width = -(-n_clusters // 8)
    if 2**n_clusters <= n_resamples:
        return all_sign_flips(n_clusters)
    bits = np.random.default_rng(seed).integers(0, 256, (n_resamples, width), dtype=np.uint8)
    return SignFlips(bits, n_resamples, n_clusters, exact=False)


def all_sign_flips(n_clusters: int) -> SignFlips:
    """Return all 2^n_clusters sign vectors."""
    numbers = np.arange(2**n_clusters)[:, None]
    bits = (numbers >> np.arange(n_clusters)) & 1
    packed = np.packbits(bits.astype(np.uint8), axis=1)
    return SignFlips(packed, 2**n_clusters, n_clusters, exact=True)


@dataclass(frozen=True)
class FlippedTests:
    """The testable columns, reduced to the sums that sign flips need.

    ``sums`` (clusters, tests) are D_g / sqrt(G Q), 0 where a cluster has no value, and ``scale``
    (tests,) is sqrt(G Q). ``uneven`` lists the tests whose clusters differ in size; for these,
    ``sized`` (clusters, uneven) are n_g D_g / sqrt(G Q), and ``cross`` and ``square`` the factors
    of T A and T^2 in the denominator of r.
    """

    columns: IndexArray
    n_columns: int
    n_clusters_of: IntArray
    sums: FloatArray
    scale: FloatArray
    sizes: FloatArray
    uneven: IndexArray
    sized: FloatArray
    cross: FloatArray
    square: FloatArray

    @classmethod
    def of(cls, sample: Sample, centre: ArrayLike) -> FlippedTests:
        """Reduce the testable columns of a sample, to be flipped about ``centre``."""
        ok = sample.moments.status == OK
        columns = np.flatnonzero(ok)
        sums, sizes = sample.about(centre)[:, columns], sample.cluster_sizes[:, columns]
        return cls._from_sums(columns, len(ok), sums, sizes)

    @classmethod
    def _from_sums(
        cls, columns: IndexArray, n_columns: int, sums: FloatArray, sizes: FloatArray
    ) -> FlippedTests:
        n_clusters = (sizes > 0).sum(axis=0)
        scale = np.sqrt(n_clusters * (sums**2).sum(axis=0))
        unit = sums / scale
        uneven = np.flatnonzero(((sizes > 0) & (sizes != sizes.max(axis=0, initial=0))).any(axis=0))
        some, n_of_some = sizes[:, uneven], n_clusters[uneven]
        n = some.sum(axis=0)
        return cls(
            columns=columns,
            n_columns=n_columns,
            n_clusters_of=n_clusters,
            sums=unit,
            scale=scale,
            sizes=sizes,
            uneven=uneven,
            sized=some * unit[:, uneven],
            cross=2 * n_of_some / n,
            square=1 + n_of_some * (some**2).sum(axis=0) / n**2,
        )

    @property
    def n_tests(self) -> int:
        return len(self.columns)

    @property
    def n_clusters(self) -> int:
        return len(self.sums)

    def take(self, order: IndexArray) -> FlippedTests:
        """Return the tests in another order."""
        return self._from_sums(
            self.columns[order], self.n_columns, self.sums[:, order], self.sizes[:, order]
        )

    def correlations(self, signs: FloatArray) -> FloatArray:
        """Return r (flips, tests) for signs (flips, clusters)."""
        r: FloatArray = signs @ self.sums
        if len(self.uneven):
            where = slice(None) if len(self.uneven) == self.n_tests else self.uneven
            total = r[:, where]
            # G S + T^2 = 1 - cross T A + square T^2, in place: each pass over memory costs time
            squares = signs @ self.sized
            squares *= -self.cross
            squares += self.square * total
            squares *= total
            squares += 1
            np.maximum(squares, np.finfo(float).tiny, out=squares)
            r[:, where] = total / np.sqrt(squares, out=squares)
        return r

    def observed(self) -> FloatArray:
        """Return r (tests,) of the unflipped data."""
        return np.asarray(self.correlations(np.ones((1, self.n_clusters)))[0])

    def standard_error(self, n: IntArray) -> FloatArray:
        """Return the standard errors (tests,) of means of ``n`` values in t of flips."""
        return np.asarray(self.scale / np.sqrt(self.n_clusters_of - 1) / n)

    def comparable(self, r: FloatArray) -> FloatArray:
        """Return values that order flips and tests as t does; r itself if cluster numbers agree."""
        alike = bool((self.n_clusters_of == self.n_clusters_of[:1]).all())
        return r if alike else t_of(r, self.n_clusters_of)

    def spread(self, p_values: FloatArray) -> FloatArray:
        """Place the p-values of these tests at their columns, with NaN at all others."""
        everywhere = np.full(self.n_columns, np.nan)
        everywhere[self.columns] = p_values
        return everywhere


def t_of(r: FloatArray, n_clusters: IntArray) -> FloatArray:
    """Convert r to t (..., tests); infinite if residuals are 0."""
    t = np.multiply(r, r)
    np.subtract(1, t, out=t)
    np.maximum(t, 0, out=t)
    with np.errstate(divide="ignore"):
        np.divide(n_clusters - 1, t, out=t)
    np.sqrt(t, out=t)
    return np.multiply(t, r, out=t)
