"""Hypotheses -> evidence: p-values in both directions, corrections, intervals, answers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headroles.hypotheses import MAX_T, FloatArray, Hypotheses, IntArray
from headroles.inference import (
    DEGENERATE,
    NO,
    OK,
    UNDECIDED,
    UNTESTABLE,
    YES,
    Alternative,
    OneSampleResult,
    adjust_p_values,
    bca_interval,
    bootstrap_t_interval,
    bootstrap_t_test,
    decide,
    one_sample_t,
    p_of_t,
    resolution_of,
    sign_flip_test,
    simultaneous_intervals,
    step_down_max_t,
    wilcoxon_signed_rank,
)

FEW = 20
"""With fewer clusters, or examples if they are independent, tests are told to be unreliable."""
FEWEST_TO_FLIP = 6
"""Below, sign flips have so few outcomes that hardly any hypothesis can be rejected."""
ENOUGH_FOR_SKEWNESS = 25
"""Times the squared skewness: with fewer examples t is not near its distribution (Cochran's rule;
what real scores make of it is in docs/calibration.md)."""
ROUNDING = 1e-5
"""What differs by less, in units of the score, is the same: float32 scores of uniform attention
over 145 tokens, which are 1 (bias) or 0 (excess), were found to deviate by up to 1.3e-6."""
SKEWED = f"skewed: fewer than {ENOUGH_FOR_SKEWNESS} times skewness squared examples"
_SHOWN = 3


@dataclass(frozen=True)
class Evidence:
    """What the examples say to each hypothesis, all arrays (tests,); NaN is not defined.

    ``described`` has the moments, ``statistic`` is that of the test asked for (t, or Wilcoxon's
    sum of ranks). ``p_above`` is for H1: mean > threshold, ``p_below`` for H1: mean < threshold;
    the adjusted ones are corrected within the family, each direction by itself. ``is_skewed``
    marks tests with too few examples for their skewness.
    """

    described: OneSampleResult
    is_skewed: NDArray[np.bool_]
    ci_low: FloatArray
    ci_high: FloatArray
    statistic: FloatArray
    p_above: FloatArray
    p_above_adjusted: FloatArray
    p_below: FloatArray
    p_below_adjusted: FloatArray
    answer: NDArray[np.str_]

    @property
    def is_tested(self) -> NDArray[np.bool_]:
        """Which tests were made."""
        return np.asarray(self.described.status == OK)


def weigh(hypotheses: Hypotheses) -> Evidence:
    """Test all hypotheses as their options say.

    Columns that vary by less than ``ROUNDING`` do not vary: the mean decides. Resampling starts
    from the same seed for both directions and for the intervals.
    """
    hypotheses = settled(hypotheses)
    options = hypotheses.options
    described = one_sample_t(
        hypotheses.values,
        hypotheses.threshold,
        confidence=1 - options.alpha,
        ddof=options.ddof,
        groups=hypotheses.groups,
    )
    statistic, p_above = _test(hypotheses, described, "greater")
    p_below = _test(hypotheses, described, "less")[1]
    above = _adjust(hypotheses, p_above, "greater")
    below = _adjust(hypotheses, p_below, "less")
    ci_low, ci_high = _intervals(hypotheses, described)
    return Evidence(
        described=described,
        is_skewed=_is_skewed(hypotheses.values, described),
        ci_low=ci_low,
        ci_high=ci_high,
        statistic=statistic,
        p_above=p_above,
        p_above_adjusted=above,
        p_below=p_below,
        p_below_adjusted=below,
        answer=_answers(hypotheses, described, above, below),
    )


def settled(hypotheses: Hypotheses) -> Hypotheses:
    """The same hypotheses with the mean for all values of columns that vary by rounding alone.

    The procedures of `headroles.inference` know no unit and take rounding relative to the mean.
    Scores less uniform attention, and contrasts, are rounding around 0 where there is nothing
    else, which relatively is much.
    """
    described = one_sample_t(hypotheses.values, hypotheses.threshold)
    alike = described.sd < ROUNDING  # false for NaN: single examples
    if not alike.any():
        return hypotheses
    values = hypotheses.values.copy()
    values[:, alike] = np.where(np.isnan(values[:, alike]), np.nan, described.mean[alike])
    return replace(hypotheses, values=values)


def _test(
    hypotheses: Hypotheses, described: OneSampleResult, alternative: Alternative
) -> tuple[FloatArray, FloatArray]:
    """Statistics and p-values (tests,) in one direction."""
    options, groups = hypotheses.options, hypotheses.groups
    values, threshold = hypotheses.values, hypotheses.threshold
    if options.test == "wilcoxon":
        ranked = wilcoxon_signed_rank(values, threshold, alternative)
        return ranked.statistic, ranked.p_value
    t = described.statistic
    if options.test == "t":
        return t, p_of_t(t, described.n_groups - 1, alternative)
    resampled = sign_flip_test if options.test == "sign_flip" else bootstrap_t_test
    p_value = resampled(
        values,
        threshold,
        n_resamples=options.resamples,
        seed=options.seed,
        groups=groups,
        alternative=alternative,
    )
    return t, p_value


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
    at_threshold = np.isclose(mean, threshold, rtol=resolution_of(hypotheses.values), atol=ROUNDING)
    by_mean = np.select([at_threshold, mean > threshold], [UNDECIDED, YES], NO)
    tested = decide(above, below, hypotheses.options.alpha)
    return np.where(described.status == DEGENERATE, by_mean, tested)


def _is_skewed(values: NDArray[np.floating], described: OneSampleResult) -> NDArray[np.bool_]:
    centred = np.nan_to_num(values - described.mean.astype(values.dtype))
    squares = centred * centred
    with np.errstate(invalid="ignore", divide="ignore"):
        second = squares.sum(axis=0, dtype=np.float64) / described.n
        third = (squares * centred).sum(axis=0, dtype=np.float64) / described.n
        enough = ENOUGH_FOR_SKEWNESS * third**2 / second**3
        return np.asarray((described.status == OK) & (described.n < enough))


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
    found = (
        _few(hypotheses, evidence),
        _skewed(evidence),
        _out_of_reach(hypotheses, evidence),
    )
    return [warning for warning in found if warning]


def _few(hypotheses: Hypotheses, evidence: Evidence) -> str:
    n_units = np.array(
        [
            evidence.described.n_groups[hypotheses.role == role].max()
            for role in range(len(hypotheses.roles))
        ]
    )
    few = np.flatnonzero(n_units < FEW)
    if not len(few):
        return ""
    return (
        f"the scores of {_named(hypotheses.roles, few)} come from fewer than {FEW} "
        f"{_units(hypotheses)}: so few make tests unreliable; "
        f"{_cure_of_few(hypotheses, int(n_units[few].min()))}"
    )


def _skewed(evidence: Evidence) -> str:
    n_skewed, n_made = (int(which.sum()) for which in (evidence.is_skewed, evidence.is_tested))
    if not n_skewed:
        return ""
    return (
        f"{n_skewed} of {n_made} tests have few examples for how skewed their scores are (column "
        'note): their p-values are rough, and with a long upper tail "no" comes too easily, with a '
        'long lower one "yes"; more examples help'
    )


def _named(roles: tuple[str, ...], few: IntArray) -> str:
    if len(few) == len(roles):
        return "all roles"
    shown = ", ".join(roles[role] for role in few[:_SHOWN]) + (", ..." if len(few) > _SHOWN else "")
    return f"{len(few)} of {len(roles)} roles ({shown})"


def _units(hypotheses: Hypotheses) -> str:
    return "examples" if hypotheses.groups is None else "documents"


def _cure_of_few(hypotheses: Hypotheses, n_units: int) -> str:
    more = f"more {_units(hypotheses)} are the cure"
    if hypotheses.groups is None:
        return more
    if hypotheses.n_clusters < FEWEST_TO_FLIP:
        return f"{more}, or --groups none if you can defend that examples are independent"
    if n_units < FEWEST_TO_FLIP or hypotheses.options.test == "sign_flip":
        return more
    return f"{more}; --test sign_flip is safer unless scores are skewed"


def _out_of_reach(hypotheses: Hypotheses, evidence: Evidence) -> str:
    """Resampled p-values come in steps: the smallest may be too large for any rejection."""
    options = hypotheses.options
    made = ~np.isnan(evidence.p_above)
    sizes = [int(made[columns].sum()) for columns in hypotheses.columns_by_family()]
    if options.test not in ("sign_flip", "bootstrap_t") or not any(sizes):
        return ""
    flips = 2 ** int(evidence.described.n_groups.max())
    # Of few clusters all flips are gone through, the one that changes nothing among them.
    exhausted = options.test == "sign_flip" and flips <= options.resamples
    smallest = 1 / flips if exhausted else 1 / (options.resamples + 1)
    counts_all = options.correction in ("bonferroni", "holm")
    n_tests = min(size for size in sizes if size) if counts_all else 1
    if smallest * n_tests <= options.alpha:
        return ""
    cures = [f"more {_units(hypotheses)}"] if exhausted else ["more --resamples"]
    if smallest <= options.alpha:  # it is the correction that puts it out of reach
        cures.append(f"--correction {MAX_T if options.test == 'sign_flip' else 'fdr_bh'}")
    return (
        f"no hypothesis can be rejected: the smallest p-value that {options.test} can give here "
        f"is {smallest:.2g}, too large {'' if n_tests == 1 else f'for {n_tests} tests '}"
        f"at alpha {options.alpha:g}; {' or '.join(cures)} may help"
    )
