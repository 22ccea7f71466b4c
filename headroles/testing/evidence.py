"""From hypotheses to p-values, uncorrected and corrected, by the test, and to answers in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headroles import inference
from headroles.arrays import BoolArray, FloatArray, IndexArray
from headroles.inference import Alternative, adjust_p_values
from headroles.testing.hypotheses import Hypotheses
from headroles.testing.options import CorrectionOptions, TestOptions

# Tests, by name.

T, RANK, NEW, MCNEMAR = "t", "rank", "new", "mcnemar"
BETTING: Final = "betting"


class Found(NamedTuple):
    """Result of a test (T,): its statistic, p-values, and the side that the evidence favours."""

    statistic: FloatArray
    p_value: FloatArray
    direction: FloatArray


def _t(hypotheses: Hypotheses, side: Alternative) -> Found:
    tested = inference.t_test(hypotheses.sample, hypotheses.threshold, alternative=side)
    return Found(tested.statistic, tested.p_value, hypotheses.direction)


def _betting(hypotheses: Hypotheses, side: Alternative) -> Found:
    bets = hypotheses.betting
    return Found(bets.log_e(side), bets.p_value(side), hypotheses.direction)


def _rank(hypotheses: Hypotheses, side: Alternative) -> Found:
    drawn, observed = hypotheses.sample.values, hypotheses.threshold
    p_values = inference.rank_test(drawn, observed, hypotheses.rounding, side)
    return Found(observed, p_values, -hypotheses.direction)


def _new(hypotheses: Hypotheses, side: Alternative) -> Found:
    drawn, observed = hypotheses.sample.values, hypotheses.threshold
    return Found(observed, inference.draw_test(drawn, observed, side), -hypotheses.direction)


def _mcnemar(hypotheses: Hypotheses, side: Alternative) -> Found:
    p_values = inference.mcnemar_test(hypotheses.sample.values)
    return Found(hypotheses.moments.mean, p_values, hypotheses.direction)


TESTS: dict[str, Callable[[Hypotheses, Alternative], Found]] = {
    T: _t,
    BETTING: _betting,
    RANK: _rank,
    NEW: _new,
    MCNEMAR: _mcnemar,
}
"""All tests of `Hypotheses`."""


# p-values.


@dataclass(frozen=True)
class PValues:
    """p-values of tests in one direction, all (T,), NaN where a test was not made.

    ``statistic`` is that of the chosen test: t, or the logarithm of the gain of bets. ``adjusted``
    are corrected for the number of tests. ``direction`` is the side that the
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

    def take(self, indices: IndexArray) -> PValues:
        """Return the tests at ``indices``."""
        return PValues(*(getattr(self, field.name)[indices] for field in fields(self)))

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

    The test is ``test``, by default that of ``options``. All tests are one family.
    """
    result = _single(hypotheses, options, alternative, test)
    adjusted = adjust_p_values(result.p_value, options.correction)
    by_bound = _by_bound(hypotheses, options, alternative)
    by_bound[~np.isnan(result.p_value)] = np.nan  # betting and draws need no variance
    return PValues(result.statistic, result.p_value, adjusted, result.direction, by_bound)


def both(first: PValues, other: PValues, options: CorrectionOptions) -> PValues:
    """Compute p-values of H1: both of two H1 hold, by one intersection-union test each.

    p is the larger of both (the E-value the smaller), and is corrected once. Statistics and
    directions are those of ``first``. Where only a bound decides one of them, both are taken as
    corrected among their own tests.
    """
    single = np.maximum(first.single, other.single)  # NaN if either is
    corrected = (
        np.where(np.isnan(tests.adjusted), tests.by_bound, tests.adjusted)
        for tests in (first, other)
    )
    by_bound = np.where(np.isnan(single), np.maximum(*corrected), np.nan)
    adjusted = adjust_p_values(single, options.correction)
    return PValues(first.statistic, single, adjusted, first.direction, by_bound)


def find_equivalence(hypotheses: Hypotheses, options: CorrectionOptions, margin: float) -> PValues:
    """Compute p-values of H1: the mean is less than ``margin`` away from 0, in either direction.

    By two one-sided tests (Schuirmann 1987), p is the larger of both, and needs no correction for
    their number. A mean that is not shown to differ from 0 is not thereby shown to be near 0; this
    test shows it. The thresholds of ``hypotheses`` are ignored; statistics are those of the lower
    end.
    """
    (above, below), by_bounds = _of_ends(hypotheses, options, -margin, margin)
    single = np.maximum(above.p_value, below.p_value)
    adjusted = adjust_p_values(single, options.correction)
    by_bound = np.maximum(*by_bounds)
    return PValues(above.statistic, single, adjusted, hypotheses.direction, by_bound)


def find_change(hypotheses: Hypotheses, options: CorrectionOptions, margin: float) -> PValues:
    """Compute p-values of H1: the mean is more than ``margin`` away from 0, on either side.

    p is twice the smaller of two one-sided tests, against both ends of the margin: at most one of
    them can be right. With ``margin`` 0 this is the two-sided test. The thresholds of
    ``hypotheses`` are ignored; statistics are those of the nearer end.
    """
    (above, below), by_bounds = _of_ends(hypotheses, options, margin, -margin)
    single = np.minimum(1, 2 * np.minimum(above.p_value, below.p_value))
    by_bound = np.minimum(1, 2 * np.minimum(*by_bounds))
    statistic = np.where(above.p_value <= below.p_value, above.statistic, below.statistic)
    adjusted = adjust_p_values(single, options.correction)
    return PValues(statistic, single, adjusted, hypotheses.against(0).direction, by_bound)


def _of_ends(
    hypotheses: Hypotheses, options: CorrectionOptions, low: float, high: float
) -> tuple[list[Found], list[FloatArray]]:
    """Test H1: the mean is above ``low``, H1: it is below ``high``; p-values by bounds beside."""
    ends: tuple[tuple[float, Alternative], ...] = ((low, "greater"), (high, "less"))
    sides = [(hypotheses.against(limit), side) for limit, side in ends]
    by_bounds = [_by_bound(tests, options, side) for tests, side in sides]
    return [_single(tests, options, side) for tests, side in sides], by_bounds


def find_replicated(
    log_e: FloatArray, at_least: int, independent: bool, options: CorrectionOptions
) -> PValues:
    """Compute p-values of H1: single H1 hold in ``at_least`` of several sets.

    ``log_e`` (sets, T) is the logarithm of the evidence of betting in each set
    (`partial_conjunction`), and the combined one the ``statistic``; ``independent`` says whether
    the sets share no example.
    """
    return of_bets(inference.partial_conjunction(log_e, at_least, independent), options)


def in_at_least(single_tests: PValues, at_least: int) -> PValues:
    """Compute one p-value of H1: ``at_least`` u of the T single H1 hold, under any dependence.

    With u = T all of them hold, with u = 1 any. Missing p-values are no evidence; the p-value is
    NaN if all are missing.
    """
    p = single_tests.evidence
    single = np.full(1, np.nan)
    if not np.isnan(p).all():
        single[:] = inference.partial_conjunction_of_p(p, at_least)
    return PValues.alone(single, single)


def corrected_together(several: Sequence[PValues], options: CorrectionOptions) -> PValues:
    """Correct the p-values of tests of different kinds as one family."""
    p = np.concatenate([p_values.evidence for p_values in several])
    return PValues.alone(p, adjust_p_values(p, options.correction))


def of_bets(log_e: FloatArray, options: CorrectionOptions) -> PValues:
    """Compute p-values from the logarithm of the evidence (T,) of bets, which may continue."""
    single = inference.p_of_bets(log_e)
    adjusted = adjust_p_values(single, options.correction)
    return PValues(log_e, single, adjusted, np.sign(log_e), np.full(len(log_e), np.nan))


def _single(
    hypotheses: Hypotheses,
    options: CorrectionOptions,
    alternative: Alternative,
    test: str | None = None,
) -> Found:
    """Run each test, uncorrected."""
    name = test or (options.test if isinstance(options, TestOptions) else T)
    results = [TESTS[name](some, alternative) for some in hypotheses.by_slice()]
    return Found(*map(np.concatenate, zip(*results, strict=True)))


def _by_bound(
    hypotheses: Hypotheses, options: CorrectionOptions, alternative: Alternative
) -> FloatArray:
    """Compute p-values (T,) of columns without variance, NaN for all others.

    The t-test has no error for them. If no example could have a value beyond a bound on the other
    side of the threshold m, betting decides, corrected over all tests. Else, as for bias scores
    below m, which have no upper bound, assume that no unit is farther on that side than the size of
    the summed or subtracted numbers: if the mean were m, at most the share size / (size + |c - m|)
    of units could have the value c, and all n units have it with the n-th power of that
    probability.
    """
    alike = hypotheses.is_alike
    if not alike.any():
        return np.full(hypotheses.n_tests, np.nan)
    side = hypotheses.direction
    p = np.where(alike, _of_alike(hypotheses, alternative), np.nan)
    if hypotheses.bounds is not None:
        has_end = hypotheses.bounds.ends_beyond(side)
        p = np.where(has_end, hypotheses.betting.p_value(alternative), p)
    p = np.where(alike & (side == 0), 1.0, p)
    return np.where(alike, adjust_p_values(p, options.correction), np.nan)


def _of_alike(hypotheses: Hypotheses, alternative: Alternative) -> FloatArray:
    distance = hypotheses.moments.mean - hypotheses.threshold
    size = np.maximum(hypotheses.size, np.finfo(np.float64).tiny)
    p = (size / (size + np.abs(distance))) ** hypotheses.moments.n_clusters
    if alternative == "two-sided":
        return np.asarray(np.minimum(1, 2 * p))
    return np.where(distance > 0 if alternative == "greater" else distance < 0, p, 1.0)


# Answers.

YES, NO, UNDECIDED, UNTESTABLE = ANSWERS = ("yes", "no", "undecided", "untestable")
POSITIONAL = "positional"
"""Answer about a role of pairs of words: as much attention to any word at that distance."""
ROLE_ANSWERS = (YES, POSITIONAL, NO, UNDECIDED, UNTESTABLE)


def answers(
    significant: ArrayLike, direction: ArrayLike, words: tuple[str, str] = (YES, NO)
) -> NDArray[np.str_]:
    """Return the first word for each significant test (T,) above, the second for those below.

    The answer is ``"undecided"`` if a test is not significant, or ``direction`` is 0 or NaN.

    >>> answers([True, True, False], [2.0, -1.0, 3.0], ("worse", "better")).tolist()
    ['worse', 'better', 'undecided']
    """
    shown, side = np.asarray(significant, dtype=bool), np.asarray(direction)
    return np.select([shown & (side > 0), shown & (side < 0)], words, UNDECIDED)


CORRECTION: Final = "fdr_bh"
"""Correction of 1 / E: e-BH (Wang and Ramdas 2022), valid under any dependence between tests."""


def by_betting(options: TestOptions) -> TestOptions:
    """Return the options of the tests behind certified answers, at the level of ``options``."""
    return replace(options, test=BETTING, correction=CORRECTION)
