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
from headroles.errors import StatisticsError
from headroles.inference._columns import Alternative
from headroles.inference.payoffs import ROUNDING, Bounds, payoffs_of
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
        n_population: None for the mean of an infinite population. Else the mean of so many units,
            from which the samples are drawn without replacement, in random order.

    >>> one = np.ones((1, 1))
    >>> bounds = Bounds(np.zeros((9, 1)), np.ones((9, 1)), 0 * one[0], one[0], np.array([0]), 1)
    >>> bets = RunningBets(np.array([0.5]))
    >>> bets.add(Sample.of(np.full((9, 1), 0.9)), bounds)
    >>> round(float(bets.test().p_value[0]), 4)
    0.0515
    """

    def __init__(self, threshold: FloatArray, n_population: int | None = None) -> None:
        n_tests = len(threshold)
        self._threshold = threshold
        self._n_drawn = 0
        self._capital = {side: _Capital(n_tests, n_population) for side in _SIDES["two-sided"]}
        self._n_units = np.zeros(n_tests, dtype=np.intp)
        self._paid, self._weight = np.zeros((2, n_tests))

    def add(self, sample: Sample, bounds: Bounds) -> None:
        """Bet on the units of a sample.

        Raises StatisticsError for bounds that do not fit or that a value exceeds, and for a
        population smaller than the sample.
        """
        for columns in sample.column_slices:
            found = payoffs_of(sample.take(columns), self._threshold[columns], bounds.take(columns))
            for side, capital in self._capital.items():
                reach = found.reach[0 if side > 0 else 1]
                capital.bet(side * found.payoffs / reach, columns, self._n_drawn)
            self._n_units[columns] += found.n_units
            self._paid[columns] += found.payoffs.sum(axis=0)
            self._weight[columns] += found.weight
        self._n_drawn += sample.n_clusters

    def test(self, alternative: Alternative = "greater") -> BettingTest:
        """Return the test of one direction, or of both with half of the capital on each side."""
        of_sides = [self._capital[side].log_e for side in _SIDES[alternative]]
        log_e = np.logaddexp.reduce(of_sides, axis=0) - np.log(len(of_sides))
        log_e = np.where(self._n_units >= 2, log_e, np.nan)
        with np.errstate(invalid="ignore"):
            mean = self._threshold + self._paid / self._weight
        return BettingTest(mean, log_e, np.exp(-np.maximum(log_e, 0)))


class _Capital:
    """Capital of each test so far, from one unit of money.

    For a population of N units drawn one after the other: if all payoffs add up to 0 or less, the
    mean of the remaining units is at most m = -(sum so far) / (number remaining), and a stake may
    be 1 / (1 + m) times as large (Waudby-Smith and Ramdas 2024, section 5). If m is below -1, H0
    cannot be true.
    """

    def __init__(self, n_tests: int, n_population: int | None) -> None:
        self._n_population = n_population
        self._n_drawn = 0
        self._logs = np.zeros((len(STAKES), n_tests))
        self._sum = np.zeros(n_tests)
        self._is_refuted = np.zeros(n_tests, dtype=np.bool_)

    def bet(self, payoffs: FloatArray, columns: slice, n_before: int) -> None:
        """Bet in some columns of tests, on payoffs (units, tests) relative to the largest loss.

        They are at least -1, and ``n_before`` units came before them.
        """
        self._n_drawn = n_before + len(payoffs)
        if self._n_population is not None:
            payoffs = self._relative(payoffs, columns, n_before, self._n_population)
        # stake by stake: all at once would take twelve times the memory of the payoffs
        for logs, stake in zip(self._logs, STAKES, strict=True):
            logs[columns] += np.log1p(stake * payoffs).sum(axis=0)

    def _relative(
        self, payoffs: FloatArray, columns: slice, n_before: int, n_population: int
    ) -> FloatArray:
        """Return payoffs less the greatest mean that H0 allows, relative to the largest loss."""
        if self._n_drawn > n_population:
            raise StatisticsError(
                f"{self._n_drawn} units were drawn from a population of {n_population}; give the "
                "true size of the population"
            )
        so_far = self._sum[columns] + np.cumsum(payoffs, axis=0) - payoffs
        mean = -so_far / (n_population - np.arange(n_before, self._n_drawn))[:, None]
        room = 1 + mean
        self._sum[columns] += payoffs.sum(axis=0)
        self._is_refuted[columns] |= (room < -ROUNDING).any(axis=0)
        return np.where(room > ROUNDING, (payoffs - mean) / np.maximum(room, ROUNDING), 0)

    @property
    def log_e(self) -> FloatArray:
        """Logarithm of E (tests,)."""
        log_e = np.logaddexp.reduce(self._logs, axis=0) - np.log(len(STAKES))
        if self._n_population is None:
            return np.asarray(log_e)
        # if the units that are left cannot bring the sum back to 0, H0 is false for certain
        left = self._n_population - self._n_drawn
        return np.where(self._is_refuted | (self._sum > left + ROUNDING), np.inf, log_e)
