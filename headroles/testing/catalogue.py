"""Catalogue of tests and confidence intervals, one entry for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from headroles.arrays import FloatArray
from headroles.inference import (
    Alternative,
    Intervals,
    bca_interval,
    bootstrap_t_interval,
    bootstrap_t_test,
    mcnemar_test,
    rank_test,
    sign_flip_test,
    simultaneous_intervals,
    t_interval,
    t_test,
    wilcoxon_signed_rank,
)
from headroles.testing.hypotheses import Hypotheses

T, WILCOXON, SIGN_FLIP = "t", "wilcoxon", "sign_flip"
BOOTSTRAP_T, BETTING = "bootstrap_t", "betting"
RANK, MCNEMAR = "rank", "mcnemar"
BY_T, FCR, SIMULTANEOUS = "t", "fcr", "simultaneous"


class Found(NamedTuple):
    """Result of a test (T,): its statistic, p-values, and the side that the evidence favours."""

    statistic: FloatArray
    p_value: FloatArray
    direction: FloatArray


@dataclass(frozen=True)
class Test:
    """A test of `Hypotheses`.

    ``words`` name it in output. ``find`` takes hypotheses, the alternative, the number of resamples
    and the seed. ``takes_independent``: clusters are not supported. ``takes_bounds``: values must
    be bounded, and their distribution is then arbitrary. ``is_resampled``: p-values come in steps.
    """

    __test__ = False  # keeps pytest from collecting the class because of its name

    name: str
    words: str
    find: Callable[[Hypotheses, Alternative, int, int], Found]
    takes_independent: bool = False
    takes_bounds: bool = False
    is_resampled: bool = False


@dataclass(frozen=True)
class Interval:
    """A confidence interval of means; ``find`` takes a sample and keyword arguments."""

    name: str
    words: str
    find: Callable[..., Intervals]
    is_resampled: bool = True


def _t(hypotheses: Hypotheses, side: Alternative, n_resamples: int, seed: int) -> Found:
    tested = t_test(hypotheses.sample, hypotheses.threshold, alternative=side)
    return Found(tested.statistic, tested.p_value, hypotheses.direction)


def _wilcoxon(hypotheses: Hypotheses, side: Alternative, n_resamples: int, seed: int) -> Found:
    ranked = wilcoxon_signed_rank(hypotheses.sample, hypotheses.threshold, side)
    # the pseudo-median of skewed values may be on the other side of the threshold than the mean
    direction = np.sign(np.where(hypotheses.is_tested, ranked.effect_size, hypotheses.direction))
    return Found(ranked.statistic, ranked.p_value, direction)


def _resampled(test: Callable[..., FloatArray]) -> Callable[..., Found]:
    def find(hypotheses: Hypotheses, side: Alternative, n_resamples: int, seed: int) -> Found:
        options: dict[str, Any] = {"n_resamples": n_resamples, "seed": seed, "alternative": side}
        p_values = test(hypotheses.sample, hypotheses.threshold, **options)
        return _t(hypotheses, side, n_resamples, seed)._replace(p_value=p_values)

    return find


def _betting(hypotheses: Hypotheses, side: Alternative, n_resamples: int, seed: int) -> Found:
    bet = hypotheses.betting.test(side)
    return Found(bet.log_e, bet.p_value, hypotheses.direction)


def _rank(hypotheses: Hypotheses, side: Alternative, n_resamples: int, seed: int) -> Found:
    drawn, observed = hypotheses.sample.values, hypotheses.threshold
    p_values = rank_test(drawn, observed, hypotheses.rounding, side)
    return Found(observed, p_values, -hypotheses.direction)


def _mcnemar(hypotheses: Hypotheses, side: Alternative, n_resamples: int, seed: int) -> Found:
    p_values = mcnemar_test(hypotheses.sample.values)
    return Found(hypotheses.moments.mean, p_values, hypotheses.direction)


TESTS = {
    one.name: one
    for one in (
        Test(T, "t-tests", _t),
        Test(WILCOXON, "Wilcoxon signed-rank tests", _wilcoxon, takes_independent=True),
        Test(SIGN_FLIP, "sign-flip tests", _resampled(sign_flip_test), is_resampled=True),
        Test(BOOTSTRAP_T, "bootstrap-t tests", _resampled(bootstrap_t_test), is_resampled=True),
        Test(BETTING, "tests by betting", _betting, takes_bounds=True),
        Test(RANK, "Monte Carlo tests", _rank, is_resampled=True),
        Test(MCNEMAR, "McNemar's tests", _mcnemar, takes_independent=True),
    )
}
"""All tests, by name; users can choose the first five."""
OFFERED = (T, WILCOXON, SIGN_FLIP, BOOTSTRAP_T, BETTING)

INTERVALS = {
    one.name: one
    for one in (
        Interval(BY_T, "t, for each head separately", t_interval, is_resampled=False),
        Interval("bootstrap_t", "bootstrap-t, for each head separately", bootstrap_t_interval),
        Interval("bca", "BCa, for each head separately", bca_interval),
        Interval(
            FCR,
            "t, adjusted for the selection of heads with the same answer",
            t_interval,
            is_resampled=False,
        ),
        Interval(
            SIMULTANEOUS, "for all heads and roles of a family at once", simultaneous_intervals
        ),
    )
}
"""All confidence intervals, by name."""
