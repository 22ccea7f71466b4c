"""Tests of means by betting: valid at any number of examples, whatever the distribution.

Values that are known to be bounded need no further assumption (Waudby-Smith and Ramdas 2024,
"Estimating means of bounded random variables by betting"). Someone who bets against H0, mean <= m,
stakes the share g of what they have on every unit (a cluster, or an example) being above it:

    E = 1/12 * sum over j of  prod over units u of (1 + g_j D_u / R),   D_u = mean of w_i (X_i - m)

R being the most that D_u can be below 0. If H0 is true, E is 1 or less on average, and so it is
above 1 / alpha with probability alpha at most: p = min(1, 1 / E) is a p-value (Markov). Twelve
stakes g_j from 0.99 down to 0.001, a geometric sequence, are bet on side by side, as the best one
is not known. There is no seed, and the order of the units plays no part.

Bounds of an example's value that lie far from m would make R large for all: the examples of weight
w_i = min(1, cap / farthest bound from m) count less. What is tested is then a weighted mean, over
units that count the same each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headroles.errors import StatisticsError
from headroles.inference._columns import (
    Alternative,
    FloatArray,
    check_alternative,
    check_thresholds,
    cluster_sums,
)
from headroles.inference.sample import Sample

STAKES = 0.99 * (0.99 / 0.001) ** (-np.arange(12) / 11)
"""Shares that are staked, side by side."""
_ROUNDING = 1e-9
"""Relative to the reach of payoffs: what sums of them may be off by."""
_SLACK = 0.01
"""Values may lie this share of their range outside of it, as those of half precision do."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """What values lie between, known before the data.

    Tests have one of K ``kinds`` (tests,). ``low`` and ``high`` (examples, K) bound the value of
    each example; NaN where nothing is known, and then the example has no part in the test.
    ``least`` and ``most`` (K,) bound those of all examples there could be, infinite if nothing
    does. Examples count less whose value could be farther than ``cap`` from the threshold.
    """

    low: FloatArray
    high: FloatArray
    least: FloatArray
    most: FloatArray
    kinds: NDArray[np.intp]
    cap: float

    def take(self, columns: NDArray[np.intp]) -> Bounds:
        """The bounds of some tests."""
        return replace(self, kinds=self.kinds[columns])


@dataclass(frozen=True)
class BettingTest:
    """One entry per test, all arrays (tests,); NaN for tests of fewer than two units.

    ``mean`` is the weighted mean that is tested. ``log_e`` is the natural logarithm of E.
    """

    mean: FloatArray
    log_e: FloatArray
    p_value: FloatArray


@dataclass(frozen=True)
class Payoffs:
    """D (units, tests), 0 where a unit has no value.

    ``reach`` (2, tests) is how far D can be below 0, and above. ``mean`` (tests,) is the weighted
    mean, ``n_units`` (tests,) the number of units with a value.
    """

    payoffs: FloatArray
    reach: FloatArray
    mean: FloatArray
    n_units: NDArray[np.intp]


def betting_test(
    values: ArrayLike | Sample,
    threshold: ArrayLike,
    bounds: Bounds,
    *,
    clusters: ArrayLike | None = None,
    alternative: Alternative = "greater",
    n_population: int | None = None,
) -> BettingTest:
    """Test the weighted mean of every column against the threshold, by betting.

    Units are taken to be independent draws; nothing is asked of their distribution, and the tests
    hold for any dependence between columns. ``"two-sided"`` bets half on either side. Both sides
    are never above 1 together.

    Args:
        values: a sample, or what `Sample.of` makes one of, with ``clusters``.
        threshold: the mean under H0, at its limit: a number, or (tests,) one for each test.
        bounds: of the values.
        clusters: as in `Sample.of`.
        alternative: H1, as in `t_test`.
        n_population: None for a mean over all units there could be. Else that over so many units,
            from which those of the sample were drawn in the order in which they stand there, each
            at most once, all orders being equally likely.

    Raises:
        StatisticsError: what `Sample.of` refuses; bounds that do not fit, or that values break; a
            population smaller than the sample.

    >>> one = np.ones((1, 1))
    >>> bounds = Bounds(np.zeros((9, 1)), np.ones((9, 1)), 0 * one[0], one[0], np.array([0]), 1)
    >>> round(float(betting_test(np.full((9, 1), 0.9), 0.5, bounds).p_value[0]), 4)
    0.0515
    """
    check_alternative(alternative)
    found = payoffs_of(Sample.of(values, clusters), threshold, bounds)
    sides = {"greater": (1,), "less": (-1,), "two-sided": (1, -1)}[alternative]
    of_sides = [log_e_value(found, side, n_population) for side in sides]
    log_e = np.logaddexp.reduce(of_sides, axis=0) - np.log(len(sides))
    log_e = np.where(found.n_units >= 2, log_e, np.nan)
    return BettingTest(found.mean, log_e, np.exp(-np.maximum(log_e, 0)))


def log_e_value(found: Payoffs, side: int, n_population: int | None = None) -> FloatArray:
    """Logarithm of E (tests,) that the mean is above the threshold (``side`` 1), or below (-1)."""
    unit = side * found.payoffs / found.reach[0 if side > 0 else 1]
    if n_population is not None:
        return _log_e_without_replacement(unit, n_population)
    sums = [np.log1p(stake * unit).sum(axis=0) for stake in STAKES]
    return np.asarray(np.logaddexp.reduce(sums, axis=0) - np.log(len(STAKES)))


def _log_e_without_replacement(unit: FloatArray, n_population: int) -> FloatArray:
    """Logarithm of E of payoffs (units, tests), at least -1, in the order in which they were drawn.

    If those of all units add up to 0 or less, the units still to come have a mean of at most
    m = -(sum so far) / (number to come), and a stake may be 1 / (1 + m) times as large
    (Waudby-Smith and Ramdas 2024, section 5). Where m is below -1, H0 cannot be true.
    """
    n_drawn = len(unit)
    if n_drawn > n_population:
        raise StatisticsError(f"{n_drawn} units were drawn from a population of {n_population}")
    so_far = np.cumsum(unit, axis=0) - unit
    to_come = n_population - np.arange(n_drawn)
    mean = -so_far / to_come[:, None]
    room = 1 + mean
    relative = np.where(room > _ROUNDING, (unit - mean) / np.maximum(room, _ROUNDING), 0)
    sums = [np.log1p(stake * relative).sum(axis=0) for stake in STAKES]
    log_e = np.logaddexp.reduce(sums, axis=0) - np.log(len(STAKES))
    left = n_population - n_drawn
    refuted = (room < -_ROUNDING).any(axis=0) | (unit.sum(axis=0) > left + _ROUNDING)
    return np.asarray(np.where(refuted, np.inf, log_e))


def payoffs_of(sample: Sample, threshold: ArrayLike, bounds: Bounds) -> Payoffs:
    """What is bet on. Raises StatisticsError as `betting_test`."""
    limits = check_thresholds(threshold, sample.n_tests)
    _check_bounds(sample, bounds)
    n_units = int(sample.clusters.max(initial=-1)) + 1
    payoffs, sizes, total = np.zeros((3, n_units, sample.n_tests))
    for kind in np.unique(bounds.kinds):
        columns = np.flatnonzero(bounds.kinds == kind)
        weighted, weights = _weighted(sample, columns, kind, limits[columns], bounds)
        there = weights > 0
        payoffs[:, columns] = cluster_sums(weighted, sample.clusters)
        total[:, columns] = cluster_sums(weights, sample.clusters)
        sizes[:, columns] = cluster_sums(there.astype(np.float64), sample.clusters)
    order = np.argsort(np.unique(sample.clusters, return_index=True)[1])  # as they first appear
    payoffs, sizes, total = payoffs[order], sizes[order], total[order]
    size = np.maximum(sizes, 1)
    payoffs /= size
    with np.errstate(invalid="ignore"):
        mean = limits + payoffs.sum(axis=0) / (total / size).sum(axis=0)
    return Payoffs(payoffs, _reach(limits, bounds), mean, (sizes > 0).sum(axis=0))


def _weighted(
    sample: Sample, columns: NDArray[np.intp], kind: int, limits: FloatArray, bounds: Bounds
) -> tuple[FloatArray, FloatArray]:
    """Of tests of one kind w (X - m) and w, both (examples, tests), 0 where there is no value."""
    low, high = bounds.low[:, kind, None], bounds.high[:, kind, None]
    values = sample.values[:, columns].astype(np.float64)
    there = ~np.isnan(values) & ~np.isnan(low)
    width = np.where(there, high - low, 0)
    outside = np.where(there, np.maximum(low - values, values - high), 0)
    if (outside > _SLACK * np.maximum(width, 1)).any():
        raise StatisticsError(
            f"a value lies {outside.max():g} outside of its bounds; were they made together?"
        )
    farthest = np.maximum(limits - low, high - limits)
    weights = np.where(there, bounds.cap / np.maximum(farthest, bounds.cap), 0)
    distances = np.where(there, np.clip(values, low, high) - limits, 0)
    return weights * distances, weights


def _reach(limits: FloatArray, bounds: Bounds) -> FloatArray:
    """(2, tests): the most that w (m - X) and w (X - m) can be."""
    sides = (limits - bounds.least[bounds.kinds], bounds.most[bounds.kinds] - limits)
    # A mean that no value can be beyond is bet on at any reach.
    return np.array(
        [np.where(side > _ROUNDING, np.minimum(side, bounds.cap), bounds.cap) for side in sides]
    )


def _check_bounds(sample: Sample, bounds: Bounds) -> None:
    shape = (sample.n_examples, len(bounds.least))
    if bounds.low.shape != shape or bounds.high.shape != shape or bounds.most.shape != shape[1:]:
        raise StatisticsError(
            f"bounds have shapes {bounds.low.shape} and {bounds.high.shape} for "
            f"{sample.n_examples} examples and {len(bounds.least)} kinds"
        )
    if bounds.kinds.shape != (sample.n_tests,):
        raise StatisticsError(
            f"kinds have shape {bounds.kinds.shape} instead of ({sample.n_tests},)"
        )
    if not bounds.cap > 0:
        raise StatisticsError(f"the cap is {bounds.cap}; it must be above 0")
