"""Hypotheses of heads and roles -> RoleTable: how they are tested, and what is said of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headroles.errors import UsageError
from headroles.inference.sample import Sample
from headroles.roles import BIAS
from headroles.scoring import HeadScores, warnings_of_run
from headroles.studies.cautions import warn_of_documents, why_absent
from headroles.studies.heads import (
    FloatArray,
    HeadColumns,
    describe_clusters,
    general_threshold,
    note_removed,
)
from headroles.studies.options import AssignOptions
from headroles.studies.role_table import COLUMNS, RolesRecord, RoleTable, RoleTests
from headroles.studies.stopped import refuse_stopped, stopped_tests
from headroles.testing import (
    YES,
    Hypotheses,
    PValues,
    TestOptions,
    answer,
    certify,
    find_intervals,
    find_notes,
    find_p_values,
    find_warnings,
)


def tests_asked(scores: HeadScores, options: AssignOptions) -> TestOptions:
    """The tests that options ask for, of these scores. Raises UsageError if they do not fit."""
    if not options.is_published:
        return stopped_tests(scores, options.tests)
    if scores.score != BIAS:
        raise UsageError(
            f"the published tests are of bias scores, and these are {scores.score.name} scores; "
            "score again with score='bias' (--score bias), or leave the preset out"
        )
    refuse_stopped(scores, "the published tests take")
    return options.tests


def refuse_nothing(columns: HeadColumns) -> None:
    """Raise UsageError where there is no role to test."""
    if not columns.roles:
        raise UsageError(
            "these scores have no role that could be tested; score roles with roles "
            "(--roles), or see what "
            "describes heads with: headroles describe DIR"
        )


def table_of(
    scores: HeadScores,
    columns: HeadColumns,
    hypotheses: Hypotheses,
    options: AssignOptions,
    asked: TestOptions,
    rivals: dict[str, tuple[int, int]],
) -> RoleTable:
    """The table of all tests, and how was tested; ``rivals`` are those of `RoleTable`."""
    above = find_p_values(hypotheses, asked, "greater")
    below = find_p_values(hypotheses, asked, "less")
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
            *_warn_of_half_precision(scores, columns, hypotheses),
            *find_warnings(hypotheses, asked, above),
        ],
    )
    frame = _frame(scores, columns, hypotheses, above, below, asked)
    return RoleTable(frame, RolesRecord.extending(scores.record, tests=tests))


def _warn_of_norms(scores: HeadScores, columns: HeadColumns) -> list[str]:
    """The published threshold of ``block`` is one for weights."""
    if scores.record.measure != "norms" or scores.score != BIAS or "block" not in columns.ids:
        return []
    return [
        "under norms little goes to special tokens, so that rows are even, and block, which is "
        "times their entropy, exceeds its published threshold in many more heads; block:ratio is "
        "without entropy, and excess scores are without it altogether"
    ]


def _warn_of_half_precision(
    scores: HeadScores, columns: HeadColumns, hypotheses: Hypotheses
) -> list[str]:
    """How many means lie as near to their thresholds as half precision may move them."""
    half = scores.record.half_precision
    if half is None:
        return []
    moved = columns.by_role([half.means.get(role, np.nan) for role in columns.ids])
    near = int((np.abs(hypotheses.moments.mean - hypotheses.threshold) <= moved).sum())
    return [
        f"{half.dtype} moves means of heads by up to {np.nanmax(moved, initial=0):.2g} "
        f"(beside float32, in the first {half.examples} examples): {near} of {len(moved)} answers "
        "lie within that of their threshold; to be sure of them, score in float32 "
        "(dtype='float32', --dtype float32)"
    ]


def _frame(
    scores: HeadScores,
    columns: HeadColumns,
    hypotheses: Hypotheses,
    above: PValues,
    below: PValues,
    options: TestOptions,
) -> pd.DataFrame:
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
            "note": find_notes(hypotheses, _window_notes(scores, columns), options.test),
        }
    )
    note_removed(frame, scores.record)
    return frame[list(COLUMNS)]


def _measures(scores: HeadScores, columns: HeadColumns) -> FloatArray:
    """Mean (T,) of the measure that the role of each column has, NaN where it has none."""
    means = np.full((len(columns.roles), columns.n_layers * columns.n_heads), np.nan)
    for role in scores.roles:
        if role.measure_of in columns.ids and not role.is_tested:
            of_role = Sample.of(scores.column(role.id)).moments.mean
            means[columns.ids.index(role.measure_of)] = of_role
    return means.ravel()


def _window_notes(scores: HeadScores, columns: HeadColumns) -> NDArray[np.object_]:
    """What it does to roles (T,) that a layer sees only a window of the longest examples."""
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
