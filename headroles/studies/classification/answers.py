"""Answers of a role table: the heads of each role, and the strongest of them.

The screen, notebooks and the report show these. Heads of pairs of words are ranked by their
attention beyond distance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headroles.role_names import POOLED, relation_of
from headroles.roles import find_roles, is_arc
from headroles.testing.answers import POSITIONAL, YES

if TYPE_CHECKING:
    import pandas as pd

    from headroles.studies.classification.role_table import RoleTable

Head = tuple[int, int]
CERTIFIED = "yes, certified"
"""The kind of "yes" that figures mark apart."""
_PARTS = {"delimiter": ("delimiter:cls", "delimiter:sep")}
"""Roles that add nothing to their parts."""


@dataclass(frozen=True)
class Found:
    """The heads with one answer about a role, and the strongest of them.

    ``beyond`` is its attention beyond distance, NaN for roles that are not of pairs of words.
    """

    role: str
    heads: tuple[Head, ...]
    head: Head
    mean: float
    beyond: float


@dataclass(frozen=True)
class RoleAnswers:
    """The answers of a role table.

    Args:
        n_heads: how many heads the model has.
        found: roles other than those of pairs of words that at least one head has.
        not_found: roles other than those of pairs of words that no head has.
        syntactic: heads that have any role of pairs of words, by layer and head.
        arcs: roles of pairs of words that heads have, farthest beyond distance first; pooled
            roles only where no single relation was tested.
        positional: the same with heads that attend as much to any word at that distance, largest
            mean first.
        controls_distance: whether pairs were compared with other words at the same distance.
    """

    n_heads: int
    found: tuple[Found, ...]
    not_found: tuple[str, ...]
    syntactic: tuple[Head, ...]
    arcs: tuple[Found, ...]
    positional: tuple[Found, ...]
    controls_distance: bool


def find_answers(table: RoleTable) -> RoleAnswers:
    """Read the answers off a role table."""
    pairs = pairs_among(table.frame)
    others, single = split_roles(table.roles, pairs)
    ranked = by_strength(table.frame)
    has, only_position = (ranked[ranked["answer"] == one] for one in (YES, POSITIONAL))
    found = tuple(_found(has, others))
    return RoleAnswers(
        n_heads=count_heads(table),
        found=found,
        not_found=tuple(role for role in others if role not in {one.role for one in found}),
        syntactic=heads_in(has[has["role"].isin(pairs)]),
        arcs=tuple(_found(has, single)),
        positional=tuple(
            _found(only_position.sort_values("mean", ascending=False, kind="stable"), single)
        ),
        controls_distance=bool(table.frame["beyond_distance"].notna().any()),
    )


def by_strength(frame: pd.DataFrame) -> pd.DataFrame:
    """Sort rows by attention beyond distance, and by mean where there is none, largest first."""
    strength = frame["beyond_distance"].fillna(frame["mean"])
    columns = ["strength", "layer", "head"]
    ranked = frame.assign(strength=strength).sort_values(columns, ascending=[False, True, True])
    return ranked.drop(columns="strength")


def pairs_among(frame: pd.DataFrame) -> list[str]:
    """Return the roles of pairs of words: arcs, and a user's own pairs that have contrasts."""
    beyond = set(frame["role"][frame["beyond_distance"].notna()])
    return [role for role in frame["role"].unique() if is_arc(role) or role in beyond]


def split_roles(
    roles: Sequence[str], pairs: Sequence[str] | None = None
) -> tuple[list[str], list[str]]:
    """Split roles into others and those of pairs, so that no two count the same attention."""
    arcs = [role for role in roles if (is_arc(role) if pairs is None else role in pairs)]
    others = [
        role
        for role in roles
        if role not in arcs and not set(_PARTS.get(role, ("",))) <= set(roles)
    ]
    return others, [role for role in arcs if relation_of(role) != POOLED] or arcs


def strongest_rows(table: RoleTable, roles: Sequence[str]) -> pd.DataFrame:
    """Return the row of the strongest head that has each of the roles, strongest first."""
    ranked = by_strength(table.frame[table.frame["assigned"]])
    return ranked[ranked["role"].isin(roles)].drop_duplicates("role")


def clearest_of(table: RoleTable, name: str) -> str:
    """Return the role that a user names; of several, such as both directions of a relation, the one
    of the strongest head, first of those that have it.

    Raises UsageError for a role that the table does not have.
    """
    named = find_roles(name, table.roles)
    ranked = by_strength(table.frame[table.frame["role"].isin(named)])
    return str(ranked.sort_values("assigned", ascending=False, kind="stable")["role"].iloc[0])


def count_heads(table: RoleTable) -> int:
    """Count the heads of the model, in the table or not."""
    heads = set(zip(table.frame["layer"], table.frame["head"], strict=True))
    n_layers, n_heads = table.record.shape
    if n_layers and n_heads:
        heads = {(one, other) for one in range(n_layers) for other in range(n_heads)}
    return len(heads - set(table.record.removed_heads))


def shown_answers(rows: pd.DataFrame) -> pd.Series[str]:
    """Return the answers of rows, with `CERTIFIED` in the place of some "yes"."""
    is_certified = (rows["answer"] == YES) & (rows["certified"] == YES)
    return rows["answer"].mask(is_certified, CERTIFIED)


def heads_in(frame: pd.DataFrame) -> tuple[Head, ...]:
    """Return the heads of some rows, by layer and head, each once."""
    return tuple(sorted(set(zip(frame["layer"].tolist(), frame["head"].tolist(), strict=True))))


def _found(ranked: pd.DataFrame, roles: Sequence[str]) -> Iterator[Found]:
    """Yield the roles that heads have, strongest first for pairs, else in their order."""
    by_role: dict[Any, pd.DataFrame] = dict(list(ranked.groupby("role", sort=False)))
    paired = [
        role for role in by_role if role in roles and by_role[role]["beyond_distance"].notna().any()
    ]
    order = paired + [role for role in roles if role in by_role and role not in paired]
    for role in order:
        rows = by_role[role]
        first: Any = next(rows.itertuples(index=False))
        head = (first.layer, first.head)
        yield Found(role, heads_in(rows), head, first.mean, first.beyond_distance)
