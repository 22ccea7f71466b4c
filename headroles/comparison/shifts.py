"""Paired tests of every head and role: one row per checkpoint, role, layer and head."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headroles.comparison.answers import describe_change, role_status
from headroles.errors import UsageError
from headroles.evidence import notes
from headroles.hypotheses import MAX_T, Hypotheses, TestOptions, values_to_test
from headroles.inference import (
    DEGENERATE,
    OK,
    UNTESTABLE,
    adjust_p_values,
    equivalence_t,
    paired_t,
    resolution_of,
    sign_flip_test,
    step_down_max_t,
)
from headroles.scores import HeadScores

FloatArray: TypeAlias = NDArray[np.float64]
Groups: TypeAlias = NDArray[np.intp] | None
_FlipTest: TypeAlias = Callable[..., FloatArray]

PAIRED_TESTS = ("t", "sign_flip")
DEFAULT_MARGINS = {"bias": 0.5, "excess": 0.025}
"""By score, a quarter of the way from uniform attention (1 and 0) to the usual threshold."""
COLUMNS = (
    "checkpoint",
    "layer",
    "head",
    "role",
    "n",
    "n_clusters",
    "mean_before",
    "mean_after",
    "difference",
    "sd",
    "standard_error",
    "effect_size",
    "ci_low",
    "ci_high",
    "statistic",
    "p_value",
    "p_adjusted",
    "changed",
    "margin",
    "p_equivalent",
    "p_equivalent_adjusted",
    "equivalent",
    "change",
    "threshold",
    "answer_before",
    "answer_after",
    "status",
    "note",
)
_P_VALUES = {"p_value": "p_adjusted", "p_equivalent": "p_equivalent_adjusted"}


@dataclass(frozen=True)
class ShiftOptions:
    """How differences are tested.

    ``margin`` is the smallest difference of mean scores that would matter; ``tests`` are the
    options of the role tables, of which all but the threshold serve here too.
    """

    margin: float
    tests: TestOptions

    def __post_init__(self) -> None:
        if not 0 < self.margin < np.inf:
            raise UsageError(
                f"the margin is {self.margin}; it must be a number above 0: the smallest "
                "difference of mean scores that would matter"
            )
        if self.tests.test not in PAIRED_TESTS:
            raise UsageError(
                f"the test is {self.tests.test!r}; for differences it must be one of "
                f"{', '.join(PAIRED_TESTS)}"
            )


def shift_frame(
    sets: Mapping[str, HeadScores], answers: Mapping[str, pd.DataFrame], options: ShiftOptions
) -> pd.DataFrame:
    """The table of all tests, with the columns of ``COLUMNS``.

    Args:
        sets: joined score sets; the first is the one before, all others are checkpoints after.
        answers: the role table of each set, with ``layer, head, role, threshold, answer``.
        options: of the tests.
    """
    before, *checkpoints = sets
    hypotheses = Hypotheses.of(sets[before], options.tests)
    pairs = [
        _Pairs.of(sets[before], sets[after], role, after)
        for after in checkpoints
        for role in hypotheses.roles
    ]
    groups = hypotheses.groups
    frame = pd.concat([_test(pair, groups, options) for pair in pairs], ignore_index=True)
    _add_adjusted(frame, pairs, groups, options)
    _add_conclusions(frame, options)
    _add_answers(frame, answers, before)
    return frame[list(COLUMNS)]


@dataclass(frozen=True)
class _Pairs:
    """Scores (examples, layers * heads) of one role, before and at one checkpoint."""

    checkpoint: str
    role: str
    n_heads: int
    before: NDArray[np.float32]
    after: NDArray[np.float32]

    @classmethod
    def of(cls, before: HeadScores, after: HeadScores, role: str, checkpoint: str) -> _Pairs:
        first, second = (values_to_test(scores, role) for scores in (before, after))
        return cls(checkpoint, role, before.n_heads, first, second)

    @property
    def differences(self) -> FloatArray:
        """(examples, layers * heads), NaN where one side is missing."""
        return self.after.astype(np.float64) - self.before

    def means(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Means (layers * heads,) before, after, and of the larger absolute score of each pair.

        Over the pairs that are there; NaN where there are none.
        """
        there = ~np.isnan(self.differences)
        n = np.where(there.any(axis=0), there.sum(axis=0), np.nan)
        size = np.maximum(np.abs(self.before), np.abs(self.after))
        before, after, magnitude = (
            np.where(there, scores, 0).sum(axis=0, dtype=np.float64) / n
            for scores in (self.before, self.after, size)
        )
        return before, after, magnitude


def _test(pairs: _Pairs, groups: Groups, options: ShiftOptions) -> pd.DataFrame:
    """Rows of one role at one checkpoint, before any correction.

    ``state`` is the status of the tests, ``rounding`` the difference that may be rounding alone.
    """
    tests, margin = options.tests, options.margin
    result = paired_t(pairs.before, pairs.after, confidence=1 - tests.alpha, groups=groups)
    if tests.test == "t":
        p_value = result.p_value
        p_equivalent = equivalence_t(
            pairs.before, pairs.after, margin, tests.alpha, groups=groups
        ).p_value
    else:
        differences = np.where(result.status == OK, pairs.differences, np.nan)
        p_value, p_equivalent = _flip(sign_flip_test, differences, margin, groups, tests)
    layer, head = np.divmod(np.arange(len(result.n)), pairs.n_heads)
    mean_before, mean_after, magnitude = pairs.means()
    return pd.DataFrame(
        {
            "checkpoint": pairs.checkpoint,
            "layer": layer,
            "head": head,
            "role": pairs.role,
            "n": result.n,
            "n_clusters": result.n_groups,
            "mean_before": mean_before,
            "mean_after": mean_after,
            "difference": result.mean,
            "sd": result.sd,
            "standard_error": result.standard_error,
            "effect_size": result.effect_size,
            "ci_low": result.ci_low,
            "ci_high": result.ci_high,
            "statistic": result.statistic,
            "p_value": p_value,
            "margin": margin,
            "p_equivalent": p_equivalent,
            "state": result.status,
            "rounding": resolution_of(pairs.before) * magnitude,
            "note": notes(result),
        }
    )


def _flip(
    flip: _FlipTest, differences: FloatArray, margin: float, groups: Groups, tests: TestOptions
) -> tuple[FloatArray, FloatArray]:
    """p-values (tests,) of change and of equivalence by sign flips of differences.

    Equivalence takes the larger p-value of two one-sided tests. Those of all heads go to ``flip``
    together: for max-T, a head that is wrongly found equivalent lies beyond one end of the margin
    only, but another head may lie beyond the other.
    """
    flipped: Any = partial(
        flip, threshold=0, n_resamples=tests.resamples, seed=tests.seed, groups=groups
    )
    ends = np.concatenate([margin + differences, margin - differences], axis=1)
    change = flipped(differences, alternative="two-sided")
    return change, flipped(ends).reshape(2, -1).max(axis=0)


def _add_adjusted(
    frame: pd.DataFrame, pairs: Sequence[_Pairs], groups: Groups, options: ShiftOptions
) -> None:
    """Adjusted p-values: change and equivalence are two questions, each corrected by itself."""
    tests = options.tests
    families = (
        pd.factorize(frame["role"])[0] if tests.family == "role" else np.zeros(len(frame), np.intp)
    )
    if tests.correction != MAX_T:
        for p, adjusted in _P_VALUES.items():
            corrected = adjust_p_values(frame[p], tests.correction, families, tests.alpha)
            # The two-stage procedure may put them below: none is to be rejected for the others.
            frame[adjusted] = np.maximum(corrected, frame[p])
        return
    tested = (frame["state"] == OK).to_numpy()
    width = len(frame) // len(pairs)
    stepped = np.full((len(frame), len(_P_VALUES)), np.nan)
    for family in np.unique(families):
        rows = np.flatnonzero(families == family)
        blocks = [pairs[block].differences for block in np.unique(rows // width)]
        differences = np.where(tested[rows], np.concatenate(blocks, axis=1), np.nan)
        flipped = _flip(step_down_max_t, differences, options.margin, groups, tests)
        stepped[rows] = np.column_stack(flipped)
    frame[list(_P_VALUES.values())] = stepped


def _add_conclusions(frame: pd.DataFrame, options: ShiftOptions) -> None:
    """Whether means changed, and by less than the margin; where nothing varies the mean decides."""
    alpha, size = options.tests.alpha, frame["difference"].abs()
    alike = frame["state"] == DEGENERATE
    frame["changed"] = (frame["p_adjusted"] <= alpha) | (alike & (size > frame["rounding"]))
    frame["equivalent"] = (frame["p_equivalent_adjusted"] <= alpha) | (
        alike & (size < options.margin)
    )
    frame["change"] = describe_change(
        frame["changed"].to_numpy(),
        frame["equivalent"].to_numpy(),
        (frame["state"] != UNTESTABLE).to_numpy(),
    ).astype(object)


def _add_answers(frame: pd.DataFrame, answers: Mapping[str, pd.DataFrame], before: str) -> None:
    """Thresholds, the answers of the role tables before and after, and what became of the role."""
    key = ["layer", "head", "role"]
    tables = {name: table.set_index(key) for name, table in answers.items()}
    rows = pd.MultiIndex.from_frame(frame[key])
    frame["threshold"] = tables[before].loc[rows, "threshold"].to_numpy()
    frame["answer_before"] = tables[before].loc[rows, "answer"].to_numpy()
    frame["answer_after"] = frame["answer_before"]
    for checkpoint in frame["checkpoint"].unique():
        here = (frame["checkpoint"] == checkpoint).to_numpy()
        after = tables[checkpoint]["answer"].reindex(rows[here])
        # a role table has no row for a role that no example has
        frame.loc[here, "answer_after"] = after.fillna(UNTESTABLE).to_numpy()
    frame["status"] = role_status(frame["answer_before"], frame["answer_after"]).astype(object)
