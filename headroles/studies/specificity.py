"""Does a head attend along the arcs of one relation, or along any arc?

A head that gives subjects five times uniform attention may give determiners eight times as much.
Beside each relation stands the attention of the same head along the arcs of all other relations of
the corpus, in the same direction. In an example with N arcs and the mean score S over them, of
which n arcs with the mean s are of the relation, that of the others is

    (N S - n s) / (N - n)

A relation that is shown to get less than the others is *not specific*. Beside a path of arcs stand
all arcs of the corpus. This describes what an answer is about; it is no step of evidence, and
changes no answer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headroles.arrays import Float32Array, FloatArray, new_array
from headroles.inference.sample import Sample
from headroles.role_names import ENDS, POOLED, every_arc_of, path_of, role_of_arcs
from headroles.scoring.scores import HeadScores
from headroles.studies.heads import HeadColumns, clusters_in
from headroles.testing.evidence import UNTESTABLE, T, answers, find_p_values
from headroles.testing.hypotheses import Hypotheses, size_of
from headroles.testing.notes import is_skewed
from headroles.testing.options import TestOptions
from headroles.testing.steps import Leg

COLUMNS = ("other_arcs", "above_others", "others_low", "others_high", "p_others", "specific")
"""Mean along other arcs, difference to it with interval and p-value of two sides, and answer."""


def describe_specificity(
    scores: HeadScores, columns: HeadColumns, options: TestOptions
) -> dict[str, NDArray[Any]]:
    """Return for each test (T,) of ``columns`` what `COLUMNS` names; NaN and "" without any.

    Means and differences are over examples that have arcs of the relation and others. ``specific``
    is *yes* if the relation is shown to get more than the others, and *no* if less, corrected over
    all tests, which depend on one another. It is *untestable* where layers differ in reach, since
    each then sees other arcs.
    """
    n_tests = len(columns.indices[0])
    described: dict[str, NDArray[Any]] = {name: np.full(n_tests, np.nan) for name in COLUMNS}
    described["specific"] = np.full(n_tests, "", dtype=object)
    measures = {role: every for role, every in _every_arc_of(scores).items() if role in columns.ids}
    if not measures:
        return described
    has_measure = np.array([name in measures for name in columns.ids], dtype=bool)
    subjects = np.flatnonzero(has_measure[columns.indices[0]])
    if len(set(scores.record.model.reaches_of_layers)) > 1:
        described["specific"][subjects] = UNTESTABLE
        return described
    own = replace(columns, roles=tuple(role for role in columns.roles if role.id in measures))
    values, other_arcs = own.values(scores), _other_arcs(scores, own, measures)
    clusters = clusters_in(scores.clusters, options)
    tests = Hypotheses.from_values(
        Sample.from_values(values - other_arcs.values, clusters),
        0.0,
        size=size_of(values) + other_arcs.size,
        labels=own.indices[0],
        names=own.ids,
        is_clustered=clusters is not None,
    )
    leg, intervals = Leg(tests, subjects, n_tests), tests.intervals(options.alpha)
    # the test that goes with the interval; few arcs of a relation make means with long tails, whose
    # t is far from its distribution
    either = find_p_values(tests, _for_dependent_tests(options), "two-sided", T)
    shown = either.shows(options.alpha) & ~is_skewed(tests)
    numbers = (tests.moments.mean, intervals.ci_low, intervals.ci_high, either.single)
    described |= dict(zip(COLUMNS[1:-1], map(leg.spread, numbers), strict=True))
    other_arcs.values[np.isnan(values)] = np.nan
    described["other_arcs"] = leg.spread(Sample.from_values(other_arcs.values).moments.mean)
    described["specific"][subjects] = np.where(
        np.isnan(either.evidence),
        UNTESTABLE,
        answers(shown, either.direction),
    )
    return described


def _for_dependent_tests(options: TestOptions) -> TestOptions:
    """Return options whose correction holds for relations of a head, each a part of the others.

    Where one gets more than the others, these get less: under such dependence the correction of
    Benjamini and Hochberg (1995) is not known to hold, but that of Benjamini and Yekutieli (2001)
    is.
    """
    return replace(options, correction="fdr_by") if options.correction == "fdr_bh" else options


def _every_arc_of(scores: HeadScores) -> dict[str, str]:
    """Return the measure of all arcs in the direction of each role of one relation."""
    measures = {}
    for end in ENDS:
        every = every_arc_of(role_of_arcs(POOLED, end))
        if every not in scores.role_ids:
            continue
        for role in scores.roles:
            is_of_one = role.relation and role.relation != POOLED and role.is_tested
            if is_of_one and role.id == role_of_arcs(role.relation, end):
                measures[role.id] = every
    return measures


class OtherArcs(NamedTuple):
    """Means ``values`` (examples, T) along other arcs, NaN without any.

    ``size`` (T,) is the root mean square of the terms that were subtracted.
    """

    values: Float32Array
    size: FloatArray


def _other_arcs(scores: HeadScores, own: HeadColumns, measures: dict[str, str]) -> OtherArcs:
    """Find the means along the arcs of other relations, role by role."""
    n_heads = own.n_layers * own.n_heads
    values = new_array((scores.n_examples, n_heads * len(own.ids)), np.float32)
    paths = {role.id for role in own.roles if len(path_of(role.relation)) > 1}
    sizes = []
    for place, role in enumerate(own.ids):
        n_every, n_own = (_counts(scores, name) for name in (measures[role], role))
        if role in paths:  # which are no arcs, so that all arcs are others
            n_own = np.zeros_like(n_own)
        n_others = np.where(n_every > n_own, n_every - n_own, np.nan)
        of_every = scores.column(measures[role]) * (n_every / n_others)[:, None]
        of_own = np.nan_to_num(scores.column(role)) * (n_own / n_others)[:, None]
        values[:, place * n_heads : (place + 1) * n_heads] = of_every - of_own
        sizes.append(size_of(of_every, of_own))
    return OtherArcs(values, np.concatenate(sizes))


def _counts(scores: HeadScores, role: str) -> FloatArray:
    return scores.counts[:, scores.role_ids.index(role)].astype(np.float64)
