"""Hypotheses -> evidence: p-values in both directions, corrections, intervals, answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headroles.hypotheses import MAX_T, FloatArray, Hypotheses
from headroles.inference import (
    ANSWERS,
    DEGENERATE,
    UNTESTABLE,
    Alternative,
    OneSampleResult,
    adjust_p_values,
    bca_interval,
    bootstrap_t_interval,
    bootstrap_t_test,
    decide,
    one_sample_t,
    sign_flip_test,
    simultaneous_intervals,
    step_down_max_t,
    wilcoxon_signed_rank,
)

YES, NO, UNDECIDED, NO_ANSWER = ANSWERS
FEW_CLUSTERS = 20
"""With fewer clusters than this, tests are told to be unreliable."""
_SHOWN = 3
_ROUNDING = 8 * float(np.finfo(np.float32).eps)
"""Scores are float32: what differs by no more than this, relatively, is the same."""


@dataclass(frozen=True)
class Evidence:
    """What the examples say to each hypothesis, all arrays (tests,); NaN is not defined.

    ``described`` has the moments, ``statistic`` is that of the test asked for (t, or Wilcoxon's
    sum of ranks). ``p_above`` is for H1: mean > threshold, ``p_below`` for H1: mean < threshold;
    the adjusted ones are corrected within the family, each direction by itself.
    """

    described: OneSampleResult
    ci_low: FloatArray
    ci_high: FloatArray
    statistic: FloatArray
    p_above: FloatArray
    p_above_adjusted: FloatArray
    p_below: FloatArray
    p_below_adjusted: FloatArray
    answer: NDArray[np.str_]


def weigh(hypotheses: Hypotheses) -> Evidence:
    """Test all hypotheses as their options say.

    Resampling starts from the same seed for both directions and for the intervals.
    """
    options = hypotheses.options
    described = one_sample_t(
        hypotheses.values,
        hypotheses.threshold,
        confidence=1 - options.alpha,
        ddof=options.ddof,
        groups=hypotheses.groups,
    )
    statistic, p_above = _test(hypotheses, "greater")
    p_below = _test(hypotheses, "less")[1]
    above = _adjust(hypotheses, p_above, "greater")
    below = _adjust(hypotheses, p_below, "less")
    ci_low, ci_high = _intervals(hypotheses, described)
    return Evidence(
        described=described,
        ci_low=ci_low,
        ci_high=ci_high,
        statistic=statistic,
        p_above=p_above,
        p_above_adjusted=above,
        p_below=p_below,
        p_below_adjusted=below,
        answer=_answers(hypotheses, described, above, below),
    )


def _test(hypotheses: Hypotheses, alternative: Alternative) -> tuple[FloatArray, FloatArray]:
    """Statistics and p-values (tests,) in one direction."""
    options, groups = hypotheses.options, hypotheses.groups
    values, threshold = hypotheses.values, hypotheses.threshold
    if options.test == "wilcoxon":
        ranked = wilcoxon_signed_rank(values, threshold, alternative)
        return ranked.statistic, ranked.p_value
    t = one_sample_t(values, threshold, ddof=options.ddof, groups=groups, alternative=alternative)
    if options.test == "t":
        return t.statistic, t.p_value
    resampled = sign_flip_test if options.test == "sign_flip" else bootstrap_t_test
    p_value = resampled(
        values,
        threshold,
        n_resamples=options.resamples,
        seed=options.seed,
        groups=groups,
        alternative=alternative,
    )
    return t.statistic, p_value


def _adjust(hypotheses: Hypotheses, p: FloatArray, alternative: Alternative) -> FloatArray:
    options = hypotheses.options
    if options.correction == MAX_T:
        return _max_t(hypotheses, alternative)
    adjusted = adjust_p_values(p, options.correction, hypotheses.families, options.alpha)
    # Two-stage Benjamini-Hochberg may reject all tests where most are rejected, even those that
    # speak for the other side: nothing is to be rejected that would not be on its own.
    return np.maximum(adjusted, p)


def _max_t(hypotheses: Hypotheses, alternative: Alternative) -> FloatArray:
    options = hypotheses.options
    adjusted = np.full(hypotheses.n_tests, np.nan)
    for columns in hypotheses.columns_by_family():
        adjusted[columns] = step_down_max_t(
            hypotheses.values[:, columns],
            hypotheses.threshold[columns],
            n_resamples=options.resamples,
            seed=options.seed,
            groups=hypotheses.groups,
            alternative=alternative,
        )
    return adjusted


def _intervals(hypotheses: Hypotheses, described: OneSampleResult) -> tuple[FloatArray, FloatArray]:
    options = hypotheses.options
    if options.interval == "t":
        return described.ci_low, described.ci_high
    if options.interval == "simultaneous":
        find, parts = simultaneous_intervals, hypotheses.columns_by_family()
    else:
        find = bca_interval if options.interval == "bca" else bootstrap_t_interval
        parts = [np.arange(hypotheses.n_tests)]
    low, high = np.full((2, hypotheses.n_tests), np.nan)
    for columns in parts:
        found = find(
            hypotheses.values[:, columns],
            confidence=1 - options.alpha,
            n_resamples=options.resamples,
            seed=options.seed,
            groups=hypotheses.groups,
        )
        low[columns], high[columns] = found.ci_low, found.ci_high
    return low, high


def _answers(
    hypotheses: Hypotheses, described: OneSampleResult, above: FloatArray, below: FloatArray
) -> NDArray[np.str_]:
    """Those of `decide`; where nothing varies the mean decides."""
    mean, threshold = described.mean, hypotheses.threshold
    at_threshold = np.isclose(mean, threshold, rtol=_ROUNDING, atol=0)
    by_mean = np.select([at_threshold, mean > threshold], [UNDECIDED, YES], NO)
    tested = decide(above, below, hypotheses.options.alpha)
    return np.where(described.status == DEGENERATE, by_mean, tested)


def notes(described: OneSampleResult) -> NDArray[np.str_]:
    """Why a test was not made, (tests,); empty where it was."""
    untestable = described.status == UNTESTABLE
    return np.select(
        [
            untestable & (described.n < 2),
            untestable & (described.n_groups < 2),
            untestable,
            described.status == DEGENERATE,
        ],
        [
            "untestable: fewer than two examples",
            "untestable: fewer than two clusters",
            "untestable: the clusters cancel",
            "degenerate: zero variance, decided by the mean",
        ],
        "",
    )


def warnings(hypotheses: Hypotheses, evidence: Evidence) -> list[str]:
    """What to know before relying on the tests: sentences for people."""
    found = (_few_clusters(hypotheses, evidence), _out_of_reach(hypotheses, evidence))
    return [warning for warning in found if warning]


def _few_clusters(hypotheses: Hypotheses, evidence: Evidence) -> str:
    if hypotheses.groups is None:
        return ""
    n_clusters = evidence.described.n_groups
    few = [
        name
        for role, name in enumerate(hypotheses.roles)
        if n_clusters[hypotheses.role == role].max() < FEW_CLUSTERS
    ]
    if not few:
        return ""
    shown = ", ".join(few[:_SHOWN]) + (", ..." if len(few) > _SHOWN else "")
    n_roles = len(hypotheses.roles)
    which = "all roles" if len(few) == n_roles else f"{len(few)} of {n_roles} roles ({shown})"
    cure = "" if hypotheses.options.test == "sign_flip" else "; --test sign_flip is safer"
    return (
        f"the scores of {which} come from fewer than {FEW_CLUSTERS} documents: "
        f"so few clusters make tests unreliable{cure}"
    )


def _out_of_reach(hypotheses: Hypotheses, evidence: Evidence) -> str:
    """Resampled p-values come in steps: the smallest may be too large for any rejection."""
    options = hypotheses.options
    made = ~np.isnan(evidence.p_above)
    sizes = [int(made[columns].sum()) for columns in hypotheses.columns_by_family()]
    if options.test not in ("sign_flip", "bootstrap_t") or not any(sizes):
        return ""
    smallest = 1 / (options.resamples + 1)
    if options.test == "sign_flip":  # of few clusters all flips are gone through
        smallest = max(smallest, 0.5 ** int(evidence.described.n_groups.max()))
    counts_all = options.correction in ("bonferroni", "holm")
    n_tests = min(size for size in sizes if size) if counts_all else 1
    if smallest * n_tests <= options.alpha:
        return ""
    return (
        f"no hypothesis can be rejected: the smallest p-value that {options.test} can give here "
        f"is {smallest:.2g}, too large for {n_tests} tests at alpha {options.alpha:g}; "
        "more --resamples or --correction max_t may help, or more examples"
    )
