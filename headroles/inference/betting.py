"""Tests of means by betting: valid for any number of examples and any distribution.

Values with known bounds need no further assumption (Waudby-Smith and Ramdas 2024, "Estimating means
of bounded random variables by betting"). A bettor against H0, mean <= m, stakes the share g of
their capital on every unit (a cluster, or an example) being above m:

    E = 1/12 * sum over j of  prod over units u of (1 + g_j D_u / R),   D_u = mean of w_i (X_i - m)

where R is the most that D_u can be below 0. Under H0 the expectation of E is at most 1, so E
exceeds 1 / alpha with probability alpha at most: p = min(1, 1 / E) is a p-value (Markov). Twelve
stakes g_j from 0.99 down to 0.001, a geometric sequence, are bet side by side, since the best stake
is unknown. There is no seed, and the order of the units does not matter.

Bounds of a single example far from m would make R large for all, so the examples have weights w_i =
min(1, cap / farthest bound from m). The tested mean is thus a weighted mean, over units that count
equally.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headroles.arrays import FloatArray, IndexArray
from headroles.errors import StatisticsError
from headroles.inference.sample import Alternative, Bounds, Sample, check_thresholds, cluster_sums

STAKES = 0.99 * (0.99 / 0.001) ** (-np.arange(12) / 11)
"""Shares of the capital that are staked, side by side."""
ROUNDING = 1e-9
"""Rounding error of sums of payoffs, relative to their reach."""
SLACK = 0.01
"""Share of its range by which a value may exceed it, as values of half precision do."""
IN_CACHE = 2**15
"""Values that are computed with at once: all at once would pass through memory at each step."""


@dataclass(frozen=True)
class Bets:
    """Bets of both directions, all arrays (tests,); NaN for tests of fewer than two units.

    ``mean`` is the weighted mean that is tested. ``above`` and ``below`` are the natural logarithms
    of E against H0 that it is at most, or at least, the threshold.
    """

    mean: FloatArray
    above: FloatArray
    below: FloatArray

    def log_e(self, alternative: Alternative) -> FloatArray:
        """Return the logarithm of E of H1, of both sides with half of the capital on each."""
        if alternative == "two-sided":
            return np.asarray(np.logaddexp(self.above, self.below) - np.log(2))
        return self.above if alternative == "greater" else self.below

    def p_value(self, alternative: Alternative) -> FloatArray:
        """Return the p-values (tests,) of H1."""
        return p_of_bets(self.log_e(alternative))


def p_of_bets(log_e: FloatArray) -> FloatArray:
    """Return p-values from the logarithm of E."""
    return np.asarray(np.exp(-np.maximum(log_e, 0)))


def bet(sample: Sample, threshold: FloatArray, bounds: Bounds) -> Bets:
    """Bet that the weighted mean of every column is above, and below, its threshold (tests,).

    Units are taken to be independent draws; their distribution is arbitrary, and the tests hold for
    any dependence between columns.

    Raises StatisticsError for bounds that a value exceeds, or that exceed those of all examples.

    >>> one = np.ones((1, 1))
    >>> bounds = Bounds(np.zeros((9, 1)), np.ones((9, 1)), 0 * one[0], one[0], np.array([0]), 1)
    >>> bets = bet(Sample.from_values(np.full((9, 1), 0.9)), np.array([0.5]), bounds)
    >>> round(float(bets.p_value("greater")[0]), 4)
    0.0515
    """
    beyond = np.fmax(bounds.least - bounds.low, bounds.high - bounds.most)
    if (beyond > SLACK).any():
        raise StatisticsError(
            f"bounds of an example lie {np.nanmax(beyond):g} outside of those of all examples; "
            "widen least and most"
        )
    limits = check_thresholds(threshold, sample.n_tests)
    mean, above, below = np.empty((3, sample.n_tests))
    for columns in sample.column_slices:
        mean[columns], above[columns], below[columns] = _bet(
            sample.take(columns), limits[columns], bounds.take(columns)
        )
    return Bets(mean, above, below)


def _bet(sample: Sample, limits: FloatArray, bounds: Bounds) -> tuple[FloatArray, ...]:
    """Return the tested mean and both logarithms of E, of tests that memory holds at once."""
    payoffs, sizes, total = np.zeros((3, sample.n_clusters, sample.n_tests))
    # tests of one kind share their bounds, which would take a column for each test
    for kind in np.unique(bounds.kinds):
        columns = np.flatnonzero(bounds.kinds == kind)
        weighted, weights = _weighted(sample, columns, kind, limits[columns], bounds)
        payoffs[:, columns] = cluster_sums(weighted, sample.clusters)
        total[:, columns] = cluster_sums(weights, sample.clusters)
        sizes[:, columns] = cluster_sums((weights > 0).astype(np.float64), sample.clusters)
    order = np.argsort(np.unique(sample.clusters, return_index=True)[1])  # as they first appear
    payoffs, sizes, total = payoffs[order], sizes[order], total[order]
    size = np.maximum(sizes, 1)
    payoffs /= size
    log_e = []
    for side, farthest in (
        (1, limits - bounds.least[bounds.kinds]),
        (-1, bounds.most[bounds.kinds] - limits),
    ):
        # if no value can be beyond the mean, any reach is valid
        reach = np.where(farthest > ROUNDING, np.minimum(farthest, bounds.cap), bounds.cap)
        shares = side * payoffs / reach
        # stake by stake: all at once would take twelve times the memory of the payoffs
        logs = np.stack([np.log1p(stake * shares).sum(axis=0) for stake in STAKES])
        capital = np.logaddexp.reduce(logs, axis=0) - np.log(len(STAKES))
        log_e.append(np.where((sizes > 0).sum(axis=0) >= 2, capital, np.nan))
    with np.errstate(invalid="ignore"):
        mean = limits + payoffs.sum(axis=0) / (total / size).sum(axis=0)
    mean[np.abs(mean) < ROUNDING * np.abs(limits)] = 0  # what cancels a threshold leaves rounding
    return mean, *log_e


def _weighted(
    sample: Sample, columns: IndexArray, kind: int, limits: FloatArray, bounds: Bounds
) -> tuple[FloatArray, FloatArray]:
    """Return w (X - m) and w of the tests of one kind (examples, tests), 0 for missing values."""
    distances, weights = np.empty((2, sample.n_examples, len(columns)))
    step = max(1, IN_CACHE // len(columns))
    for first in range(0, sample.n_examples, step):
        rows = slice(first, first + step)
        low, high = bounds.low[rows, kind, None], bounds.high[rows, kind, None]
        values = sample.values[rows, columns].astype(np.float64)
        there = ~np.isnan(values) & ~np.isnan(low)
        width = np.where(there, high - low, 0)
        outside = np.where(there, np.maximum(low - values, values - high), 0)
        if (outside > SLACK * np.maximum(width, 1)).any():
            raise StatisticsError(
                f"a value lies {outside.max():g} outside of its bounds; give bounds of these values"
            )
        # weights follow from bounds alone, known before the values, so that bets stay fair
        farthest = np.maximum(limits - low, high - limits)
        weights[rows] = np.where(there, bounds.cap / np.maximum(farthest, bounds.cap), 0)
        distances[rows] = np.where(there, np.clip(values, low, high) - limits, 0) * weights[rows]
    return distances, weights
