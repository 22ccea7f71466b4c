"""Hypotheses -> evidence: p-values, corrections, intervals, answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headroles.errors import UsageError
from headroles.inference import (
    DEGENERATE,
    NO,
    UNDECIDED,
    YES,
    Alternative,
    Bounds,
    Intervals,
    Sample,
    adjust_p_values,
    bca_interval,
    betting_test,
    bootstrap_t_interval,
    bootstrap_t_test,
    decide,
    resolution_of,
    sign_flip_test,
    simultaneous_intervals,
    step_down_max_t,
    t_interval,
    t_test,
    wilcoxon_signed_rank,
)
from headroles.testing.hypotheses import FloatArray, Hypotheses
from headroles.testing.options import BETTING, FCR, MAX_T, SIGN_FLIP, WILCOXON, T, TestOptions


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
        adjusted = _adjust(hypotheses, options, single)
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
        adjusted = _adjust(hypotheses, options, single)
    return PValues(both[0][0], single, adjusted)


def find_intervals(
    hypotheses: Hypotheses, options: TestOptions, answers: NDArray[np.str_] | None = None
) -> Intervals:
    """Confidence intervals of the means, at level 1 - alpha.

    Those adjusted for selection need the ``answers`` (T,) that tests are selected by.
    """
    confidence, sample = 1 - options.alpha, hypotheses.sample
    if options.interval == "t":
        return t_interval(sample, confidence=confidence)
    if options.interval == FCR:
        if answers is None:
            raise UsageError(f"intervals {FCR} are of tests with answers; pass another interval")
        return _intervals_of_selected(hypotheses, options.alpha, answers)
    find: Callable[..., Intervals] = {
        "simultaneous": simultaneous_intervals,
        "bca": bca_interval,
        "bootstrap_t": bootstrap_t_interval,
    }[options.interval]
    parts = [np.arange(hypotheses.n_tests)]
    if options.interval == "simultaneous":
        parts = hypotheses.columns_by_family
    low, high = np.full((2, hypotheses.n_tests), np.nan)
    for columns in parts:
        found = find(
            sample.take(columns),
            confidence=confidence,
            n_resamples=options.resamples,
            seed=options.seed,
        )
        low[columns], high[columns] = found.ci_low, found.ci_high
    return Intervals(low, high)


def _intervals_of_selected(
    hypotheses: Hypotheses, alpha: float, answers: NDArray[np.str_]
) -> Intervals:
    """Intervals by t of the tests with an answer, at most ``alpha`` of which miss, on average.

    Of m tests of a family R are selected by having got one answer, and have intervals of level
    1 - R * alpha / m: the false coverage rate of Benjamini and Yekutieli (2005).
    """
    low, high = np.full((2, hypotheses.n_tests), np.nan)
    for columns in hypotheses.columns_by_family:
        for given in (YES, NO):
            selected = columns[(answers[columns] == given) & hypotheses.is_tested[columns]]
            if len(selected):
                share = len(selected) / hypotheses.is_tested[columns].sum()
                found = t_interval(hypotheses.sample.take(selected), confidence=1 - alpha * share)
                low[selected], high[selected] = found.ci_low, found.ci_high
    return Intervals(low, high)


def answer(
    hypotheses: Hypotheses, above: PValues, below: PValues, alpha: float
) -> NDArray[np.str_]:
    """Whether each mean is above its threshold: `decide`, or the mean where nothing varies.

    Betting needs no variance: where it tested such a column, the test decides.
    """
    tested = decide(above.adjusted, below.adjusted, alpha)
    untested = (hypotheses.moments.status == DEGENERATE) & np.isnan(above.adjusted)
    return np.where(untested, side_of(hypotheses), tested)


def side_of(hypotheses: Hypotheses) -> NDArray[np.str_]:
    """On which side of its threshold each mean lies: yes above, no below, undecided at it."""
    mean, threshold = hypotheses.moments.mean, hypotheses.threshold
    tolerance = hypotheses.rounding + resolution_of(hypotheses.sample.values) * np.abs(threshold)
    at_threshold = np.abs(mean - threshold) <= tolerance
    return np.select([at_threshold, mean > threshold], [UNDECIDED, YES], NO)


def differs(hypotheses: Hypotheses, two_sided: PValues, alpha: float) -> NDArray[np.bool_]:
    """Whether each mean was shown to differ from 0; where nothing varies the mean decides."""
    alike = hypotheses.moments.status == DEGENERATE
    by_mean = alike & (np.abs(hypotheses.moments.mean) > hypotheses.rounding)
    return np.asarray((two_sided.adjusted <= alpha) | by_mean)


def is_equivalent(
    hypotheses: Hypotheses, equivalence: PValues, margin: float, alpha: float
) -> NDArray[np.bool_]:
    """Whether each mean was shown to be near 0; where nothing varies the mean decides."""
    alike = hypotheses.moments.status == DEGENERATE
    by_mean = alike & (np.abs(hypotheses.moments.mean) < margin)
    return np.asarray((equivalence.adjusted <= alpha) | by_mean)


def known_bounds(hypotheses: Hypotheses) -> Bounds:
    """The bounds of the values. Raises UsageError where they are not known."""
    if hypotheses.bounds is None:
        raise UsageError(
            "betting needs the bounds of scores, which are not kept with these; score again, or "
            "pass another test (--test)"
        )
    return hypotheses.bounds


def _single(
    hypotheses: Hypotheses, options: TestOptions, alternative: Alternative
) -> tuple[FloatArray, FloatArray]:
    """Statistics and p-values (T,) of each test by itself."""
    sample, threshold = hypotheses.sample, hypotheses.threshold
    if options.test == WILCOXON:
        ranked = wilcoxon_signed_rank(sample, threshold, alternative)
        return ranked.statistic, ranked.p_value
    if options.test == BETTING:
        bet = betting_test(
            sample,
            threshold,
            known_bounds(hypotheses),
            alternative=alternative,
            n_population=hypotheses.n_population,
        )
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


def _adjust(hypotheses: Hypotheses, options: TestOptions, single: FloatArray) -> FloatArray:
    adjusted = adjust_p_values(single, options.correction, hypotheses.families, options.alpha)
    # Two-stage Benjamini-Hochberg may reject all tests where most are rejected, even those that
    # speak for the other side: nothing is to be rejected that would not be on its own.
    return np.maximum(adjusted, single)


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
