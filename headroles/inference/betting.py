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

Bets proceed unit by unit and need only the capital so far: values may come in parts, with a test
after each part (`RunningBets`), at the cost of the new values alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headroles.arrays import FloatArray
from headroles.inference._columns import Alternative
from headroles.inference.payoffs import Bounds, payoffs_of
from headroles.inference.sample import Sample

STAKES = 0.99 * (0.99 / 0.001) ** (-np.arange(12) / 11)
"""Shares of the capital that are staked, side by side."""
_SIDES: dict[Alternative, tuple[int, ...]] = {"greater": (1,), "less": (-1,), "two-sided": (1, -1)}


@dataclass(frozen=True)
class BettingTest:
    """One entry per test, all arrays (tests,); NaN for tests of fewer than two units.

    ``mean`` is the weighted mean that is tested. ``log_e`` is the natural logarithm of E.
    """

    mean: FloatArray
    log_e: FloatArray
    p_value: FloatArray


class RunningBets:
    """Bets that the weighted mean of every column is above, or below, its threshold.

    Units are taken to be independent draws; their distribution is arbitrary, and the tests hold for
    any dependence between columns. Values may come in parts, each of whole new units. With a test
    after every part, the smallest p-value so far is valid too, whenever one stops (Ville's
    inequality). A test costs as much as its part.

    Args:
        threshold: (tests,), the mean of each test under H0, at its limit.

    >>> one = np.ones((1, 1))
    >>> bounds = Bounds(np.zeros((9, 1)), np.ones((9, 1)), 0 * one[0], one[0], np.array([0]), 1)
    >>> bets = RunningBets(np.array([0.5]))
    >>> bets.add(Sample.of(np.full((9, 1), 0.9)), bounds)
    >>> round(float(bets.test().p_value[0]), 4)
    0.0515
    """

    def __init__(self, threshold: FloatArray) -> None:
        n_tests = len(threshold)
        self._threshold = threshold
        # logarithm of the capital by stake and test, from one unit of money
        self._logs = {side: np.zeros((len(STAKES), n_tests)) for side in _SIDES["two-sided"]}
        self._n_units = np.zeros(n_tests, dtype=np.intp)
        self._paid, self._weight = np.zeros((2, n_tests))

    def add(self, sample: Sample, bounds: Bounds) -> None:
        """Bet on the units of a sample.

        Raises StatisticsError for bounds that do not fit or that a value exceeds.
        """
        for columns in sample.column_slices:
            found = payoffs_of(sample.take(columns), self._threshold[columns], bounds.take(columns))
            for side, of_stakes in self._logs.items():
                payoffs = side * found.payoffs / found.reach[0 if side > 0 else 1]
                # stake by stake: all at once would take twelve times the memory of the payoffs
                for logs, stake in zip(of_stakes, STAKES, strict=True):
                    logs[columns] += np.log1p(stake * payoffs).sum(axis=0)
            self._n_units[columns] += found.n_units
            self._paid[columns] += found.payoffs.sum(axis=0)
            self._weight[columns] += found.weight

    def test(self, alternative: Alternative = "greater") -> BettingTest:
        """Return the test of one direction, or of both with half of the capital on each side."""
        of_sides = [
            np.logaddexp.reduce(self._logs[side], axis=0) - np.log(len(STAKES))
            for side in _SIDES[alternative]
        ]
        log_e = np.logaddexp.reduce(of_sides, axis=0) - np.log(len(of_sides))
        log_e = np.where(self._n_units >= 2, log_e, np.nan)
        with np.errstate(invalid="ignore"):
            mean = self._threshold + self._paid / self._weight
        return BettingTest(mean, log_e, np.exp(-np.maximum(log_e, 0)))
