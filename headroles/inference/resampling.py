"""Sign-flip tests: one test at a time, and all together by step-down max-T.

If the values of a column scatter symmetrically about the threshold under H0, and clusters are
independent, then turning over the signs of all (value - threshold) of a cluster gives data that
were just as likely. Where the scatter is not symmetric the level still holds for many clusters,
because the statistic that is compared is studentised (Janssen 1999; Konietschke and Pauly 2014).

How flips are made cheap. For one column let D_g be the sum of (value - threshold) in cluster g,
n_g its number of values, n and G the numbers of values and clusters, and s_g the signs. Write

    T = sum s_g D_g,   Q = sum D_g^2,   A = sum s_g n_g D_g,   N = sum n_g^2.

The flipped data have the mean m = T / n and cluster sums of residuals s_g D_g - n_g m, whose
squares add up to S = Q - 2 m A + m^2 N: nothing but T and A depends on the flip, and both are
products of a matrix of signs with a matrix of sums. The cluster-robust statistic is
t = T / sqrt(G / (G - 1) * S). It is computed through

    r = T / sqrt(G S + T^2),   t = sqrt(G - 1) * r / sqrt(1 - r^2),

which grows with t but stays within [-1, 1] and keeps its digits where S is nearly 0. If all
clusters have the same size, then G S + T^2 = G Q and one product is enough; clusters of one are
the ordinary t-test. Products are in float64: on two cores float32 is a third faster at best, and
its rounding could break the ties that the count of flips must keep.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headroles.errors import StatisticsError
from headroles.inference._columns import (
    OK,
    Alternative,
    FloatArray,
    Seed,
    check_alternative,
    check_share,
    check_thresholds,
)
from headroles.inference._signs import SignFlips, sign_flips
from headroles.inference.intervals import Intervals, open_intervals
from headroles.inference.sample import Sample

_TIE = 1e-12
"""Two r that differ by no more are the same: products sum in an order of their own."""


def sign_flip_test(
    values: ArrayLike | Sample,
    threshold: ArrayLike,
    *,
    n_resamples: int = 10_000,
    seed: Seed,
    clusters: ArrayLike | None = None,
    alternative: Alternative = "greater",
) -> FloatArray:
    """p-values (tests,) of the mean of every column by random sign flips of clusters.

    The statistic is the t of `t_test`. With B random flips p = (1 + number of flips whose
    statistic is at least the observed one) / (1 + B); if there are no more than ``n_resamples``
    ways to choose the signs, all are gone through and p is exact. ``"two-sided"`` compares |t|.
    The same seed gives the same flips, whatever the columns.

    Args:
        values: a sample, or what `Sample.of` makes one of, with ``clusters``. Missing values are
            left out column by column.
        threshold: the mean under H0, at its limit: a number, or (tests,) one for each test.
        n_resamples: number of random flips.
        seed: an integer, or a generator, which is advanced.
        clusters: as in `Sample.of`; all examples of a cluster are flipped together.
        alternative: ``"greater"``, ``"less"`` or ``"two-sided"``.

    Returns:
        p-values, NaN for columns that are untestable or degenerate in `Sample`.

    Raises:
        StatisticsError: what `t_test` refuses, or fewer than one resample.

    >>> float(sign_flip_test([[1.0], [2.0], [3.0]], threshold=0, seed=0)[0])  # 1 of 8 flips
    0.125
    """
    tests, flips = _prepare(values, threshold, n_resamples, seed, clusters, alternative)
    least = _fold(tests.observed(), alternative) - _TIE
    reached = np.zeros(tests.n_tests, dtype=np.int64)
    for signs in flips.chunks(tests.n_tests):
        reached += (_fold(tests.correlations(signs), alternative) >= least).sum(axis=0)
    return tests.spread(flips.p_values(reached))


def step_down_max_t(
    values: ArrayLike | Sample,
    threshold: ArrayLike,
    *,
    n_resamples: int = 10_000,
    seed: Seed,
    clusters: ArrayLike | None = None,
    alternative: Alternative = "greater",
) -> FloatArray:
    """Adjusted p-values (tests,) that control the family-wise error rate under dependence.

    Step-down max-T of Westfall and Young (1993; as an algorithm in Ge, Dudoit and Speed 2003),
    with sign flips for permutations: with the tests ordered by their observed t, largest first,
    the adjusted p-value of a test is the share of flips in which the largest t among it and all
    tests after it is at least its observed t, and no less than the adjusted p-value of the test
    before it. All tests share the same flips, so what is correlated counts as less than that
    many tests; Holm's correction, which must allow for the worst, is never told.

    Args, missing values and errors are those of ``sign_flip_test``. All columns are one family.
    Columns that are untestable or degenerate get NaN and do not count. Columns with fewer values
    have heavier tails of t and so weigh more in the maximum; the family-wise error rate holds.

    >>> table = [[1.0, 1.0, 5.0], [2.0, 2.0, 5.0], [3.0, -1.0, 5.0]]
    >>> step_down_max_t(table, threshold=0, seed=0).tolist()
    [0.25, 0.375, nan]
    """
    tests, flips = _prepare(values, threshold, n_resamples, seed, clusters, alternative)
    observed = tests.comparable(_fold(tests.observed(), alternative))
    order = np.argsort(observed, kind="stable")
    tests = tests.take(order)
    least = tests.comparable(_fold(tests.observed(), alternative) - _TIE)
    reached = np.zeros(tests.n_tests, dtype=np.int64)
    for signs in flips.chunks(tests.n_tests):
        t = tests.comparable(_fold(tests.correlations(signs), alternative))
        # From the smallest observed t upwards: the maximum over a test and all weaker ones.
        np.maximum.accumulate(t, axis=1, out=t)
        reached += (t >= least).sum(axis=0)
    p = flips.p_values(reached)
    return tests.spread(np.maximum.accumulate(p[::-1])[::-1])


def simultaneous_intervals(
    values: ArrayLike | Sample,
    *,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    seed: Seed,
    clusters: ArrayLike | None = None,
) -> Intervals:
    """Two-sided intervals that hold all means at once with probability ``confidence``.

    mean +- c * SE, with the standard error of `Sample` and one c for all columns: the
    quantile of the largest |t| over sign flips of the data, each column centred at its mean: the
    multiplier bootstrap of a maximum (Chernozhukov, Chetverikov and Kato 2013), with random signs
    where they have normal multipliers. The level holds in the limit of many clusters. c is the
    ceil(confidence * (B + 1))-th smallest of B maxima.

    Args:
        values: a sample, or what `Sample.of` makes one of, with ``clusters``.
        confidence: probability that all intervals hold together.
        n_resamples: number of random flips, or more than all there are.
        seed: an integer, or a generator, which is advanced.
        clusters: as in `Sample.of`.

    Returns:
        Intervals: NaN for untestable columns and the mean itself for degenerate ones; neither
        counts towards c. Limits are infinite if flips of very few clusters have no bounded t.

    Raises:
        StatisticsError: what `t_test` refuses, or too few resamples for the level.
    """
    check_share(confidence, "confidence")
    sample = Sample.of(values, clusters)
    moments, result = sample.moments, open_intervals(sample)
    centre = np.where(np.isnan(moments.mean), 0, moments.mean)
    tests = _Tests.of(sample, centre)
    flips = sign_flips(tests.n_clusters, n_resamples, seed)
    columns, critical = tests.columns, _critical_value(tests, flips, confidence)
    reach = critical * tests.standard_error(moments.n[columns])
    result.ci_low[columns] = moments.mean[columns] - reach
    result.ci_high[columns] = moments.mean[columns] + reach
    return result


@dataclass(frozen=True)
class _Tests:
    """The columns that can be tested, reduced to what sign flips need.

    ``sums`` (clusters, tests) are D_g / sqrt(G Q), 0 where a cluster has no value, and ``scale``
    (tests,) is sqrt(G Q). The rest speaks of the tests whose clusters differ in size, at the places
    ``uneven``: ``sized`` (clusters, uneven) are n_g D_g / sqrt(G Q), ``cross`` and ``square`` the
    factors of T A and T^2 in the denominator of r.
    """

    columns: NDArray[np.intp]
    n_columns: int
    n_clusters_of: NDArray[np.int64]
    sums: FloatArray
    scale: FloatArray
    sizes: FloatArray
    uneven: NDArray[np.intp]
    sized: FloatArray
    cross: FloatArray
    square: FloatArray

    @classmethod
    def of(cls, sample: Sample, centre: ArrayLike) -> _Tests:
        """Of the columns that can be tested, each less the ``centre`` that it is flipped about."""
        ok = sample.moments.status == OK
        columns = np.flatnonzero(ok)
        sums, sizes = sample.about(centre)[:, columns], sample.cluster_sizes[:, columns]
        return cls._from_sums(columns, len(ok), sums, sizes)

    @classmethod
    def _from_sums(
        cls, columns: NDArray[np.intp], n_columns: int, sums: FloatArray, sizes: FloatArray
    ) -> _Tests:
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

    def take(self, order: NDArray[np.intp]) -> _Tests:
        """The same tests in another order."""
        return self._from_sums(
            self.columns[order], self.n_columns, self.sums[:, order], self.sizes[:, order]
        )

    def correlations(self, signs: FloatArray) -> FloatArray:
        """Give r (flips, tests) for signs (flips, clusters)."""
        r: FloatArray = signs @ self.sums
        if len(self.uneven):
            where = slice(None) if len(self.uneven) == self.n_tests else self.uneven
            total = r[:, where]
            # G S + T^2 = 1 - cross T A + square T^2, in place: passes over memory cost time.
            squares = signs @ self.sized
            squares *= -self.cross
            squares += self.square * total
            squares *= total
            squares += 1
            np.maximum(squares, np.finfo(float).tiny, out=squares)
            r[:, where] = total / np.sqrt(squares, out=squares)
        return r

    def observed(self) -> FloatArray:
        """Give r (tests,) of the data as they are."""
        return np.asarray(self.correlations(np.ones((1, self.n_clusters)))[0])

    def standard_error(self, n: NDArray[np.int64]) -> FloatArray:
        """The error (tests,) that t of flips is made with, of means of ``n`` values."""
        return np.asarray(self.scale / np.sqrt(self.n_clusters_of - 1) / n)

    def comparable(self, r: FloatArray) -> FloatArray:
        """What orders flips and tests as t does: r itself if all tests have as many clusters."""
        alike = bool((self.n_clusters_of == self.n_clusters_of[:1]).all())
        return r if alike else _t_of(r, self.n_clusters_of)

    def spread(self, p_values: FloatArray) -> FloatArray:
        """p-values of these tests at their columns, NaN at all others."""
        everywhere = np.full(self.n_columns, np.nan)
        everywhere[self.columns] = p_values
        return everywhere


def _prepare(
    values: ArrayLike | Sample,
    threshold: ArrayLike,
    n_resamples: int,
    seed: Seed,
    clusters: ArrayLike | None,
    alternative: Alternative,
) -> tuple[_Tests, SignFlips]:
    """The opening of every test: options checked, columns that can be tested, and flips."""
    check_alternative(alternative)
    sample = Sample.of(values, clusters)
    tests = _Tests.of(sample, check_thresholds(threshold, sample.n_tests))
    return tests, sign_flips(tests.n_clusters, n_resamples, seed)


def _critical_value(tests: _Tests, flips: SignFlips, confidence: float) -> float:
    """The largest |t| of a flip is above this with probability 1 - ``confidence`` at most."""
    rank = math.ceil(confidence * (flips.n_flips + (0 if flips.exact else 1)))
    if rank > flips.n_flips:
        raise StatisticsError(
            f"{flips.n_flips} resamples are too few for confidence {confidence}; "
            f"use at least {math.ceil(confidence / (1 - confidence))}"
        )
    if not tests.n_tests:
        return math.nan
    largest = [
        _t_of(np.abs(tests.correlations(signs)), tests.n_clusters_of).max(axis=1)
        for signs in flips.chunks(tests.n_tests)
    ]
    return float(np.partition(np.concatenate(largest), rank - 1)[rank - 1])


def _fold(r: FloatArray, alternative: Alternative) -> FloatArray:
    """Turn r so that more speaks for H1."""
    if alternative == "two-sided":
        return np.abs(r)
    return r if alternative == "greater" else -r


def _t_of(r: FloatArray, n_clusters: NDArray[np.int64]) -> FloatArray:
    """Turn r into t (..., tests); infinite where nothing but the mean is left."""
    t = np.multiply(r, r)
    np.subtract(1, t, out=t)
    np.maximum(t, 0, out=t)
    with np.errstate(divide="ignore"):
        np.divide(n_clusters - 1, t, out=t)
    np.sqrt(t, out=t)
    return np.multiply(t, r, out=t)
