"""Evidence: p-values of hypotheses, uncorrected and corrected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headroles import inference
from headroles.arrays import BoolArray, FloatArray, IndexArray
from headroles.inference import CORRECTIONS, Alternative, Sample
from headroles.testing.catalogue import TESTS, Found, T
from headroles.testing.hypotheses import Hypotheses
from headroles.testing.options import MAX_T, CorrectionOptions, ResamplingOptions, TestOptions


@dataclass(frozen=True)
class PValues:
    """p-values of tests in one direction, all (T,), NaN where a test was not made.

    ``statistic`` is that of the chosen test: t, Wilcoxon's sum of ranks, or the logarithm of the
    gain of bets. ``adjusted`` are corrected within families. ``direction`` is the side that the
    evidence favours: 1 above the threshold, -1 below, 0 at it. ``by_bound`` are corrected p-values
    of columns without variance, from a bound on the values of other units.
    """

    statistic: FloatArray
    single: FloatArray
    adjusted: FloatArray
    direction: FloatArray
    by_bound: FloatArray

    @classmethod
    def alone(cls, single: FloatArray, adjusted: FloatArray) -> PValues:
        """Make p-values without statistics and directions."""
        nothing = np.full(len(single), np.nan)
        return cls(nothing, single, adjusted, nothing, nothing)

    @property
    def evidence(self) -> FloatArray:
        """p-values (T,) of the tests, and by a bound of columns that were not tested."""
        return np.where(np.isnan(self.single), self.by_bound, self.single)

    def shows(self, alpha: float) -> BoolArray:
        """Tell which H1 (T,) are shown, by a test or by a bound."""
        return np.asarray((self.adjusted <= alpha) | (self.by_bound <= alpha))


def find_p_values(
    hypotheses: Hypotheses,
    options: CorrectionOptions,
    alternative: Alternative,
    test: str | None = None,
) -> PValues:
    """Compute p-values of H1: the mean is greater or less than the threshold, or differs from it.

    The test is ``test``, by default that of ``options``. Resampling starts from the same seed in
    both directions.
    """
    found = _single(hypotheses, options, alternative, test)
    if options.correction == MAX_T:
        adjusted = _max_t(hypotheses, options, alternative)
    else:
        adjusted = _adjust(found.p_value, hypotheses.families, options)
    by_bound = _by_bound(hypotheses, options, alternative)
    by_bound[~np.isnan(found.p_value)] = np.nan  # betting and draws need no variance
    return PValues(found.statistic, found.p_value, adjusted, found.direction, by_bound)


def find_equivalence(hypotheses: Hypotheses, options: TestOptions, margin: float) -> PValues:
    """Compute p-values of H1: the mean is less than ``margin`` away from 0, in either direction.

    By two one-sided tests (Schuirmann 1987), p is the larger of both, and needs no correction for
    their number. A mean that is not shown to differ from 0 is not thereby shown to be near 0; this
    test shows it. The thresholds of ``hypotheses`` are ignored; statistics are those of the lower
    end.
    """
    ends: tuple[tuple[float, Alternative], ...] = ((-margin, "greater"), (margin, "less"))
    sides = [(hypotheses.against(limit), side) for limit, side in ends]
    both = [_single(own, options, side) for own, side in sides]
    single = np.maximum(both[0].p_value, both[1].p_value)
    if options.correction == MAX_T:
        adjusted = _max_t_of_equivalence(hypotheses, options, margin)
    else:
        adjusted = _adjust(single, hypotheses.families, options)
    by_bound = np.maximum(*(_by_bound(own, options, side) for own, side in sides))
    return PValues(both[0].statistic, single, adjusted, hypotheses.direction, by_bound)


def find_replicated(
    several: Sequence[Hypotheses], at_least: int, independent: bool, options: CorrectionOptions
) -> PValues:
    """Compute p-values of H1: the mean is above the threshold in ``at_least`` of several sets.

    The evidence is that of betting in each set (`partial_conjunction`), with its logarithm as the
    ``statistic``; ``independent`` says whether the sets share no example.
    """
    log_e = np.array([one.betting.test("greater").log_e for one in several])
    combined = inference.partial_conjunction(log_e, at_least, independent)
    return of_bets(combined, several[0].families, options)


def in_at_least(found: PValues, at_least: int) -> PValues:
    """Compute one p-value of H1: ``at_least`` u of the T single H1 hold, under any dependence.

    With u = T all of them hold, with u = 1 any. Missing p-values are no evidence; the p-value is
    NaN if all are missing.
    """
    p = found.evidence
    single = np.full(1, np.nan)
    if not np.isnan(p).all():
        single[:] = inference.partial_conjunction_of_p(p, at_least)
    return PValues.alone(single, single)


def corrected_together(several: Sequence[PValues], options: CorrectionOptions) -> PValues:
    """Correct the p-values of tests of different kinds as one family."""
    p = np.concatenate([one.evidence for one in several])
    return PValues.alone(p, _adjust(p, np.zeros(len(p), dtype=np.intp), options))


def of_bets(log_e: FloatArray, families: IndexArray, options: CorrectionOptions) -> PValues:
    """Compute p-values from the logarithm of the evidence (T,) of bets, which may continue."""
    single = np.exp(-np.maximum(log_e, 0))
    adjusted = _adjust(single, families, options)
    return PValues(log_e, single, adjusted, np.sign(log_e), np.full(len(log_e), np.nan))


def _single(
    hypotheses: Hypotheses,
    options: CorrectionOptions,
    alternative: Alternative,
    test: str | None = None,
) -> Found:
    """Run each test, uncorrected."""
    resampling = options if isinstance(options, ResamplingOptions) else ResamplingOptions()
    name = test or (options.test if isinstance(options, TestOptions) else T)
    found = [
        TESTS[name].find(some, alternative, resampling.resamples, resampling.seed)
        for some in hypotheses.by_slice()
    ]
    return Found(*map(np.concatenate, zip(*found, strict=True)))


def _by_bound(
    hypotheses: Hypotheses, options: CorrectionOptions, alternative: Alternative
) -> FloatArray:
    """Compute p-values (T,) of columns without variance, NaN for all others.

    The t-test has no error for them. If values are bounded, betting decides, corrected over all
    tests of the family. Else assume that no unit is farther on the other side of the threshold m
    than the size of the summed or subtracted numbers: if the mean were m, at most the share size /
    (size + |c - m|) of units could have the value c, and all n units have it with the n-th power of
    that probability.
    """
    alike = hypotheses.is_alike
    if not alike.any():
        return np.full(hypotheses.n_tests, np.nan)
    if hypotheses.bounds is not None:
        p = hypotheses.betting.test(alternative).p_value
    else:
        p = _of_alike(hypotheses, alternative)
        p = np.where(alike, p, np.nan)
    p = np.where(alike & (hypotheses.direction == 0), 1.0, p)
    # max-T flips signs, which changes nothing in columns that do not vary
    correction = options.correction if options.correction in CORRECTIONS else "holm"
    return np.where(alike, _adjust(p, hypotheses.families, options, correction), np.nan)


def _of_alike(hypotheses: Hypotheses, alternative: Alternative) -> FloatArray:
    distance = hypotheses.moments.mean - hypotheses.threshold
    size = np.maximum(hypotheses.size, np.finfo(np.float64).tiny)
    p = (size / (size + np.abs(distance))) ** hypotheses.moments.n_clusters
    if alternative == "two-sided":
        return np.asarray(np.minimum(1, 2 * p))
    return np.where(distance > 0 if alternative == "greater" else distance < 0, p, 1.0)


def _adjust(
    single: FloatArray,
    families: IndexArray,
    options: CorrectionOptions,
    correction: str | None = None,
) -> FloatArray:
    """Correct p-values (T,) within families."""
    return inference.adjust_p_values(
        single, correction or options.correction, families, options.alpha
    )


def _max_t(
    hypotheses: Hypotheses, options: CorrectionOptions, alternative: Alternative
) -> FloatArray:
    assert isinstance(options, TestOptions)  # only these have the correction max_t
    adjusted = np.full(hypotheses.n_tests, np.nan)
    for columns in hypotheses.columns_by_family:
        adjusted[columns] = inference.step_down_max_t(
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
    """Return the larger max-T p-value of both one-sided tests of each mean.

    All tests of a family, at both ends, are flipped together: a mean wrongly found equivalent lies
    beyond one end of the margin only, but another mean may lie beyond the other end.
    """
    adjusted = np.full(hypotheses.n_tests, np.nan)
    values = np.where(hypotheses.is_tested, hypotheses.sample.values, np.nan)
    for columns in hypotheses.columns_by_family:
        own = values[:, columns]
        # both differences are above 0 exactly if the mean lies within the margin
        ends = np.concatenate([margin + own, margin - own], axis=1)
        stepped = inference.step_down_max_t(
            Sample(ends, hypotheses.sample.clusters),
            0,
            n_resamples=options.resamples,
            seed=options.seed,
        )
        adjusted[columns] = stepped.reshape(2, -1).max(axis=0)
    return adjusted
