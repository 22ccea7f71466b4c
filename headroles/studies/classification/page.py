"""Page of a role table: its summary, a map of all heads, and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headroles.drawing.grids import grid_of, text_grid_of
from headroles.drawing.head_map import Cells, HeadMap, Quoted, View
from headroles.drawing.page import Group, Page, Picture, Section, Table, plain_page
from headroles.drawing.style import figure_of
from headroles.role_names import POOLED, relation_of
from headroles.roles import in_words, is_arc, is_own
from headroles.studies.classification.answers import (
    CERTIFIED,
    by_strength,
    find_answers,
    pairs_among,
    shown_answers,
    strongest_rows,
)
from headroles.studies.classification.figures import draw_heads, draw_roles, strongest_roles
from headroles.studies.classification.role_table import RoleTable
from headroles.studies.classification.summary import unit_of
from headroles.studies.inspection.attention import LARGEST, ExampleOptions, Wanted
from headroles.studies.inspection.examples import quote
from headroles.testing.answers import NO, POSITIONAL, UNDECIDED, UNTESTABLE, YES
from headroles.wording import head_name

if TYPE_CHECKING:
    import pandas as pd

N_HEADS = 12
_MOST_ROWS = 30
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
    strongest = _records(strongest_rows(table, strongest_roles(table, N_HEADS)))
    asked = [
        ((row["layer"], row["head"]), row["role"], options)
        for row in strongest
        for options in _SENTENCES
    ]
    of_heads = list(_asked_of_heads(table))
    found, why_not = quote(folder, [*asked, *of_heads], tuple(roles), model)
    return plain_page(
        table,
        f"Which attention heads of {table.record.model.name} have which roles?",
        _pictures(table),
        role_map(table, of_heads, found[len(asked) :]),
        own_tables=(_roles(table), *_beyond_distance(table.frame[table.frame["assigned"]])),
        more=[_strongest(strongest, found[: len(asked)], why_not)] if strongest else [],
    )


def _roles(table: RoleTable) -> Table:
    answers, certified = table.answers(), table.certified()
    best = {row["role"]: row for row in _records(strongest_rows(table, table.roles))}
    sizes = table.frame.groupby("role")[["n", "n_clusters"]].max()
    # The table is wide: empty columns are left out.
    shown = [name for name in (POSITIONAL, NO, UNDECIDED, UNTESTABLE) if answers[name].any()]
    rows = tuple(
        (
            in_words(role),
            str(answers.loc[role, YES]),
            str(certified.loc[role, YES]),
            *(str(answers.loc[role, name]) for name in shown),
            head_name((best[role]["layer"], best[role]["head"])) if role in best else "",
            _with_interval(best[role]) if role in best else "",
            *map(str, sizes.loc[role]),
            role,
        )
        for role in table.roles
    )
    named = ("without" if name == NO else name for name in shown)
    names = ("role", "heads with it", "certified", *named)
    others = ("strongest", "mean and interval", "examples", "clusters", "id")
    caption = (
        "Each role, the number of its heads, and the strongest of them: of arcs the head that "
        f"has the role and attends most beyond distance. {_thresholds(table)}"
    )
    return Table(caption, names + others, rows)


def _thresholds(table: RoleTable) -> str:
    limits = table.frame["threshold"].dropna()
    shown = " to ".join(dict.fromkeys((f"{limits.min():.3g}", f"{limits.max():.3g}")))
    margin = table.tests.distance_margin
    beyond = f" Arcs need more than {margin:.3g} beyond distance." if margin else ""
    return f"Thresholds: {shown}.{beyond}"


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


def _beyond_distance(rows: pd.DataFrame) -> Iterator[Table]:
    """Yield the table of heads that follow arcs, if there are any; ``rows`` are assigned."""
    ranked = by_strength(rows[rows["beyond_distance"].notna()])
    if not len(ranked):
        return
    first = f" The first {_MOST_ROWS} of {len(ranked)}." * (len(ranked) > _MOST_ROWS)
    shown = tuple(
        (
            head_name((row["layer"], row["head"])),
            in_words(row["role"]),
            _with_interval(row),
            _with_interval(row, "beyond_distance", "beyond_low", "beyond_high"),
            row["certified"] or "-",
        )
        for row in _records(ranked.head(_MOST_ROWS))
    )
    caption = (
        "Heads that follow syntax, not distance: they attend more along arcs than to other words "
        f"at the same distance in the same sentence, largest difference first.{first}"
    )
    names = ("head", "role", "mean and interval", "of it beyond distance", "certified")
    yield Table(caption, names, shown)


def _strongest(
    rows: list[dict[str, Any]], found: Sequence[tuple[Quoted, ...]], why_not: tuple[str, ...]
) -> Section:
    several = len(_SENTENCES)
    groups = tuple(
        Group(
            f"{in_words(row['role'])}: head {head_name((row['layer'], row['head']))}",
            f"Mean {_with_interval(row)}, threshold {row['threshold']:.3g}, {row['n']} examples "
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


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]


def _with_interval(
    row: Mapping[str, Any], value: str = "mean", low: str = "ci_low", high: str = "ci_high"
) -> str:
    return f"{row[value]:.3g} ({row[low]:.3g} to {row[high]:.3g})"


# The map: every role as a view, and the sentences of every head.


def role_map(
    table: RoleTable, asked: Sequence[Wanted] = (), found: Sequence[tuple[Quoted, ...]] = ()
) -> HeadMap:
    """Return the map of a table, with the sentences ``found`` for each of ``asked``."""
    quoted: dict[tuple[int, int], tuple[tuple[str, Quoted], ...]] = {}
    for (head, role, _), sentences in zip(asked, found, strict=True):
        named = tuple((in_words(role), one) for one in sentences)
        quoted[head] = quoted.get(head, ()) + named
    title = "Mean scores of heads for a role: layers are rows, heads are columns"
    return HeadMap(title, "mean", (*_views(table), _count(table)), LEGEND, quoted)


def _asked_of_heads(table: RoleTable) -> Iterator[Wanted]:
    """Ask for sentences of every head: for its roles farthest beyond distance, or its strongest."""
    ranked = by_strength(table.frame[table.frame["assigned"]])
    pairs = pairs_among(table.frame)
    single = [role for role in pairs if not is_arc(role) or relation_of(role) != POOLED] or pairs
    of_arcs = ranked[ranked["role"].isin(single)].groupby(["layer", "head"], sort=False)
    rows: Any = of_arcs.head(_ROLES_IN_MAP).itertuples()
    for row in rows:
        yield from (((row.layer, row.head), row.role, options) for options in _IN_MAP)
    rows = ranked[~ranked["role"].isin(pairs)].drop_duplicates(["layer", "head"]).itertuples()
    for row in rows:
        if (row.layer, row.head) not in of_arcs.groups:
            yield (row.layer, row.head), row.role, _IN_MAP[1]


def _views(table: RoleTable) -> Iterator[View]:
    """Yield views of roles farthest beyond distance first, then of other roles by heads."""
    counts = table.frame.groupby("role", sort=False)["assigned"].sum()
    best = {one.role: one.head for one in find_answers(table).arcs}
    rest = sorted((role for role in table.roles if role not in best), key=lambda one: -counts[one])
    frame = table.frame.assign(shown=shown_answers(table.frame))
    frames = dict(list(frame.groupby("role", sort=False)))
    for role in (*best, *rest):
        yield _view(table, role, frames[role].set_index(["layer", "head"]), best.get(role))


def _view(table: RoleTable, role: str, rows: pd.DataFrame, best: tuple[int, int] | None) -> View:
    def numbers(name: str) -> Cells:
        return grid_of(table.frame, rows[name])

    def texts(name: str) -> Cells:
        return text_grid_of(table.frame, rows[name])

    unit = unit_of(table.record.score)
    is_of_pairs = bool(rows["beyond_distance"].notna().any())
    beyond = {"beyond distance": (numbers("beyond_distance"),)} if is_of_pairs else {}
    return View(
        name=role,
        words=in_words(role),
        group=group_of(role),
        values=numbers("mean"),
        marks=text_grid_of(table.frame, rows["shown"].map(_SIGNS)),
        facts={
            "interval": (numbers("ci_low"), numbers("ci_high")),
            **beyond,
            "answer": (texts("answer"),),
            "certified": (texts("certified"),),
        },
        unit="times uniform attention" if unit == "x uniform" else unit,
        line=float(rows["threshold"].median()),
        only_position=texts("shown") == POSITIONAL if is_of_pairs else None,
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
