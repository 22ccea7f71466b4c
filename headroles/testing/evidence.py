"""Hypotheses -> evidence: p-values, each by itself and corrected."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headroles.errors import UsageError
from headroles.inference import (
    Alternative,
    BettingTest,
    Bounds,
    Sample,
    adjust_p_values,
    betting_test,
    bootstrap_t_test,
    sign_flip_test,
    step_down_max_t,
    t_test,
    wilcoxon_signed_rank,
)
from headroles.testing.hypotheses import FloatArray, Hypotheses, IntArray
from headroles.testing.options import (
    BETTING,
    MAX_T,
    SIGN_FLIP,
    WILCOXON,
    CorrectionOptions,
    T,
    TestOptions,
)


@dataclass(frozen=True)
class PValues:
    """Of tests in one direction, all (T,), NaN where a test was not made.

    ``statistic`` is that of the test asked for: t, Wilcoxon's sum of ranks, or the logarithm of
    what betting gives. ``adjusted`` are corrected within families.
    """

    statistic: FloatArray
    single: FloatArray
    adjusted: FloatArray


def find_p_values(
    hypotheses: Hypotheses, options: TestOptions, alternative: Alternative
) -> PValues:
    """p-values of H1: the mean is greater or less than the threshold, or differs from it.

    Resampling starts from the same seed whatever the direction.
    """
    statistic, single = _single(hypotheses, options, alternative)
    if options.correction == MAX_T:
        adjusted = _max_t(hypotheses, options, alternative)
    else:
        adjusted = adjust(single, hypotheses.families, options)
    return PValues(statistic, single, adjusted)


def find_equivalence(hypotheses: Hypotheses, options: TestOptions, margin: float) -> PValues:
    """p-values of H1: the mean is less than ``margin`` away from 0, in either direction.

    Two one-sided tests (Schuirmann 1987): p is the larger of both, and needs no correction for
    there being two. That a mean is not shown to differ from 0 does not show it to be near: this
    does. The thresholds of ``hypotheses`` play no part; statistics are those of the lower end.
    """
    ends: tuple[tuple[float, Alternative], ...] = ((-margin, "greater"), (margin, "less"))
    both = [_single(hypotheses.against(limit), options, side) for limit, side in ends]
    single = np.maximum(both[0][1], both[1][1])
    if options.correction == MAX_T:
        adjusted = _max_t_of_equivalence(hypotheses, options, margin)
    else:
        adjusted = adjust(single, hypotheses.families, options)
    return PValues(both[0][0], single, adjusted)


def known_bounds(hypotheses: Hypotheses) -> Bounds:
    """The bounds of the values. Raises UsageError where they are not known."""
    if hypotheses.bounds is None:
        raise UsageError(
            "betting needs the bounds of scores, which are not kept with these; score again, or "
            "pass another test (--test)"
        )
    return hypotheses.bounds


def bet_on(hypotheses: Hypotheses, alternative: Alternative) -> BettingTest:
    """The test by betting. Raises UsageError where the bounds of values are not known."""
    if hypotheses.bets is not None:
        return hypotheses.bets.test(alternative)
    return betting_test(
        hypotheses.sample,
        hypotheses.threshold,
        known_bounds(hypotheses),
        alternative=alternative,
        n_population=hypotheses.n_population,
    )


def _single(
    hypotheses: Hypotheses, options: TestOptions, alternative: Alternative
) -> tuple[FloatArray, FloatArray]:
    """Statistics and p-values (T,) of each test by itself."""
    sample, threshold = hypotheses.sample, hypotheses.threshold
    if options.test == WILCOXON:
        ranked = wilcoxon_signed_rank(sample, threshold, alternative)
        return ranked.statistic, ranked.p_value
    if options.test == BETTING:
        bet = bet_on(hypotheses, alternative)
        return bet.log_e, bet.p_value
    tested = t_test(sample, threshold, alternative=alternative)
    if options.test == T:
        return tested.statistic, tested.p_value
    resampled = sign_flip_test if options.test == SIGN_FLIP else bootstrap_t_test
    p_value = resampled(
        sample,
        threshold,
        n_resamples=options.resamples,
        seed=options.seed,
        alternative=alternative,
    )
    return tested.statistic, p_value


def adjust(single: FloatArray, families: IntArray, options: CorrectionOptions) -> FloatArray:
    """p-values (T,) corrected within families."""
    return adjust_p_values(single, options.correction, families, options.alpha)


def _max_t(hypotheses: Hypotheses, options: TestOptions, alternative: Alternative) -> FloatArray:
    adjusted = np.full(hypotheses.n_tests, np.nan)
    for columns in hypotheses.columns_by_family:
        adjusted[columns] = step_down_max_t(
            hypotheses.sample.take(columns),
            hypotheses.threshold[columns],
            n_resamples=options.resamples,
            seed=options.seed,
            alternative=alternative,
        )
    return adjusted


def _max_t_of_equivalence(
    hypotheses: Hypotheses, options: TestOptions, margin: float
) -> FloatArray:
    """The larger p-value of both one-sided tests of each mean, all of a family flipped together.

    A mean that is wrongly found equivalent lies beyond one end of the margin only, but another may
    lie beyond the other end.
    """
    adjusted = np.full(hypotheses.n_tests, np.nan)
    values = np.where(hypotheses.is_tested, hypotheses.sample.values, np.nan)
    for columns in hypotheses.columns_by_family:
        own = values[:, columns]
        ends = np.concatenate([margin + own, margin - own], axis=1)
        stepped = step_down_max_t(
            Sample(ends, hypotheses.sample.clusters),
            0,
            n_resamples=options.resamples,
            seed=options.seed,
        )
        adjusted[columns] = stepped.reshape(2, -1).max(axis=0)
    return adjusted
