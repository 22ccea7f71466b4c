"""HeadScores -> RoleTable: which heads have which roles, by hypothesis test."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headroles.arrays import BoolArray, FloatArray
from headroles.errors import UsageError
from headroles.inference.sample import Sample
from headroles.options import takes
from headroles.record import HalfPrecision
from headroles.roles import BIAS
from headroles.scoring.run_notes import warnings_of_run
from headroles.scoring.scores import HeadScores
from headroles.studies.cautions import warn_of_documents, why_absent
from headroles.studies.classification.near_answers import are_among, find_near, list_columns
from headroles.studies.classification.options import AssignOptions
from headroles.studies.classification.role_table import RolesRecord, RoleTable, RoleTests
from headroles.studies.heads import (
    HeadColumns,
    describe_clusters,
    general_threshold,
    hypotheses_of,
    note_removed,
    scores_of,
)
from headroles.studies.offsets import rival_of
from headroles.studies.stopped import refuse_stopped, stopped_tests
from headroles.testing.answers import YES, answer, certify
from headroles.testing.evidence import PValues, find_p_values
from headroles.testing.hypotheses import Hypotheses
from headroles.testing.intervals import find_intervals
from headroles.testing.notes import find_notes, find_warnings
from headroles.testing.options import TestOptions


@takes(AssignOptions)
def assign_roles(scores: HeadScores, options: AssignOptions) -> RoleTable:
    """Test for every head and role whether the mean score is above the threshold.

    The unit is the example, or its document. Two one-sided tests, of H0: mean <= threshold and of
    H0: mean >= threshold, are corrected for the number of tests, each direction separately. The
    answer is ``yes`` if the mean is shown to be above (adjusted p <= alpha), ``no`` if it is shown
    to be below, and ``undecided`` if the data show neither, which is not ``no``. Heads with ``yes``
    have the role.

    "Yes" and "no" keep ``alpha`` each. With ``fdr_bh``, ``fdr_by`` and ``bonferroni`` the wrong
    answers of both kinds together keep it too, unless means lie exactly at the threshold; with
    ``holm``, ``hochberg`` and ``max_t`` the chance of any wrong answer is up to 2 * ``alpha``. Most
    scores are skewed to the right. With few examples or clusters of such scores, t-tests, sign
    flips and max-T give a wrong "no" more often than ``alpha`` says and a wrong "yes" less often;
    ``bootstrap_t`` errs a little less.

    First choices (``score="hit"``) of arcs must beat a rule: always look at the word at the best
    fixed offset, up to 5 words away. Each half of the documents is compared with the best offset of
    the other half. The hits of the rule are subtracted from those of the head example by example,
    so that the errors of both count. The column ``threshold`` is then the mean of the rule plus
    ``offset_margin``, and ``sd``, interval and effect size are those of the difference. A
    ``threshold`` that you give holds for all roles and replaces the rule.

    Roles with fewer than two examples or clusters are ``untestable``. If scores vary by no more
    than rounding, betting decides, or the answer is ``undecided``. Neither enters the correction.
    Contrasts (``...:beyond_offset``) are tested against 0. ``block:evenness`` is not a role: its
    mean is the column ``evenness`` of ``block``. A role that no example has (``block`` without
    pairs) has no rows; the record names it.

    Args:
        scores: from `score_heads`.
        options: keyword arguments, described below.

    Raises:
        UsageError: an option outside its range, or options or scores that do not go together.

    Of two heads the first gives neighbouring words five times as much as uniform attention does:

    >>> import numpy as np
    >>> from headroles import HeadScores, assign_roles
    >>> values = np.random.default_rng(0).normal([[5.0], [1.0]], 1.0, size=(20, 1, 2, 1))
    >>> table = assign_roles(HeadScores.by_hand(values, ["local"]))
    >>> table.frame[["layer", "head", "role", "threshold", "answer"]]
       layer  head   role  threshold answer
    0      0     0  local        3.0    yes
    1      0     1  local        3.0     no
    """
    scores = scores_of(scores)
    asked = _tests_asked(scores, options)
    columns = HeadColumns.of(scores)
    if not columns.roles:
        raise UsageError(
            "these scores have no role to test; score roles with roles (--roles), or "
            "describe heads with: headroles describe DIR"
        )
    hypotheses = hypotheses_of(
        scores, columns, asked, options, ddof=0 if options.is_published else 1
    )
    rivals = _describe_rivals(scores, columns, options)
    above = find_p_values(hypotheses, asked, "greater")
    below = find_p_values(hypotheses, asked, "less")
    near = find_near(hypotheses, columns, scores.record.half_precision, asked)
    absent = [role for role in scores.roles if role.is_tested and role.id not in columns.ids]
    left_out = why_absent(absent, scores.record)
    tests = RoleTests(
        **asked.record(),
        threshold=general_threshold(scores.score, options.threshold),
        offset_margin=options.offset_margin if rivals else 0.0,
        offsets=rivals,
        preset=options.preset,
        **describe_clusters(hypotheses),
        left_out=list(left_out),
        why_left_out=left_out,
        warnings=[
            *warnings_of_run(scores.record),
            *warn_of_documents(scores.record, hypotheses, asked),
            *_warn_of_norms(scores, columns),
            *_warn_of_half_precision(scores.record.half_precision, near),
            *find_warnings(hypotheses, asked, above),
        ],
        near=list_columns(columns, near),
    )
    notes = _own_notes(scores, columns, near)
    frame = _frame(scores, columns, hypotheses, (above, below), notes, asked)
    return RoleTable(frame, RolesRecord.extending(scores.record, tests=tests))


def _describe_rivals(
    scores: HeadScores, columns: HeadColumns, options: AssignOptions
) -> dict[str, tuple[int, int]]:
    """Return the offsets that roles were compared with, as `RoleTable.rivals`."""
    if scores.offset_shares is None or options.threshold is not None:
        return {}
    rivals = {role: rival_of(scores, role) for role in columns.ids}
    return {role: rival.offsets for role, rival in rivals.items() if rival is not None}


def _tests_asked(scores: HeadScores, options: AssignOptions) -> TestOptions:
    """Return the tests to make of these scores. Raises UsageError if they do not fit."""
    if not options.is_published:
        return stopped_tests(scores, options.tests)
    if scores.score != BIAS:
        raise UsageError(
            f"the published tests are of bias scores, and these are {scores.score.name} scores; "
            "score again with score='bias' (--score bias), or leave the preset out"
        )
    refuse_stopped(scores, "the published tests take")
    return options.tests


def _warn_of_norms(scores: HeadScores, columns: HeadColumns) -> list[str]:
    """Warn that the published threshold of ``block`` is one for weights."""
    if scores.record.measure != "norms" or scores.score != BIAS or "block" not in columns.ids:
        return []
    return [
        "With norms, little attention goes to special tokens, which makes rows "
        "even; block multiplies by their entropy, so that many more heads exceed "
        "its published threshold. Use block:ratio or excess scores, which do not "
        "contain it"
    ]


def _warn_of_half_precision(half: HalfPrecision | None, near: BoolArray) -> list[str]:
    """Warn of answers that half precision may have changed."""
    if half is None or (half.rescored and not near.any()):
        return []
    warning = (
        f"{half.dtype} moved means of heads by up to {max(half.means.values(), default=0):.2g} in "
        f"the first {half.examples} examples, compared with float32; "
    )
    if not near.any():
        return [warning + "so small a difference changes no answer"]
    return [
        f"{warning}{int(near.sum())} of {len(near)} answers are near enough to changing that "
        "float32 may change them (the column note names them). To be sure of them, score with "
        "dtype='float32' (--dtype float32)"
    ]


def _frame(
    scores: HeadScores,
    columns: HeadColumns,
    hypotheses: Hypotheses,
    tested: tuple[PValues, PValues],
    notes: NDArray[np.object_],
    options: TestOptions,
) -> pd.DataFrame:
    above, below = tested
    moments, answers = hypotheses.moments, answer(above, below, options.alpha)
    intervals = find_intervals(hypotheses, options, answers)
    certified = certify(hypotheses, options)
    frame = pd.DataFrame(
        {
            **columns.labels,
            "n": moments.n,
            "n_clusters": moments.n_clusters,
            "df": moments.df,
            "mean": moments.mean,
            "sd": moments.sd,
            "effect_size": hypotheses.effect_size,
            "ci_low": intervals.ci_low,
            "ci_high": intervals.ci_high,
            "threshold": hypotheses.threshold,
            "statistic": above.statistic,
            "p_value": above.single,
            "p_adjusted": above.adjusted,
            "p_below": below.single,
            "p_below_adjusted": below.adjusted,
            "answer": answers.astype(object),
            "assigned": answers == YES,
            "certified": certified.answers.astype(object),
            "certified_mean": certified.mean,
            "evenness": _measures(scores, columns),
            "note": find_notes(hypotheses, notes, options.test),
        }
    )
    note_removed(frame, scores.record)
    return frame[list(RoleTable.columns)]


def _measures(scores: HeadScores, columns: HeadColumns) -> FloatArray:
    """Return mean (T,) of the measure that the role of each column has, NaN where it has none."""
    means = np.full((len(columns.roles), columns.n_layers * columns.n_heads), np.nan)
    for role in scores.roles:
        if role.measure_of in columns.ids and not role.is_tested:
            of_role = Sample.of(scores.column(role.id)).moments.mean
            means[columns.ids.index(role.measure_of)] = of_role
    return means.ravel()


def _own_notes(scores: HeadScores, columns: HeadColumns, near: BoolArray) -> NDArray[np.object_]:
    """Note for each column (T,) its dtype where dtypes differ, or that its layer has a window."""
    notes, half = _window_notes(scores, columns), scores.record.half_precision
    if half is None:
        return notes
    notes = np.where(are_among(columns, half.rescored), "scored in float32", notes)
    return np.where(near, f"near: float32 may change the answer of {half.dtype}", notes)


def _window_notes(scores: HeadScores, columns: HeadColumns) -> NDArray[np.object_]:
    """Note for each role (T,) that a layer sees only a window of the longest examples."""
    farthest = int(scores.lengths.max()) - 1
    notes = np.full((len(columns.roles), columns.n_layers, columns.n_heads), "", dtype=object)
    for layer, reach in enumerate(scores.record.reaches):
        if reach is None or reach >= farthest:
            continue
        for place, role in enumerate(columns.roles):
            if role.in_window:
                notes[place, layer] = (
                    f"attention of this layer reaches {reach} positions{role.in_window}"
                )
    return notes.ravel()
