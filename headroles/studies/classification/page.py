"""Page of a role table: its summary, a map of all heads, sentences, and all roles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from headroles.drawing.head_map import Quoted
from headroles.drawing.page import Group, Page, Picture, Section, Table
from headroles.drawing.plain_page import plain_page
from headroles.drawing.style import figure_of
from headroles.roles import in_words
from headroles.studies.classification.answers import by_strength, find_answers, strongest_rows
from headroles.studies.classification.figures import draw_heads, draw_maps, strongest_roles
from headroles.studies.classification.map import asked_of_heads, role_map
from headroles.studies.classification.role_table import RoleTable
from headroles.studies.inspection.examples import quote
from headroles.studies.inspection.sentences import LARGEST, ExampleOptions
from headroles.testing.answers import NO, POSITIONAL, UNDECIDED, UNTESTABLE, YES
from headroles.wording import head_name

N_HEADS = 12
_MOST_ROWS = 30
_SENTENCES = (ExampleOptions(n=3, which=LARGEST), ExampleOptions(n=2))


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
    of_heads = list(asked_of_heads(table))
    found, why_not = quote(folder, [*asked, *of_heads], tuple(roles), model)
    return plain_page(
        table,
        f"Which attention heads of {table.record.model.name} have which roles?",
        _pictures(table),
        role_map(table, find_answers(table), of_heads, found[len(asked) :]),
        own_tables=(_roles(table), *_beyond_distance(table.frame[table.frame["assigned"]])),
        more=[_strongest(table, strongest, found[: len(asked)], why_not)] if strongest else [],
    )


def _pictures(table: RoleTable) -> tuple[Picture, ...]:
    shown = strongest_roles(table)
    is_whole = len(shown) == len(table.roles)
    which = "all roles" if is_whole else "roles that most heads have"
    return (
        Picture(
            (figure_of(draw_heads(table)),),
            "How many roles each head has, by layer and head.",
        ),
        Picture(
            tuple(draw_maps(table, shown)),
            f"Mean scores for {which}. Each map has its own scale. Full circle: yes, "
            "certified. Open circle: yes. Triangle: positional. "
            "?: undecided. Cross: untestable. No mark: no.",
        ),
    )


def _roles(table: RoleTable) -> Table:
    answers, certified = table.answers(), table.certified()
    best = {row["role"]: row for row in _records(strongest_rows(table, table.roles))}
    sizes = table.frame.groupby("role")[["n", "n_clusters"]].max()
    # The table is wide: empty columns are left out.
    shown = [name for name in (POSITIONAL, NO, UNDECIDED, UNTESTABLE) if answers[name].any()]
    rows = tuple(
        (
            _in_words(table, role),
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


def _beyond_distance(rows: pd.DataFrame) -> Iterator[Table]:
    """Yield the table of heads that follow arcs, if there are any; ``rows`` are assigned."""
    found = by_strength(rows[rows["beyond_distance"].notna()])
    if len(found):
        first = f" The first {_MOST_ROWS} of {len(found)}." * (len(found) > _MOST_ROWS)
        shown = tuple(
            (
                head_name((row["layer"], row["head"])),
                in_words(row["role"]),
                _with_interval(row),
                _with_interval(row, "beyond_distance", "beyond_low", "beyond_high"),
                row["certified"] or "-",
                row["note"],
            )
            for row in _records(found.head(_MOST_ROWS))
        )
        caption = (
            "Heads that follow syntax, not distance: they attend more along arcs than to other "
            f"words at the same distance in the same sentence, largest difference first.{first} "
            "The whole table as a file: headroles export DIR --view assigned"
        )
        names = ("head", "role", "mean and interval", "of it beyond distance", "certified", "note")
        yield Table(caption, names, shown)


def _strongest(
    table: RoleTable,
    rows: list[dict[str, Any]],
    found: Sequence[tuple[Quoted, ...]],
    why_not: tuple[str, ...],
) -> Section:
    several = len(_SENTENCES)
    groups = tuple(
        Group(
            f"{_in_words(table, row['role'])}: head {head_name((row['layer'], row['head']))}",
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


def _in_words(table: RoleTable, role: str) -> str:
    """Put a role in words, by default those of its author."""
    words = in_words(role)
    of_author = {one.id: one.words for one in table.record.roles}
    return of_author.get(role) or role if words == role else words
