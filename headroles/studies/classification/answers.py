"""Answers of a role table: the heads of each role, and which of them are truly syntactic.

The screen, notebooks and the report show these. Heads of arcs are ranked by their attention beyond
distance: the head with the largest mean is often one that only looks at a place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headroles.roles import SCORES, contrast_of, is_contrast
from headroles.testing.answers import YES

if TYPE_CHECKING:
    import pandas as pd

    from headroles.studies.classification.role_table import RoleTable

Head = tuple[int, int]
CERTIFIED, NOT_BEYOND = "yes, certified", "yes, not shown beyond distance"
"""Kinds of "yes" that figures mark apart."""
_POOLED = ("syntactic", "syntactic:to_dependent", "syntactic:from_governor")
_PARTS = {"delimiter": ("delimiter:cls", "delimiter:sep")}
"""Roles that add nothing to their parts."""


@dataclass(frozen=True)
class Found:
    """The heads that have a role, and the one with the largest mean."""

    role: str
    heads: tuple[Head, ...]
    head: Head
    mean: float


@dataclass(frozen=True)
class Arc:
    """The head that attends most along the arcs of a role, beyond distance."""

    role: str
    head: Head
    mean: float
    beyond: float


@dataclass(frozen=True)
class RoleAnswers:
    """The answers of a role table.

    Args:
        n_heads: how many heads the model has.
        found: roles other than arcs that at least one head has.
        not_found: roles other than arcs that no head has.
        syntactic: heads that attend along arcs beyond distance, by layer and head.
        arcs: the best head of each relation and direction, farthest beyond distance first.
        only_position: for roles of arcs the head with the largest mean, if it is not beyond
            distance; largest mean first.
        controls_distance: whether arcs were compared with other words at the same distance.
    """

    n_heads: int
    found: tuple[Found, ...]
    not_found: tuple[str, ...]
    syntactic: tuple[Head, ...]
    arcs: tuple[Arc, ...]
    only_position: tuple[Found, ...]
    controls_distance: bool


def find_answers(table: RoleTable) -> RoleAnswers:
    """Read the answers off a role table."""
    others, single = split_roles(table.roles)
    assigned = table.assigned
    found = tuple(_found(assigned, others))
    beyond = beyond_distance(table)
    best = beyond[beyond["role"].isin(single)].drop_duplicates("role")
    return RoleAnswers(
        n_heads=count_heads(table),
        found=found,
        not_found=tuple(role for role in others if role not in {one.role for one in found}),
        syntactic=_heads(beyond),
        arcs=tuple(
            Arc(row.role, (row.layer, row.head), row.mean, row.beyond) for row in _rows(best)
        ),
        only_position=tuple(_only_position(assigned, single, beyond)),
        controls_distance=_has_own_rivals(table) or any(map(is_contrast, table.roles)),
    )


def split_roles(roles: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split roles into others and those of arcs, so that no two count the same attention.

    Contrasts are no roles of their own.
    """
    arcs = arcs_among(roles)
    others = [
        role
        for role in roles
        if not (role in arcs or is_contrast(role) or set(_PARTS.get(role, ("",))) <= set(roles))
    ]
    return others, [role for role in arcs if role not in _POOLED] or arcs


def strongest_rows(table: RoleTable, roles: Sequence[str]) -> pd.DataFrame:
    """Return the row of the strongest head for each of the roles, largest mean first.

    For a role of arcs it is the head farthest beyond distance; without one it is the head with the
    largest mean, and ``is_only_position`` is set.
    """
    assigned = table.assigned
    beyond = beyond_distance(table)
    best = {row.role: (row.layer, row.head) for row in _rows(beyond.drop_duplicates("role"))}
    is_best = [
        best.get(row.role, (row.layer, row.head)) == (row.layer, row.head)
        for row in _rows(assigned)
    ]
    rows = assigned[np.array(is_best, dtype=np.bool_)].drop_duplicates("role")
    lacks = ~rows["role"].isin(best) & rows["role"].isin(arcs_among(table.roles))
    return rows.assign(is_only_position=lacks)[rows["role"].isin(roles)]


def arcs_among(roles: Sequence[str]) -> list[str]:
    """Return the roles of arcs, and of a user's own pairs of words that have contrasts."""
    return [role for role in roles if is_arc(role) or contrast_of(role) in roles]


def is_arc(role: str) -> bool:
    """Tell whether a role is one of arcs, and no contrast."""
    return role.startswith("syntactic") and not is_contrast(role)


def count_heads(table: RoleTable) -> int:
    """Count the heads of the model, in the table or not."""
    heads = set(zip(table.frame["layer"], table.frame["head"], strict=True))
    n_layers, n_heads = table.record.shape
    if n_layers and n_heads:
        heads = {(one, other) for one in range(n_layers) for other in range(n_heads)}
    return len(heads - set(table.record.removed_heads))


def _found(assigned: pd.DataFrame, roles: list[str]) -> Iterator[Found]:
    for role in roles:
        rows = assigned[assigned["role"] == role]
        if len(rows):
            largest = next(_rows(rows))
            yield Found(role, _heads(rows), (largest.layer, largest.head), largest.mean)


def beyond_distance(table: RoleTable) -> pd.DataFrame:
    """Return rows of heads and roles of arcs with ``mean`` and ``beyond``, largest beyond first.

    First choices are tested against the best fixed offset, so all assigned rows are beyond it.
    Without a control of distance, ``beyond`` is the mean.
    """
    if any(map(is_contrast, table.roles)):
        return table.beyond_position()
    rows = table.assigned[table.assigned["role"].map(is_arc).astype(bool)]
    of_rival = rows["threshold"] - table.tests.offset_margin
    beyond = rows["mean"] - of_rival if _has_own_rivals(table) else rows["mean"]
    return rows.assign(beyond=beyond).sort_values(
        ["beyond", "layer", "head"], ascending=[False, True, True]
    )


def shown_answers(table: RoleTable, rows: pd.DataFrame) -> pd.Series[str]:
    """Return the answers of rows, with `CERTIFIED` and `NOT_BEYOND` in the place of some "yes"."""
    is_yes, beyond = rows["answer"] == YES, table.answers_beyond_distance(rows)
    shown = rows["answer"].mask(is_yes & (rows["certified"] == YES), CERTIFIED)
    return shown.mask(is_yes & ~beyond.isin([YES, ""]), NOT_BEYOND)


def _has_own_rivals(table: RoleTable) -> bool:
    return SCORES[table.record.score].of_first_choice and bool(table.rivals)


def _only_position(
    assigned: pd.DataFrame, arcs: list[str], beyond: pd.DataFrame
) -> Iterator[Found]:
    """Yield for each role the head with the largest mean if it is not among those beyond."""
    shown = set(zip(beyond["layer"], beyond["head"], beyond["role"], strict=True))
    largest = assigned[assigned["role"].isin(arcs)].drop_duplicates("role")
    for row in _rows(largest):
        if (row.layer, row.head, row.role) not in shown:
            yield Found(row.role, ((row.layer, row.head),), (row.layer, row.head), row.mean)


def _rows(frame: pd.DataFrame) -> Iterator[Any]:
    return frame.itertuples(index=False)


def _heads(frame: pd.DataFrame) -> tuple[Head, ...]:
    return tuple(sorted(set(zip(frame["layer"].tolist(), frame["head"].tolist(), strict=True))))
