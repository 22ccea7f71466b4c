"""Answers that half precision may have changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from headroles.arrays import BoolArray, FloatArray
from headroles.record import HalfPrecision
from headroles.studies.heads import HeadColumns
from headroles.testing.answers import answer, certify
from headroles.testing.evidence import find_p_values
from headroles.testing.hypotheses import Hypotheses
from headroles.testing.options import TestOptions

Column: TypeAlias = tuple[int, int, str]
"""A layer, a head and a role."""


def find_near(
    hypotheses: Hypotheses, columns: HeadColumns, half: HalfPrecision | None, options: TestOptions
) -> BoolArray:
    """Tell which answers (T,), certified ones included, scores in float32 may change.

    All means are moved up as far as half precision may have moved each (`HalfPrecision.moves`), and
    then all down; the answers that differ between both are near. With any higher mean, corrected
    tests answer yes at least as often, and no at most as often. So if the means in float32 lie
    within these moves, their answers lie between those of both ends, and answers that are not near
    are those of float32. Every answer of a role counts as near if too few of the compared examples
    have the role.
    """
    if half is None:
        return np.zeros(hypotheses.n_tests, dtype=np.bool_)
    moves = moves_of(half, columns)
    distances = np.abs(hypotheses.moments.mean - hypotheses.threshold)
    moves[np.isnan(moves)] = 1 + np.nanmax(distances, initial=0)  # surely to the other side
    ends = [hypotheses.against(hypotheses.threshold + side * moves) for side in (-1, 1)]
    given, certified = ([find(end, options) for end in ends] for find in (_answers, _certified))
    return np.asarray((given[0] != given[1]) | (certified[0] != certified[1]))


def moves_of(half: HalfPrecision, columns: HeadColumns) -> FloatArray:
    """Return how far half precision may move each mean (T,), NaN if that is not known."""
    by_role = [np.array(half.moves[role], dtype=np.float64).ravel() for role in columns.ids]
    return np.where(are_among(columns, half.rescored), 0, np.concatenate(by_role))


def are_among(columns: HeadColumns, listed: Sequence[Column]) -> BoolArray:
    """Tell which columns (T,) are listed."""
    everything = np.ones(len(columns.places[0]), dtype=np.bool_)
    wanted = set(listed)
    return np.array([column in wanted for column in list_columns(columns, everything)])


def list_columns(columns: HeadColumns, which: BoolArray) -> list[Column]:
    """List layer, head and role of some columns; ``which`` (T,) says of which."""
    role, layer, head = (places[which].tolist() for places in columns.places)
    return list(zip(layer, head, [columns.ids[one] for one in role], strict=True))


def _answers(hypotheses: Hypotheses, options: TestOptions) -> NDArray[np.str_]:
    above, below = (find_p_values(hypotheses, options, side) for side in ("greater", "less"))
    return answer(above, below, options.alpha)


def _certified(hypotheses: Hypotheses, options: TestOptions) -> NDArray[np.str_]:
    return certify(hypotheses, options).answers
