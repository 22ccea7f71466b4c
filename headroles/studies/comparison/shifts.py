"""Paired tests of every head and role: one row per checkpoint, role, layer and head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headroles.arrays import Float32Array, FloatArray, IndexArray
from headroles.inference.sample import Bounds
from headroles.scoring.scores import HeadScores
from headroles.studies.comparison.answers import CERTIFIED_SMALL, describe_change, role_status
from headroles.studies.heads import HeadColumns, note_removed
from headroles.testing.answers import UNTESTABLE, by_betting
from headroles.testing.catalogue import BETTING
from headroles.testing.evidence import find_change, find_equivalence, find_p_values
from headroles.testing.hypotheses import Hypotheses
from headroles.testing.notes import find_notes, find_warnings
from headroles.testing.options import TestOptions

_CAP = 10
"""Usual margins: examples whose difference could be larger count less in betting. Page comparing.md
has the results of other caps."""


def shift_frame(
    sets: Mapping[str, HeadScores],
    answers: Mapping[str, pd.DataFrame],
    clusters: IndexArray | None,
    options: TestOptions,
    margin: float,
) -> tuple[pd.DataFrame, list[str]]:
    """Make the table of all tests, and warnings about it.

    Args:
        sets: joined score sets; the first is the one before, all others are checkpoints after.
        answers: the role table of each set, with ``layer, head, role, threshold, answer``.
        clusters: (examples,) cluster of each example, or None.
        options: of the tests.
        margin: the smallest difference that would matter.
    """
    before, *checkpoints = sets
    columns = HeadColumns.of(sets[before])
    first, *later = (columns.values(scores) for scores in sets.values())
    means = np.concatenate([_means(first, after) for after in later], axis=1)
    bounded = Hypotheses.of(
        np.concatenate([after.astype(np.float64) - first for after in later], axis=1),
        0,
        labels=np.tile(columns.places[0], len(later)),
        names=columns.ids,
        clusters=clusters,
        size=np.fmax(2.0, means[2]),  # uniform attention is 1, before and after
        bounds=_bounds(list(sets.values()), columns),
    )
    # If all differences are equal, as in frozen layers, tests other than betting need the size of
    # the scores, not their bounds.
    hypotheses = bounded if options.test == BETTING else replace(bounded, bounds=None)
    frame = pd.concat(
        [pd.DataFrame({"checkpoint": name, **columns.labels}) for name in checkpoints],
        ignore_index=True,
    )
    frame["mean_before"], frame["mean_after"] = means[0], means[1]
    frame = frame.assign(
        **_tests(hypotheses, options, margin), **_certified(bounded, options, margin)
    )
    for name, scores in sets.items():
        is_own = True if name == before else frame["checkpoint"] == name
        note_removed(frame, scores.record, is_own)
    return _with_answers(frame, answers, before), find_warnings(bounded, options, sides=2)


def _means(before: Float32Array, after: Float32Array) -> FloatArray:
    """Return (3, T): means of the scores (examples, T) before, after, and of their absolute sums.

    Means are over the examples with both scores; NaN without any.
    """
    there = ~np.isnan(before + after)
    n = np.where(there.any(axis=0), there.sum(axis=0), np.nan)
    size = np.abs(before) + np.abs(after)
    return np.stack(
        [
            np.where(there, scores, 0).sum(axis=0, dtype=np.float64) / n
            for scores in (before, after, size)
        ]
    )


def _bounds(sets: Sequence[HeadScores], columns: HeadColumns) -> Bounds | None:
    """Return bounds of the differences from the first of ``sets``; None where they are unknown."""
    before, *after = (columns.bounds(scores) for scores in sets)
    known = [one for one in after if one is not None]
    if before is None or len(known) < len(after):
        return None
    n_roles = len(columns.roles)
    return Bounds(
        low=np.concatenate([one.low - before.high for one in known], axis=1),
        high=np.concatenate([one.high - before.low for one in known], axis=1),
        least=np.concatenate([one.least - before.most for one in known]),
        most=np.concatenate([one.most - before.least for one in known]),
        kinds=np.concatenate([columns.places[0] + n_roles * k for k in range(len(known))]),
        cap=_CAP * sets[0].score.margin,
    )


def _tests(
    hypotheses: Hypotheses, options: TestOptions, margin: float
) -> dict[str, NDArray[np.generic] | float]:
    """Return the results of the tests, by column.

    Change and equivalence are two questions, each corrected by itself.
    """
    moments = hypotheses.moments
    against_0 = find_p_values(hypotheses, options, "two-sided")
    change = find_change(hypotheses, options, margin)
    equivalence = find_equivalence(hypotheses, options, margin)
    changed, equivalent = change.shows(options.alpha), equivalence.shows(options.alpha)
    intervals = hypotheses.intervals(options.alpha)
    return {
        "n": moments.n,
        "n_clusters": moments.n_clusters,
        "difference": moments.mean,
        "sd": moments.sd,
        "standard_error": moments.standard_error,
        "effect_size": hypotheses.effect_size,
        "ci_low": intervals.ci_low,
        "ci_high": intervals.ci_high,
        "statistic": against_0.statistic,
        "p_value": against_0.single,
        "margin": margin,
        "p_changed": change.single,
        "p_changed_adjusted": change.adjusted,
        "changed": changed,
        "p_equivalent": equivalence.single,
        "p_equivalent_adjusted": equivalence.adjusted,
        "equivalent": equivalent,
        "change": describe_change(changed, equivalent, moments.status != UNTESTABLE).astype(object),
        "note": find_notes(hypotheses),
    }


def _certified(
    hypotheses: Hypotheses, options: TestOptions, margin: float
) -> dict[str, NDArray[np.generic] | str | float]:
    """Return the answers of betting and the weighted mean difference; nothing without bounds.

    ``"changed"`` is certified to differ from 0, ``"equivalent"`` to lie within the margin, and
    ``"trivial"`` both.
    """
    if hypotheses.bounds is None:
        return {"certified": "", "certified_difference": np.nan}
    asked = by_betting(options)
    change = find_p_values(hypotheses, asked, "two-sided")
    equivalence = find_equivalence(hypotheses, asked, margin)
    changed, equivalent = change.shows(options.alpha), equivalence.shows(options.alpha)
    words = describe_change(changed, equivalent, ~np.isnan(change.single))
    words = np.where(changed & equivalent, CERTIFIED_SMALL, words)
    mean = hypotheses.betting.mean
    return {"certified": words.astype(object), "certified_difference": mean}


def _with_answers(
    frame: pd.DataFrame, answers: Mapping[str, pd.DataFrame], before: str
) -> pd.DataFrame:
    """Add thresholds, the answers before and after, and the status of the role."""
    key = ["layer", "head", "role"]
    first = answers[before].rename(columns={"answer": "answer_before"})
    later = pd.concat(table.assign(checkpoint=name) for name, table in answers.items())
    later = later.rename(columns={"answer": "answer_after"})
    frame = frame.merge(first[[*key, "threshold", "answer_before"]], how="left")
    frame = frame.merge(later[["checkpoint", *key, "answer_after"]], how="left")
    # A role table has no row for a role that no example has.
    frame["answer_after"] = frame["answer_after"].fillna(UNTESTABLE)
    frame["status"] = role_status(frame["answer_before"], frame["answer_after"]).astype(object)
    return frame
