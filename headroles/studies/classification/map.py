"""The map of a role table: every role as a view, and the sentences of every head."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from headroles.drawing.grids import grid_of, text_grid_of
from headroles.drawing.head_map import Cells, HeadMap, Quoted, View
from headroles.role_names import POOLED, relation_of
from headroles.roles import in_words, is_arc, is_own
from headroles.studies.classification.answers import (
    CERTIFIED,
    RoleAnswers,
    by_strength,
    pairs_among,
    shown_answers,
)
from headroles.studies.classification.summary import unit_of
from headroles.studies.inspection.sentences import LARGEST, ExampleOptions, Wanted
from headroles.testing.answers import NO, POSITIONAL, UNDECIDED, UNTESTABLE, YES

if TYPE_CHECKING:
    import pandas as pd

    from headroles.studies.classification.role_table import RoleTable

_SIGNS = {CERTIFIED: "●", YES: "○", POSITIONAL: "△", UNDECIDED: "?", UNTESTABLE: "✕", NO: ""}
LEGEND = (
    (_SIGNS[CERTIFIED], "yes, certified", True),
    (_SIGNS[YES], "yes", True),
    (_SIGNS[POSITIONAL], "positional: as much to any word at that distance", False),
    (_SIGNS[UNDECIDED], "undecided", False),
    (_SIGNS[UNTESTABLE], "untestable", False),
    (_SIGNS[NO], "no", False),
)
_SENTENCES = (ExampleOptions(n=1, which=LARGEST), ExampleOptions(n=2))
_TYPICAL = (ExampleOptions(n=2),)
_ROLES = 2  # of arcs, for which a head has sentences


def role_map(
    table: RoleTable,
    answers: RoleAnswers,
    asked: Sequence[Wanted],
    found: Sequence[tuple[Quoted, ...]],
) -> HeadMap:
    """Return the map of a table, with the sentences ``found`` for each of ``asked``."""
    quoted: dict[tuple[int, int], tuple[tuple[str, Quoted], ...]] = {}
    for (head, role, _), sentences in zip(asked, found, strict=True):
        named = tuple((in_words(role), one) for one in sentences)
        quoted[head] = quoted.get(head, ()) + named
    title = "Mean scores of heads for a role: layers are rows, heads are columns"
    views = (*_views(table, answers), _count(table))
    return HeadMap(title, "mean", views, LEGEND, quoted)


def asked_of_heads(table: RoleTable) -> Iterator[Wanted]:
    """Ask for sentences of every head: for its roles farthest beyond distance, or its strongest."""
    ranked = by_strength(table.frame[table.frame["assigned"]])
    pairs, pooled = pairs_among(table.frame), _pooled(table)
    beyond = ranked[ranked["role"].isin([role for role in pairs if role not in pooled])]
    of_arcs = {head: rows["role"] for head, rows in beyond.groupby(["layer", "head"], sort=False)}
    for head, roles in of_arcs.items():
        for role in islice(roles, _ROLES):
            yield from ((_head(head), str(role), options) for options in _SENTENCES)
    others = ranked[~ranked["role"].isin(pairs)]
    for row in others.drop_duplicates(["layer", "head"]).itertuples():
        if (row.layer, row.head) not in of_arcs:
            head = _head((row.layer, row.head))
            yield from ((head, str(row.role), options) for options in _TYPICAL)


def _views(table: RoleTable, answers: RoleAnswers) -> Iterator[View]:
    """Yield views of roles farthest beyond distance first, then of other roles by heads."""
    counts = table.frame.groupby("role", sort=False)["assigned"].sum()
    best = {one.role: one.head for one in answers.arcs}
    rest = sorted(
        (role for role in table.roles if role not in best), key=lambda role: -counts[role]
    )
    frame = table.frame.assign(shown=shown_answers(table.frame))
    frames = dict(list(frame.groupby("role", sort=False)))
    for role in (*best, *rest):
        yield replace(_view(table, role, frames[role]), best=best.get(role))


def _view(table: RoleTable, role: str, own: pd.DataFrame) -> View:
    rows, unit = own.set_index(["layer", "head"]), unit_of(table.record.score)
    beyond: dict[str, tuple[Cells, ...]] = {}
    is_of_pairs = bool(rows["beyond_distance"].notna().any())
    if is_of_pairs:
        beyond = {"beyond distance": (grid_of(table.frame, rows["beyond_distance"]),)}
    shown = text_grid_of(table.frame, rows["shown"])
    return View(
        name=role,
        words=in_words(role),
        group=group_of(role),
        values=grid_of(table.frame, rows["mean"]),
        marks=text_grid_of(table.frame, rows["shown"].map(_SIGNS)),
        facts={
            "interval": tuple(grid_of(table.frame, rows[name]) for name in ("ci_low", "ci_high")),
            **beyond,
            "answer": (text_grid_of(table.frame, rows["answer"]),),
            "certified": (text_grid_of(table.frame, rows["certified"]),),
        },
        unit="times uniform attention" if unit == "x uniform" else unit,
        line=float(rows["threshold"].median()),
        only_position=shown == POSITIONAL if is_of_pairs else None,
    )


def group_of(role: str) -> str:
    """Return the heading of a role."""
    is_of_words = is_arc(role) or is_own(role)
    return "words and their partners" if is_of_words else "places and special tokens"


def _count(table: RoleTable) -> View:
    """Return the view of the number and the names of the roles of each head."""
    rows = table.frame
    of_heads = rows.groupby(["layer", "head"])
    counts = grid_of(table.frame, of_heads["assigned"].sum().astype(float))
    named = rows[rows["assigned"]].groupby(["layer", "head"])["role"]
    words = named.agg(lambda roles: "; ".join(map(in_words, roles)))
    return View(
        name="count",
        words="all roles: how many each head has",
        group="all",
        values=counts,
        marks=np.array([["" if not n > 0 else f"{n:.0f}" for n in row] for row in counts]),
        facts={"roles": (text_grid_of(table.frame, words),)},
        unit="roles",
        is_summary=True,
    )


def _pooled(table: RoleTable) -> list[str]:
    """Return roles of all relations together, if single relations are in the table too."""
    pooled = [role for role in table.roles if is_arc(role) and relation_of(role) == POOLED]
    return pooled if len(pooled) < sum(map(is_arc, table.roles)) else []


def _head(pair: Any) -> tuple[int, int]:
    return int(pair[0]), int(pair[1])
