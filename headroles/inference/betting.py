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

Bets are made unit by unit, and what they have made so far is all that the next ones need: values
may come in parts, and be looked at after each (`RunningBets`), for the price of the new ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headroles.errors import StatisticsError
from headroles.inference._columns import Alternative, FloatArray
from headroles.inference.payoffs import ROUNDING, Bounds, payoffs_of
from headroles.inference.sample import Sample

STAKES = 0.99 * (0.99 / 0.001) ** (-np.arange(12) / 11)
"""Shares that are staked, side by side."""
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

    Units are taken to be independent draws; nothing is asked of their distribution, and the tests
    hold for any dependence between columns. Values may come in parts, each of whole units that are
    new. Looked at after every part, the smallest p-value so far is one too: E grows by no more than
    chance under H0, whenever one stops (Ville's inequality). A look costs what its part does.

    Args:
        threshold: (tests,), the mean of each test under H0, at its limit.
        n_population: None for a mean over all units there could be. Else that over so many units,
            from which those of the samples were drawn in the order in which they come, each at most
            once, all orders being equally likely.

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
        self._capital = {side: _Capital(n_tests, n_population) for side in _SIDES["two-sided"]}
        self._n_units = np.zeros(n_tests, dtype=np.intp)
        self._paid, self._weight = np.zeros((2, n_tests))

    def add(self, sample: Sample, bounds: Bounds) -> None:
        """Bet on the units of a sample.

        Raises StatisticsError for bounds that do not fit, or that values break, and for a
        population smaller than the sample.
        """
        found = payoffs_of(sample, self._threshold, bounds)
        for side, capital in self._capital.items():
            capital.bet(side * found.payoffs / found.reach[0 if side > 0 else 1])
        self._n_units += found.n_units
        self._paid += found.payoffs.sum(axis=0)
        self._weight += found.weight

    def test(self, alternative: Alternative = "greater") -> BettingTest:
        """What the bets of one direction, or half of those of both, have come to.

        Both sides are never above 1 together.
        """
        of_sides = [self._capital[side].log_e for side in _SIDES[alternative]]
        log_e = np.logaddexp.reduce(of_sides, axis=0) - np.log(len(of_sides))
        log_e = np.where(self._n_units >= 2, log_e, np.nan)
        with np.errstate(invalid="ignore"):
            mean = self._threshold + self._paid / self._weight
        return BettingTest(mean, log_e, np.exp(-np.maximum(log_e, 0)))


class _Capital:
    """What the stakes have made of one unit of money so far, for each test.

    Of a population of N units that are drawn one after the other: if the payoffs of all add up to 0
    or less, the units still to come have a mean of at most m = -(sum so far) / (number to come),
    and a stake may be 1 / (1 + m) times as large (Waudby-Smith and Ramdas 2024, section 5). Where m
    is below -1, H0 cannot be true.
    """

    def __init__(self, n_tests: int, n_population: int | None) -> None:
        self._n_population = n_population
        self._n_drawn = 0
        self._logs = np.zeros((len(STAKES), n_tests))
        self._sum = np.zeros(n_tests)
        self._is_refuted = np.zeros(n_tests, dtype=np.bool_)

    def bet(self, payoffs: FloatArray) -> None:
        """On payoffs (units, tests) relative to what can be lost, and so at least -1."""
        if self._n_population is not None:
            payoffs = self._relative(payoffs, self._n_population)
        for logs, stake in zip(self._logs, STAKES, strict=True):
            logs += np.log1p(stake * payoffs).sum(axis=0)

    def _relative(self, payoffs: FloatArray, n_population: int) -> FloatArray:
        """Payoffs less the mean that is left for them, relative to what can be lost then."""
        n_before, n_new = self._n_drawn, len(payoffs)
        self._n_drawn = n_before + n_new
        if self._n_drawn > n_population:
            raise StatisticsError(
                f"{self._n_drawn} units were drawn from a population of {n_population}"
            )
        so_far = self._sum + np.cumsum(payoffs, axis=0) - payoffs
        mean = -so_far / (n_population - np.arange(n_before, self._n_drawn))[:, None]
        room = 1 + mean
        self._sum += payoffs.sum(axis=0)
        self._is_refuted |= (room < -ROUNDING).any(axis=0)
        return np.where(room > ROUNDING, (payoffs - mean) / np.maximum(room, ROUNDING), 0)

    @property
    def log_e(self) -> FloatArray:
        """Logarithm of E (tests,)."""
        log_e = np.logaddexp.reduce(self._logs, axis=0) - np.log(len(STAKES))
        if self._n_population is None:
            return np.asarray(log_e)
        left = self._n_population - self._n_drawn
        return np.where(self._is_refuted | (self._sum > left + ROUNDING), np.inf, log_e)
