"""Answers of a role table: the heads of each role, and of the role in controls.

The screen, notebooks and the report show these. Heads of pairs of words are ranked by their
attention beyond distance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from headroles.role_names import GROUP, POOLED, relation_of
from headroles.roles import find_roles, is_arc
from headroles.scoring.options import PERMUTED_WEIGHTS, TREES, WORDS
from headroles.testing.answers import POSITIONAL, YES

if TYPE_CHECKING:
    from headroles.studies.classification.role_table import RoleTable

Head = tuple[int, int]
HeadsByRole = Mapping[str, Sequence[Head]]
CERTIFIED = "yes, certified"
"""The kind of "yes" that figures mark apart."""
_PARTS = {"delimiter": ("delimiter:cls", "delimiter:sep")}
"""Roles that add nothing to their parts."""
_IN_WORDS = {
    TREES: "the trees of other sentences",
    WORDS: "permuted words",
    PERMUTED_WEIGHTS: "permuted weights",
}
_MANY = 0.25  # share of the heads found that a control may find without a warning


@dataclass(frozen=True)
class RoleHeads:
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
    found: tuple[RoleHeads, ...]
    not_found: tuple[str, ...]
    syntactic: tuple[Head, ...]
    arcs: tuple[RoleHeads, ...]
    positional: tuple[RoleHeads, ...]
    controls_distance: bool


def find_answers(table: RoleTable) -> RoleAnswers:
    """Read the answers off a role table."""
    pairs = pairs_among(table.frame)
    others, single = split_roles(table.roles, pairs)
    ranked = by_strength(table.frame)
    has, positional = (ranked[ranked["answer"] == answer] for answer in (YES, POSITIONAL))
    positional = positional.sort_values("mean", ascending=False, kind="stable")
    found = {own.role: own for own in _heads_of(has, others)}
    n_layers, n_heads = table.record.shape
    heads = {*heads_in(table.frame), *np.ndindex(n_layers, n_heads)}
    return RoleAnswers(
        n_heads=len(heads - set(table.record.removed_heads)),
        found=tuple(found.values()),
        not_found=tuple(role for role in others if role not in found),
        syntactic=heads_in(has[has["role"].isin(pairs)]),
        arcs=tuple(_heads_of(has, single)),
        positional=tuple(_heads_of(positional, single)),
        controls_distance=bool(table.frame["beyond_distance"].notna().any()),
    )


def _heads_of(ranked: pd.DataFrame, roles: Sequence[str]) -> Iterator[RoleHeads]:
    """Yield the roles that heads have, strongest first for pairs, else in their order."""
    by_role: dict[Any, pd.DataFrame] = dict(list(ranked.groupby("role", sort=False)))
    paired = [
        role for role in by_role if role in roles and by_role[role]["beyond_distance"].notna().any()
    ]
    for role in paired + [role for role in roles if role in by_role and role not in paired]:
        rows = by_role[role]
        first: Any = next(rows.itertuples(index=False))
        head = (first.layer, first.head)
        yield RoleHeads(role, heads_in(rows), head, first.mean, first.beyond_distance)


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


def shown_answers(rows: pd.DataFrame) -> pd.Series[str]:
    """Return the answers of rows, with `CERTIFIED` in the place of some "yes"."""
    is_certified = (rows["answer"] == YES) & (rows["certified"] == YES)
    return rows["answer"].mask(is_certified, CERTIFIED)


def heads_in(frame: pd.DataFrame) -> tuple[Head, ...]:
    """Return the heads of some rows, by layer and head, each once."""
    return tuple(sorted(set(zip(frame["layer"].tolist(), frame["head"].tolist(), strict=True))))


# Controls: how many heads would have roles if there were nothing to find.


def count_controls(frame: pd.DataFrame, controls: Mapping[str, HeadsByRole]) -> pd.DataFrame:
    """Count heads with each role, and those that would have it in each control.

    Columns ``role, heads``, and one for each control, NaN for roles that it does not test. If there
    are roles of pairs of words, the first row is any of them.
    """
    pairs = pairs_among(frame)
    groups = {GROUP: pairs} if pairs else {}
    rows = []
    for name, roles in (groups | {role: [role] for role in frame["role"].unique()}).items():
        own = frame[frame["assigned"] & frame["role"].isin(roles)]
        counts: dict[str, Any] = {"role": name, "heads": len(heads_in(own))}
        for control, heads in controls.items():
            tested = [role for role in roles if control != TREES or role in pairs]
            either = {head for role in tested for head in heads.get(role, [])}
            counts[control] = len(either) if tested else np.nan
        rows.append(counts)
    return pd.DataFrame(rows)


def about_controls(table: RoleTable) -> Iterator[str]:
    """Say in a sentence how many heads would be called syntactic in each control."""
    named = [name for name in _IN_WORDS if name in table.tests.controls]
    counts = table.controls.iloc[0]
    if not named or counts["role"] != GROUP:
        return
    called = "have roles of pairs"
    if all(map(is_arc, pairs_among(table.frame))):
        called = "be called syntactic"
    first, *others = ((_IN_WORDS[name], int(counts[name])) for name in named)
    heads = "head" if first[1] == 1 else "heads"
    rest = "".join(f", with {words} {n}" for words, n in others)
    lacking = ""
    if TREES in named and (alone := table.record.without_other_tree):
        lacking = f" ({alone} of {table.record.corpus.sentences} have none)"
    yield f"With {first[0]}{lacking} {first[1]} {heads} would {called}{rest}."


def warn_of_controls(counts: pd.DataFrame) -> Iterator[str]:
    """Warn of controls that find more than a quarter of the heads that have roles of pairs."""
    row = counts.iloc[0]
    many = [
        f"{int(row[name])} with {words}"
        for name, words in _IN_WORDS.items()
        if row["role"] == GROUP and row.get(name, 0) > max(_MANY * row["heads"], 1)
    ]
    if many:
        yield (
            f"Controls find heads with a role of pairs too: {' and '.join(many)}, beside "
            f"{row['heads']} heads with the corpus itself. Do not read these answers as more than "
            "the control"
        )
