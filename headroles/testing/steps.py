"""How far evidence goes: hypotheses in steps, each of which counts only if all before it hold.

The first step is an answer by itself, such as *yes* to a role. Each further step has one or more
legs, tests of other values of the same subjects, such as contrasts. A step is shown if all of its
legs and all steps before it are: an intersection-union test, whose p-value is the largest of all.
If a step is wrong, at least one of its hypotheses is true, and the largest p-value is at most its
level with at most that probability. Every step is corrected as a family of its own, so that the
wrong answers of k steps together keep at most k times alpha. A step is not shown by t where fewer
than ``LEAST`` documents have a value of one of its legs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headroles.arrays import BoolArray, FloatArray, IndexArray
from headroles.inference import Alternative, Intervals, adjust_p_values
from headroles.testing.evidence import UNTESTABLE, PValues, T, answers, both, find_p_values
from headroles.testing.hypotheses import Hypotheses
from headroles.testing.options import CorrectionOptions, TestOptions

LEAST = 10
"""Documents, or independent examples, that a leg of a further step needs to be shown by t.

Words in between exist for few arcs, and t finds means of so few skewed values too often
(docs/evidence/grammar.md).
"""


@dataclass(frozen=True)
class Leg:
    """H0 about some of ``n_subjects`` T: ``hypotheses`` of those at ``subjects`` (C,)."""

    hypotheses: Hypotheses
    subjects: IndexArray
    n_subjects: int

    def spread(self, values: NDArray[np.number], missing: float = np.nan) -> FloatArray:
        """Return (T,): a value of each tested subject (C,), ``missing`` for the rest."""
        spread = np.full(self.n_subjects, missing)
        spread[self.subjects] = values
        return spread

    def p_values(
        self, options: CorrectionOptions, side: Alternative, missing: float = np.nan
    ) -> PValues:
        """Return the p-values of all subjects (T,), ``missing`` for those without a hypothesis."""
        tested = find_p_values(self.hypotheses, options, side)
        return PValues(
            statistic=self.spread(tested.statistic),
            single=self.spread(tested.single, missing),
            adjusted=self.spread(tested.adjusted, missing),
            direction=self.spread(tested.direction),
            by_bound=self.spread(tested.by_bound),
        )

    def lacks_units(self, options: TestOptions) -> BoolArray:
        """Tell for which subjects (T,) t has values of too few documents."""
        tests = self.hypotheses
        has_few = tests.is_tested & (tests.moments.n_clusters < LEAST)
        return np.asarray(self.spread(has_few * 1.0, 0.0) * (options.test == T) > 0)

    def shown_by_enough(self, options: TestOptions) -> PValues:
        """Return the p-values of values above thresholds; 1 with values of too few documents."""
        p_values = self.p_values(options, "greater")
        single = np.where(self.lacks_units(options), 1.0, p_values.single)
        adjusted = adjust_p_values(single, options.correction)
        return replace(p_values, single=single, adjusted=adjusted)


def all_of(several: Sequence[PValues], options: CorrectionOptions) -> PValues:
    """Compute p-values of H1: all of several H1 hold."""
    together = several[0]
    for p_values in several[1:]:
        together = both(together, p_values, options)
    return together


def any_of(several: Sequence[PValues], options: CorrectionOptions) -> PValues:
    """Compute p-values of H1: at least one of several H1 holds, by Bonferroni's inequality.

    Tests that were not made do not count; NaN where none was.
    """
    evidence = np.stack([p_values.evidence for p_values in several])
    n_made = (~np.isnan(evidence)).sum(axis=0)
    smallest = np.where(n_made > 0, np.where(np.isnan(evidence), np.inf, evidence).min(axis=0), 1)
    single = np.where(n_made > 0, np.minimum(1, n_made * smallest), np.nan)
    return PValues.alone(single, adjust_p_values(single, options.correction))


@dataclass(frozen=True)
class Step:
    """Results of a step for T subjects.

    ``together`` are the p-values of the step with all steps before it. ``answers`` say what its
    legs were shown to be by themselves: *yes*, all of them above their thresholds; *no*, at least
    one below. ``p_value`` is that of *yes*; ``mean``, ``interval`` and ``n`` are those of the leg
    with the smallest mean. All are NaN, and the answer is *untestable*, where a leg was not tested.
    """

    together: PValues
    answers: NDArray[np.str_]
    p_value: FloatArray
    mean: FloatArray
    interval: Intervals
    n: FloatArray


def take_step(before: PValues, legs: Sequence[Leg], options: TestOptions) -> Step:
    """Test a step, on top of the evidence ``before`` it (T,)."""
    above = all_of([leg.shown_by_enough(options) for leg in legs], options)
    below = any_of([leg.p_values(options, "less") for leg in legs], options)
    is_missing = np.isnan(above.evidence)
    yes, no = above.shows(options.alpha), below.shows(options.alpha) & ~is_missing
    means = np.stack([leg.spread(leg.hypotheses.moments.mean) for leg in legs])
    smallest = np.where(np.isnan(means), np.inf, means).argmin(axis=0)[None]
    intervals = [leg.hypotheses.intervals(options.alpha) for leg in legs]

    def of_smallest(values: Sequence[NDArray[np.number]]) -> FloatArray:
        spread = [leg.spread(of_leg) for leg, of_leg in zip(legs, values, strict=True)]
        chosen: FloatArray = np.take_along_axis(np.stack(spread), smallest, axis=0)[0]
        return np.where(is_missing, np.nan, chosen)

    return Step(
        together=both(before, above, options),
        answers=np.where(is_missing, UNTESTABLE, answers(yes | no, yes * 1.0 - no)),
        p_value=above.evidence,
        mean=of_smallest([leg.hypotheses.moments.mean for leg in legs]),
        interval=Intervals(
            of_smallest([interval.ci_low for interval in intervals]),
            of_smallest([interval.ci_high for interval in intervals]),
        ),
        n=of_smallest([leg.hypotheses.moments.n for leg in legs]),
    )
