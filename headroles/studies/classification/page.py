"""Page of a role table: its summary, a map of all heads, and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headroles.drawing.grids import grid_of, text_grid_of
from headroles.drawing.head_map import Cells, HeadMap, Quoted, View
from headroles.drawing.page import Group, Page, Picture, Section, plain_page
from headroles.drawing.style import figure_of
from headroles.roles import in_words, is_arc, is_own
from headroles.studies.classification.figures import (
    CERTIFIED,
    draw_heads,
    draw_roles,
    shown_answers,
    strongest_roles,
)
from headroles.studies.classification.role_table import (
    RoleTable,
    by_strength,
    pairs_among,
    split_roles,
    unit_of,
    with_interval,
)
from headroles.studies.inspection.again import LARGEST, ExampleOptions, Wanted
from headroles.studies.inspection.examples import quote
from headroles.testing.answers import NO, POSITIONAL, UNDECIDED, UNTESTABLE, YES
from headroles.wording import head_name

if TYPE_CHECKING:
    import pandas as pd

N_HEADS = 12
_SENTENCES = (ExampleOptions(n=3, which=LARGEST), ExampleOptions(n=2))
_SIGNS = {CERTIFIED: "●", YES: "○", POSITIONAL: "△", UNDECIDED: "?", UNTESTABLE: "✕", NO: ""}
_POSITIONAL = "positional: as much to any word at that distance"
LEGEND = tuple(
    (sign, _POSITIONAL if answer == POSITIONAL else answer, answer in (CERTIFIED, YES))
    for answer, sign in _SIGNS.items()
)
_IN_MAP = (ExampleOptions(n=1, which=LARGEST), ExampleOptions(n=2))
_ROLES_IN_MAP = 2  # of arcs, for which a head has sentences


def role_page(table: RoleTable, folder: Path, roles: Sequence[str], model: str | None) -> Page:
    """Make the page of a role table, with sentences if scores and corpus are there.

    Args:
        table: the table.
        folder: the folder of the table and its scores.
        roles: functions of users that may be imported to find their sentences.
        model: the model that was scored, if it has moved.
    """
    strongest = table.strongest()
    strongest = strongest[strongest.index.isin(strongest_roles(table, N_HEADS))]
    rows = strongest.reset_index().to_dict("records")
    wanted = [
        ((row["layer"], row["head"]), row["role"], options)
        for row in rows
        for options in _SENTENCES
    ]
    of_heads = list(_wanted_of_heads(table))
    found, why_not = quote(folder, [*wanted, *of_heads], tuple(roles), model)
    return plain_page(
        table,
        f"Which attention heads of {table.record.model.name} have which roles?",
        _pictures(table),
        role_map(table, of_heads, found[len(wanted) :]),
        more=[_strongest(rows, found[: len(wanted)], why_not)] if rows else [],
    )


def _pictures(table: RoleTable) -> tuple[Picture, ...]:
    shown = strongest_roles(table)
    maps = [draw_roles(table, [role]) for role in shown]
    for figure in maps:  # the cells of large models would make a large file
        figure.axes[0].collections[0].set_rasterized(True)
    which = "all roles" if len(shown) == len(table.roles) else "roles that most heads have"
    caption = (
        f"Mean scores for {which}. Each map has its own scale. Full circle: yes, certified. Open "
        "circle: yes. Triangle: positional. ?: undecided. Cross: untestable. No mark: no."
    )
    of_heads = Picture(
        (figure_of(draw_heads(table)),), "How many roles each head has, by layer and head."
    )
    return of_heads, Picture(tuple(maps), caption)


def _strongest(
    rows: list[dict[Any, Any]], found: Sequence[tuple[Quoted, ...]], why_not: tuple[str, ...]
) -> Section:
    several = len(_SENTENCES)
    groups = tuple(
        Group(
            f"{in_words(row['role'])}: head {head_name((row['layer'], row['head']))}",
            f"Mean {with_interval(row)}, threshold {row['threshold']:.3g}, {row['n']} examples "
            f"({row['role']}).",
            tuple(one for own in found[k * several : (k + 1) * several] for one in own),
        )
        for k, row in enumerate(rows)
    )
    text = (
        "The strongest head (of arcs beyond distance) of each of the roles that most heads have, "
        "in the examples with its largest scores, and in typical ones, nearest the median of its "
        "scores. Words that the role looks at are marked; below a sentence, b ← a 0.62 means that "
        "word a gives word b 0.62 of its attention, in bold where the role has that arc."
    )
    return Section("Strongest heads", texts=(text, *why_not), groups=groups)


# The map: every role as a view, and the sentences of every head.


def role_map(
    table: RoleTable, wanted: Sequence[Wanted] = (), found: Sequence[tuple[Quoted, ...]] = ()
) -> HeadMap:
    """Return the map of a table, with the sentences ``found`` for each of ``wanted``.

    Roles of pairs that heads have come first, farthest beyond distance first, then other roles by
    the number of their heads.
    """
    quoted: dict[tuple[int, int], tuple[tuple[str, Quoted], ...]] = {}
    for (head, role, _), sentences in zip(wanted, found, strict=True):
        named = tuple((in_words(role), one) for one in sentences)
        quoted[head] = quoted.get(head, ()) + named
    _, single = split_roles(table.roles, pairs_among(table.frame))
    best = table.strongest()[["layer", "head"]]
    best = best[best.index.isin(single)]
    counts = table.frame.groupby("role", sort=False)["assigned"].sum()
    rest = counts.drop(best.index).sort_values(ascending=False, kind="stable").index
    first = {role: (int(layer), int(head)) for role, layer, head in best.itertuples()}
    frames = dict(list(table.frame.groupby("role", sort=False)))
    views = [
        _view(table, str(role), frames[role].set_index(["layer", "head"]), first.get(role))
        for role in (*first, *rest)
    ]
    title = "Mean scores of heads for a role: layers are rows, heads are columns"
    return HeadMap(title, "mean", (*views, _count(table)), LEGEND, quoted)


def _wanted_of_heads(table: RoleTable) -> Iterator[Wanted]:
    """Name sentences of every head: of its roles farthest beyond distance, or of its strongest."""
    ranked, pairs = by_strength(table.frame[table.frame["assigned"]]), pairs_among(table.frame)
    _, single = split_roles(table.roles, pairs)
    of_arcs = ranked[ranked["role"].isin(single)].groupby(["layer", "head"], sort=False)
    rows: Any = of_arcs.head(_ROLES_IN_MAP).itertuples()
    for row in rows:
        yield from (((row.layer, row.head), row.role, options) for options in _IN_MAP)
    rows = ranked[~ranked["role"].isin(pairs)].drop_duplicates(["layer", "head"]).itertuples()
    for row in rows:
        if (row.layer, row.head) not in of_arcs.groups:
            yield (row.layer, row.head), row.role, _IN_MAP[1]


def _view(table: RoleTable, role: str, rows: pd.DataFrame, best: tuple[int, int] | None) -> View:
    def numbers(name: str) -> Cells:
        return grid_of(table.frame, rows[name])

    def texts(of_heads: pd.Series[str]) -> Cells:
        return text_grid_of(table.frame, of_heads)

    unit, shown = unit_of(table.record.score), shown_answers(rows)
    is_of_pairs = bool(rows["beyond_distance"].notna().any())
    beyond = {"beyond distance": (numbers("beyond_distance"),)} if is_of_pairs else {}
    return View(
        name=role,
        words=in_words(role),
        group=group_of(role),
        values=numbers("mean"),
        marks=texts(shown.map(_SIGNS)),
        facts={
            "interval": (numbers("ci_low"), numbers("ci_high")),
            **beyond,
            "answer": (texts(rows["answer"]),),
            "certified": (texts(rows["certified"]),),
        },
        unit="times uniform attention" if unit == "x uniform" else unit,
        line=float(rows["threshold"].median()),
        only_position=texts(shown) == POSITIONAL if is_of_pairs else None,
        best=best,
    )


def group_of(role: str) -> str:
    """Return the heading of a role."""
    is_of_words = is_arc(role) or is_own(role)
    return "words and their partners" if is_of_words else "places and special tokens"


def _count(table: RoleTable) -> View:
    """Return the view of the number and the names of the roles of each head."""
    rows = table.frame
    counts = grid_of(rows, rows.groupby(["layer", "head"])["assigned"].sum().astype(float))
    named = rows[rows["assigned"]].groupby(["layer", "head"])["role"]
    words = named.agg(lambda roles: "; ".join(map(in_words, roles)))
    return View(
        name="count",
        words="all roles: how many each head has",
        group="all",
        values=counts,
        marks=np.array([["" if not n > 0 else f"{n:.0f}" for n in row] for row in counts]),
        facts={"roles": (text_grid_of(rows, words),)},
        unit="roles",
        is_summary=True,
    )
