"""One answer about each role of each head, from its mean and, for pairs of words, its contrast.

A head has a role of pairs of words, such as the arcs of a relation, if its mean is above the
threshold and its contrast, what it gives to these pairs beyond other words at the same distance, is
above a margin. Both have to be shown: an intersection-union test, whose p-value is the larger of
both and is corrected once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headroles.arrays import FloatArray, IndexArray
from headroles.roles import Score, contrast_of
from headroles.scoring.scores import HeadScores
from headroles.studies.heads import HeadColumns, clusters_of, hypotheses_about, hypotheses_of
from headroles.studies.options import ThresholdOptions
from headroles.testing.answers import NO, POSITIONAL, UNDECIDED, UNTESTABLE, YES, by_betting
from headroles.testing.evidence import PValues, both, find_p_values
from headroles.testing.hypotheses import Hypotheses
from headroles.testing.options import LevelOptions, TestOptions


def margin_beyond(options: ThresholdOptions, score: Score) -> float:
    """Return the margin that contrasts of this score have to exceed."""
    return score.margin if options.distance_margin is None else options.distance_margin


@dataclass(frozen=True)
class RoleHypotheses:
    """H0 of T roles of heads: the mean, and of those at ``places`` (C,) the contrast, is too small.

    ``contrasts`` (C tests) is None if no role has a contrast.
    """

    columns: HeadColumns
    means: Hypotheses
    contrasts: Hypotheses | None
    places: IndexArray

    @classmethod
    def of(
        cls,
        scores: HeadScores,
        options: LevelOptions,
        against: ThresholdOptions | None = None,
        columns: HeadColumns | None = None,
        published: bool = False,
    ) -> RoleHypotheses:
        """Return H0 for every role, layer and head of ``columns``, by default of all roles.

        The ``published`` tests have no contrasts. Raises UsageError as `hypotheses_of`.
        """
        against, columns = against or ThresholdOptions(), columns or HeadColumns.of(scores)
        margin = margin_beyond(against, scores.score)
        means = hypotheses_of(scores, columns, options, against, ddof=0 if published else 1)
        by_id = {} if published else {role.id: role for role in scores.roles}
        found = [by_id.get(contrast_of(name)) for name in columns.ids]
        own = replace(columns, roles=tuple(role for role in found if role is not None))
        has = np.array([role is not None for role in found], dtype=bool)
        places = np.flatnonzero(has[columns.places[0]])
        if not own.roles:
            return cls(columns, means, None, places)
        clusters, bounds = clusters_of(scores, options), own.bounds(scores)
        contrasts = hypotheses_about(own.values(scores), margin, own, clusters, bounds)
        return cls(columns, means, contrasts, places)

    @property
    def has_bounds(self) -> bool:
        """Whether the bounds of all scores are known, as betting needs."""
        known = (one.bounds is not None for one in (self.means, self.contrasts) if one is not None)
        return all(known)

    @property
    def beyond(self) -> FloatArray:
        """Mean contrast (T,), NaN without one."""
        return self.spread(np.nan if self.contrasts is None else self.contrasts.moments.mean)

    @property
    def log_e(self) -> FloatArray:
        """Logarithm of the evidence (T,) of bets that heads have roles: the smaller of both."""
        log_e = self.means.betting.above
        if self.contrasts is None:
            return log_e
        beyond = self.spread(self.contrasts.betting.above, np.inf)
        return np.minimum(log_e, beyond)

    def spread(self, of_contrasts: FloatArray | float, others: float = np.nan) -> FloatArray:
        """Return (T,): a value of each contrast (C,), ``others`` where there is none."""
        spread = np.full(self.means.n_tests, others)
        spread[self.places] = of_contrasts
        return spread

    def answered(self, options: TestOptions) -> Answered:
        """Answer by the tests of ``options``; without a contrast, the mean alone decides."""
        above, below = (find_p_values(self.means, options, side) for side in ("greater", "less"))
        having, alpha, p_beyond = above, options.alpha, np.full(self.means.n_tests, np.nan)
        positional = np.zeros(self.means.n_tests, dtype=bool)
        notes = np.full(self.means.n_tests, "", dtype=object)
        if self.contrasts is not None:
            beyond, within = (
                find_p_values(self.contrasts, options, side) for side in ("greater", "less")
            )
            is_within = both(above.take(self.places), within, options)
            positional[self.places] = is_within.shows(alpha)
            of_all = PValues(
                statistic=self.spread(beyond.statistic),
                single=self.spread(beyond.single, 0.0),
                adjusted=self.spread(beyond.adjusted, 0.0),
                direction=above.direction,
                by_bound=self.spread(beyond.by_bound),
            )
            having, p_beyond = both(above, of_all, options), self.spread(beyond.single)
            is_open = 2 * of_all.shows(alpha) + above.shows(alpha)
            texts = ("open: mean and contrast", "open: contrast", "open: mean", "")
            notes = np.array(texts, dtype=object)[is_open]
        untestable = np.isnan(below.adjusted) & np.isnan(below.by_bound)
        found = np.select(
            [untestable, having.shows(alpha), below.shows(alpha), positional],
            [UNTESTABLE, YES, NO, POSITIONAL],
            UNDECIDED,
        )
        notes[found != UNDECIDED] = ""
        return Answered(found, having, below, p_beyond, notes)

    def certified(self, options: TestOptions) -> NDArray[np.str_]:
        """Answer by betting, at the level of ``options``; empty texts without bounds."""
        if not self.has_bounds:
            return np.full(self.means.n_tests, "", dtype=f"U{len(UNTESTABLE)}")
        return self.answered(by_betting(options)).answers


@dataclass(frozen=True)
class Answered:
    """Answers (T,) with the p-values of having the role, of a mean below, and of the contrast.

    ``p_beyond`` (T,) is NaN without a contrast. ``notes`` (T,) say what is open where the answer is
    undecided.
    """

    answers: NDArray[np.str_]
    above: PValues
    below: PValues
    p_beyond: FloatArray
    notes: NDArray[np.object_]
