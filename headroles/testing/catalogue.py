"""Catalogue of tests, one entry for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from headroles.arrays import FloatArray
from headroles.inference import Alternative, draw_test, mcnemar_test, rank_test, t_test
from headroles.testing.hypotheses import Hypotheses

T, RANK, NEW, MCNEMAR = "t", "rank", "new", "mcnemar"
BETTING: Final = "betting"


class Found(NamedTuple):
    """Result of a test (T,): its statistic, p-values, and the side that the evidence favours."""

    statistic: FloatArray
    p_value: FloatArray
    direction: FloatArray


@dataclass(frozen=True)
class Test:
    """A test of `Hypotheses`.

    ``words`` name it in output. ``find`` takes hypotheses and the alternative. ``takes_bounds``:
    values must be bounded, and their distribution is then arbitrary.
    """

    __test__ = False  # keeps pytest from collecting the class because of its name

    words: str
    find: Callable[[Hypotheses, Alternative], Found]
    takes_bounds: bool = False


def _t(hypotheses: Hypotheses, side: Alternative) -> Found:
    tested = t_test(hypotheses.sample, hypotheses.threshold, alternative=side)
    return Found(tested.statistic, tested.p_value, hypotheses.direction)


def _betting(hypotheses: Hypotheses, side: Alternative) -> Found:
    bets = hypotheses.betting
    return Found(bets.log_e(side), bets.p_value(side), hypotheses.direction)


def _rank(hypotheses: Hypotheses, side: Alternative) -> Found:
    drawn, observed = hypotheses.sample.values, hypotheses.threshold
    p_values = rank_test(drawn, observed, hypotheses.rounding, side)
    return Found(observed, p_values, -hypotheses.direction)


def _new(hypotheses: Hypotheses, side: Alternative) -> Found:
    drawn, observed = hypotheses.sample.values, hypotheses.threshold
    return Found(observed, draw_test(drawn, observed, side), -hypotheses.direction)


def _mcnemar(hypotheses: Hypotheses, side: Alternative) -> Found:
    p_values = mcnemar_test(hypotheses.sample.values)
    return Found(hypotheses.moments.mean, p_values, hypotheses.direction)


TESTS = {
    T: Test("t-tests", _t),
    BETTING: Test("tests by betting", _betting, takes_bounds=True),
    RANK: Test("Monte Carlo tests", _rank),
    NEW: Test("t-tests of one more draw", _new),
    MCNEMAR: Test("McNemar's tests", _mcnemar),
}
"""All tests, by name."""
