"""HeadScores -> answers: has a head a role, and how far does the evidence for it go?

A head has a role if its mean is shown to be above the threshold. For roles of pairs of words, such
as the arcs of a relation, evidence goes in steps, each a hypothesis of its own:

    distance    more attention to these pairs than to other words at the same distance, and than to
                the same places in the trees of other sentences
    class       more than nearer words of the same class get, and than such words give
    attractors  more than words of the same class in between get

First choices (score hit) have rules in place of contrasts. At *distance* a head has to beat the
best fixed offset, which is the threshold of its mean, and at *class* the best rule that looks for
the nearest word of a class, on one side or on either; this is *attractors* too, since such a rule
never goes past a word of the class.

In decoders tokens see different numbers of others, which makes attention to words at the same
distance no measure of what grammar adds: the contrast with other trees, which compares the same
places, stands in its place.

The answer is *yes* if mean and distance are shown: an intersection-union test, whose p-value is the
largest of all and is corrected once. A mean above the threshold of a head that is shown not to
exceed the margin at *distance* is *positional*. Further steps count only on top of *yes*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from headroles.arrays import BoolArray, FloatArray, IndexArray, column_slices, new_array
from headroles.inference.sample import Bounds, Sample
from headroles.role_names import BETWEEN, BEYOND_OFFSET, NEAR, NEAR_BACK, OTHER_TREES
from headroles.scoring.scores import HeadScores
from headroles.studies.heads import (
    ClassBaseline,
    HeadColumns,
    OffsetBaseline,
    ThresholdOptions,
    baseline_of,
    class_baseline_of,
    clusters_in,
)
from headroles.testing.evidence import (
    NO,
    POSITIONAL,
    UNDECIDED,
    UNTESTABLE,
    YES,
    PValues,
    T,
    both,
    by_betting,
    find_p_values,
)
from headroles.testing.hypotheses import Hypotheses, size_of, size_of_scores
from headroles.testing.notes import FEW, is_skewed
from headroles.testing.options import LevelOptions, TestOptions
from headroles.testing.steps import LEAST, Leg, Step, all_of, any_of, take_step

BEYOND_TREES = "beyond_trees"
"""The contrast with the control of other trees, example by example."""
DISTANCE, CLASS, ATTRACTORS = STEPS = ("distance", "class", "attractors")
"""The steps of evidence about roles of pairs, in their order."""
CONTRASTS = {
    DISTANCE: (BEYOND_OFFSET, BEYOND_TREES),
    CLASS: (NEAR, NEAR_BACK),
    ATTRACTORS: (BETWEEN,),
}
"""The contrasts that each step needs."""
CLASS_RULE = "class_rule"
"""First choices beside the best class rule, in the place of the contrasts of *class*."""


@dataclass(frozen=True)
class RoleHypotheses:
    """H0 of T roles of heads: the mean score is too small, or a contrast of the role is.

    ``legs`` are the hypotheses about contrasts, by the name of the contrast. ``rules`` are, by
    role, those that means are compared with, and ``class_rules`` those of the step *class*.
    """

    columns: HeadColumns
    means: Hypotheses
    legs: Mapping[str, Leg]
    rules: Mapping[str, OffsetBaseline]
    class_rules: Mapping[str, ClassBaseline] = field(default_factory=dict)
    is_causal: bool = False
    """Whether the scores are of a decoder, whose contrast at *distance* is with other trees."""

    @classmethod
    def from_scores(
        cls,
        scores: HeadScores,
        options: LevelOptions,
        against: ThresholdOptions | None = None,
        columns: HeadColumns | None = None,
        published: bool = False,
    ) -> RoleHypotheses:
        """Return H0 for every role, layer and head of ``columns``, by default of all roles.

        ``against`` says what means are compared with, by default the threshold of each role, or for
        first choices between words the best fixed offset and a margin. The ``published`` tests have
        no contrasts.

        Raises UsageError for examples that cannot be clustered as ``options`` say.
        """
        against, columns = against or ThresholdOptions(), columns or HeadColumns.from_scores(scores)
        against.check_range(scores.score)
        against.check_margins(scores.roles, scores.score)
        clusters = clusters_in(scores.clusters, options)
        names = columns.ids if against.threshold is None else ()
        rules = {name: rule for name in names if (rule := baseline_of(scores, name))}
        means = _tests_of_means(scores, columns, clusters, against, rules, 0 if published else 1)
        margin = against.margin_of(scores.score)
        legs = {} if published else _legs(scores, columns, clusters, margin)
        of_class = {name: best for name in rules if (best := class_baseline_of(scores, name))}
        if of_class:
            margin = against.offset_margin
            legs[CLASS_RULE] = _leg_of_rules(scores, columns, of_class, clusters, margin)
        return cls(columns, means, legs, rules, of_class, scores.record.model.is_causal)

    @property
    def has_bounds(self) -> bool:
        """Whether the bounds of all scores are known, as betting needs."""
        tests = (self.means, *(leg.hypotheses for leg in self._legs_of(DISTANCE)))
        return all(hypotheses.bounds is not None for hypotheses in tests)

    @property
    def beyond(self) -> FloatArray:
        """Mean contrast (T,) with other words at the same distance, NaN without one."""
        leg = self.legs.get(BEYOND_OFFSET)
        if leg is None:
            return np.full(self.means.n_tests, np.nan)
        return leg.spread(leg.hypotheses.moments.mean)

    def log_e(self, beyond: str = DISTANCE) -> FloatArray:
        """Logarithm of the evidence (T,) of bets that heads have roles: the smallest of all.

        With ``beyond``, of bets that evidence reaches this step; NaN for roles without contrasts or
        rules in their place. The rule of *class* stands for *attractors* too.
        """
        log_e = self.means.betting.above
        for leg in self._legs_of(DISTANCE):
            of_leg = leg.spread(leg.hypotheses.betting.above, np.inf)
            without = self._p_without_test(leg)
            of_leg = np.select([without == 0, without == 1], [np.inf, 0.0], of_leg)
            log_e = np.minimum(log_e, of_leg)
        for step in STEPS[1 : STEPS.index(beyond) + 1]:
            if step == ATTRACTORS and self.class_rules:
                continue
            if not (legs := self.all_legs_of(step)):
                return np.full_like(log_e, np.nan)
            for leg in legs:
                log_e = np.minimum(log_e, leg.spread(leg.hypotheses.betting.above))
        return log_e

    def all_legs_of(self, step: str) -> list[Leg]:
        """Return the hypotheses of a step; none where these scores lack one that it needs."""
        legs = self._legs_of(step)
        return legs if len(legs) == len(self._needed(step)) else []

    def _legs_of(self, step: str) -> list[Leg]:
        """Return the hypotheses of a step that these scores have."""
        return [self.legs[name] for name in self._needed(step) if name in self.legs]

    def _needed(self, step: str) -> tuple[str, ...]:
        """Return what a step needs: contrasts, or a rule in their place."""
        return (CLASS_RULE,) if step == CLASS and self.class_rules else CONTRASTS[step]

    @property
    def has_steps(self) -> BoolArray:
        """Whether each test (T,) is of a role whose evidence goes in steps."""
        has = np.array([name in self.rules for name in self.columns.ids], dtype=bool)
        of_tests: BoolArray = has[self.columns.indices[0]]
        if BEYOND_OFFSET in self.legs:
            of_tests[self.legs[BEYOND_OFFSET].subjects] = True
        return of_tests

    def _p_without_test(self, leg: Leg) -> FloatArray:
        """Return p-values (T,) where the contrast with other trees cannot be tested; NaN elsewhere.

        Roles without it, and all roles if too few sentences of the corpus find another tree of as
        many words, rest on other contrasts alone: 0. If other roles can be tested, a role with too
        few such sentences has no evidence: 1.
        """
        if leg is not self.legs.get(BEYOND_TREES):
            return np.full(self.means.n_tests, np.nan)
        is_made = leg.hypotheses.is_tested | leg.hypotheses.is_alike
        return leg.spread(np.where(is_made, np.nan, float(is_made.any())), 0.0)

    def _p_of_distance(self, leg: Leg, options: TestOptions) -> PValues:
        """Return p-values (T,) of a contrast, also where it cannot be tested."""
        p_values, without = leg.p_values(options, "greater", 0.0), self._p_without_test(leg)
        is_tested = np.isnan(without)
        return replace(
            p_values,
            single=np.where(is_tested, p_values.single, without),
            adjusted=np.where(is_tested, p_values.adjusted, without),
        )

    def answered(self, options: TestOptions) -> Answered:
        """Answer by the tests of ``options``; without a contrast, the mean alone decides.

        Not rejecting H0: mean <= threshold is no evidence for H0, so that *no* needs a test too. A
        true mean is on one side only, so wrong answers come from one of the two directions only,
        and each keeps the level of its own correction: family-wise error or false discovery rate
        at most alpha among the *yes*, and at most alpha among the *no*.

        Of m tests, Benjamini-Hochberg keeps alpha * m0 / m in a direction in which m0 H0 are true.
        A mean that is not at the threshold makes only one of its two H0 true, so that both
        directions together keep alpha, as the directional procedure of Benjamini and Yekutieli
        (2005) does.
        """
        above, below = (find_p_values(self.means, options, side) for side in ("greater", "less"))
        legs, alpha = self._legs_of(DISTANCE), options.alpha
        names = [name for name in CONTRASTS[DISTANCE] if name in self.legs]
        of_legs = [self._p_of_distance(leg, options) for leg in legs]
        having = all_of([above, *of_legs], options)
        positional = np.zeros(self.means.n_tests, dtype=bool)
        if legs:
            within = any_of([leg.p_values(options, "less") for leg in legs], options)
            positional = both(above, within, options).shows(alpha)
        untestable = np.isnan(below.adjusted) & np.isnan(below.by_bound)
        answers = np.select(
            [untestable, having.shows(alpha), below.shows(alpha), positional],
            [UNTESTABLE, YES, NO, POSITIONAL],
            UNDECIDED,
        )
        shown = {"mean": above.shows(alpha)} | {
            self._in_notes(name): p_values.shows(alpha)
            for name, p_values in zip(names, of_legs, strict=True)
        }
        return Answered(answers, having, below, _what_is_open(answers, shown) if legs else None)

    def _in_notes(self, contrast: str) -> str:
        is_of_trees = contrast == BEYOND_TREES or self.is_causal
        return "other trees" if is_of_trees else "contrast"

    def steps(self, having: PValues, options: TestOptions) -> dict[str, Step]:
        """Test the steps beyond *distance*, on top of the evidence for *yes*.

        A step is missing if no role of these scores has its contrasts or rules.
        """
        results, before = {}, having
        for name in (CLASS, ATTRACTORS):
            if not (legs := self.all_legs_of(name)):
                break
            results[name] = take_step(before, legs, options)
            before = results[name].together
        return results

    def rests_on_little(
        self, evidence: NDArray[np.object_], options: TestOptions
    ) -> NDArray[np.object_]:
        """Note (T,) the first step of ``evidence`` that rests on few documents or skewed contrasts.

        Contrasts exist for some sentences alone: few arcs have an attractor. Where the mean has few
        documents too, a warning says so of the whole role (`headroles.testing.notes`). Betting
        is valid with few documents and for skewed contrasts.
        """
        by_t = options.test == T
        notes = np.full(self.means.n_tests, "", dtype=object)
        is_shown = (evidence != "") & (self.means.moments.n_clusters >= FEW)
        for step in STEPS:
            for leg in self._legs_of(step):
                tests = leg.hypotheses
                n = leg.spread(tests.moments.n_clusters, np.inf)
                is_skew = leg.spread((is_skewed(tests) & (tests.direction > 0)) * 1.0, 0.0) > 0
                reasons = np.select(
                    [
                        (self._p_without_test(leg) == 0) & (n < FEW),
                        by_t & (n < FEW),
                        by_t & is_skew,
                    ],
                    [
                        f"{step} rests on no other trees, which too few sentences find",
                        [f"{step} rests on {count:.0f} {tests.units}" for count in n],
                        f"{step} rests on skewed contrasts, which t finds above too often",
                    ],
                    "",
                )
                notes = np.where(is_shown & (notes == ""), reasons.astype(object), notes)
            is_shown = is_shown & (evidence != step)
        return notes

    def lacks_documents(
        self, evidence: NDArray[np.object_], options: TestOptions
    ) -> NDArray[np.object_]:
        """Note (T,) where the step after ``evidence`` has too few documents to be shown."""
        notes = np.full(self.means.n_tests, "", dtype=object)
        for before, step in pairwise(STEPS):
            for leg in self._legs_of(step):
                counts = leg.spread(leg.hypotheses.moments.n_clusters)
                is_lacking = (evidence == before) & (notes == "") & leg.lacks_units(options)
                for test in np.flatnonzero(is_lacking):
                    units = f"{LEAST} {leg.hypotheses.units}"
                    notes[test] = f"{step} is open: it takes {units}, and has {counts[test]:.0f}"
        return notes

    def certified(self, options: TestOptions) -> NDArray[np.str_]:
        """Answer by betting, at the level of ``options``. Raises UsageError without bounds."""
        return self.answered(by_betting(options)).answers


def evidence_of(
    answers: NDArray[np.str_], steps: Mapping[str, Step], has_steps: BoolArray, alpha: float
) -> NDArray[np.object_]:
    """Return the farthest step (T,) that is shown, empty without *yes* or without steps."""
    evidence = np.where((answers == YES) & has_steps, DISTANCE, "").astype(object)
    before = evidence != ""
    for name, step in steps.items():
        before = before & step.together.shows(alpha)
        evidence[before] = name
    return evidence


@dataclass(frozen=True)
class Answered:
    """Answers (T,), with the p-values of having the role, and of a mean below the threshold.

    ``notes`` (T,) say what is open where the answer is undecided; None without contrasts.
    """

    answers: NDArray[np.str_]
    above: PValues
    below: PValues
    notes: NDArray[np.object_] | None


def _what_is_open(answers: NDArray[np.str_], shown: Mapping[str, BoolArray]) -> NDArray[np.object_]:
    """Name for each undecided answer (T,) the parts that are not shown."""
    parts = [np.where(is_shown, "", name) for name, is_shown in shown.items()]
    texts = [" and ".join(filter(None, names)) for names in zip(*parts, strict=True)]
    is_open = (answers == UNDECIDED) & (np.array(texts, dtype=object) != "")
    return np.where(is_open, [f"open: {text}" for text in texts], "").astype(object)


def _legs(
    scores: HeadScores, columns: HeadColumns, clusters: IndexArray | None, margin: float
) -> dict[str, Leg]:
    """Return H0 about all contrasts of the roles of ``columns``, without those that none has."""
    legs = {}
    scored = [role for role in scores.roles if role.contrast and not role.control]
    for contrast in dict.fromkeys(role.contrast for role in scored):
        by_role = {role.parent: role for role in scored if role.contrast == contrast}
        subjects = _subjects(columns, by_role)
        ids = [name for name in columns.ids if name in by_role]
        if not ids:
            continue
        own = replace(columns, roles=tuple(by_role[name] for name in ids))
        sample = Sample.from_values(own.values(scores), clusters)
        size = size_of_scores(sample)
        tests = _tests(sample, margin, own, clusters, size, own.bounds(scores))
        legs[contrast] = Leg(tests, subjects, len(columns.indices[0]))
    if scores.score.of_first_choice:  # which rules are for
        return legs
    of_trees = _leg_of_trees(scores, columns, clusters, margin)
    if of_trees is None:
        return legs
    # rows of different lengths bias the other contrast
    return {**legs, BEYOND_OFFSET if scores.record.model.is_causal else BEYOND_TREES: of_trees}


def _leg_of_trees(
    scores: HeadScores, columns: HeadColumns, clusters: IndexArray | None, margin: float
) -> Leg | None:
    """Return H0 about roles less their controls in other trees, example by example."""
    controls = {
        role.parent: role
        for role in scores.roles
        if role.control == OTHER_TREES and not role.contrast
    }
    own = replace(columns, roles=tuple(role for role in columns.roles if role.id in controls))
    if not own.roles:
        return None
    in_other_trees = replace(columns, roles=tuple(controls[role.id] for role in own.roles))
    values, of_others = own.values(scores), in_other_trees.values(scores)
    sample = Sample.from_values(values.astype(np.float64) - of_others, clusters)
    size, bounds = size_of(values, of_others), _bounds_of_difference(own, in_other_trees, scores)
    tests = _tests(sample, margin, own, clusters, size, bounds)
    return Leg(tests, _subjects(columns, controls), len(columns.indices[0]))


def _leg_of_rules(
    scores: HeadScores,
    columns: HeadColumns,
    rules: Mapping[str, ClassBaseline],
    clusters: IndexArray | None,
    margin: float,
) -> Leg:
    """Return H0 about the hits of heads less those of class rules, example by example."""
    own = replace(columns, roles=tuple(role for role in columns.roles if role.id in rules))
    of_rules = np.stack([rules[name].hits for name in own.ids], axis=1)
    hits = of_rules[:, own.indices[0]]
    values = own.values(scores)
    sample = Sample.from_values(values - hits, clusters)
    bounds = own.bounds(scores, -np.repeat(np.nan_to_num(of_rules), own.n_layers, axis=1))
    tests = _tests(sample, margin, own, clusters, size_of(values, hits), bounds)
    return Leg(tests, _subjects(columns, rules), len(columns.indices[0]))


def _subjects(columns: HeadColumns, contrasts: Mapping[str, object]) -> IndexArray:
    """Return the numbers of the tests whose role has a contrast."""
    has = np.array([name in contrasts for name in columns.ids], dtype=bool)
    return np.flatnonzero(has[columns.indices[0]])


def _bounds_of_difference(
    own: HeadColumns, subtracted: HeadColumns, scores: HeadScores
) -> Bounds | None:
    """Return bounds of the differences between the scores of two roles of each column."""
    first, second = own.bounds(scores), subtracted.bounds(scores)
    if first is None or second is None:
        return None
    return replace(
        first,
        low=first.low - second.high,
        high=first.high - second.low,
        least=np.full_like(first.least, -np.inf),
        most=np.full_like(first.most, np.inf),
    )


def _tests_of_means(
    scores: HeadScores,
    columns: HeadColumns,
    clusters: IndexArray | None,
    against: ThresholdOptions,
    rules: Mapping[str, OffsetBaseline],
    ddof: int,
) -> Hypotheses:
    """Return H0 for every role, layer and head: the mean is the threshold, or that of the rule."""
    values: NDArray[np.floating] = columns.values(scores)
    sample = Sample.from_values(values, clusters, ddof)
    limits = np.array([role.threshold(scores.score, against.threshold) for role in columns.roles])
    thresholds, shifts = limits[columns.indices[0]], None
    if scores.offset_shares is not None and against.threshold is None:
        shifts, means = columns.baselines(rules, values)
        shifted = new_array(values.shape, np.float64)
        for some in column_slices(*values.shape):
            shifted[:, some] = values[:, some] + shifts[:, columns.by_layer[some]]
        # the mean is that of the head, where adding up shifts would leave rounding
        sample = Sample.from_values(shifted, clusters, ddof).with_means(sample.moments.mean)
        of_offsets = means[columns.by_layer] + against.offset_margin
        thresholds = np.where(np.isnan(of_offsets), thresholds, of_offsets)
    bounds = columns.bounds(scores, shifts)
    return _tests(sample, thresholds, columns, clusters, size_of_scores(sample), bounds)


def _tests(
    sample: Sample,
    thresholds: FloatArray | float,
    columns: HeadColumns,
    clusters: IndexArray | None,
    size: FloatArray,
    bounds: Bounds | None,
) -> Hypotheses:
    """Return H0 for each column of values (examples, T): its mean is the threshold."""
    return Hypotheses.from_values(
        sample,
        thresholds,
        size=size,
        labels=columns.indices[0],
        names=columns.ids,
        is_clustered=clusters is not None,
        bounds=bounds,
    )
