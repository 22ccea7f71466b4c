"""Summary of a comparison: roles kept, lost and gained, and means that moved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from headroles.results.shown import Grid, Shown, Warned
from headroles.roles import BIAS, in_words, is_arc
from headroles.studies.classification.role_table import NOT_CONTROLLED, about_level, split_roles
from headroles.testing.answers import UNDECIDED, YES
from headroles.wording import head_name, listed

if TYPE_CHECKING:
    from headroles.studies.comparison.compare import RoleComparison

SYNTACTIC = "syntactic partners"
_COUNTED = ("before", "kept", "lost", "gained", "after", "open")
_MOST_NAMED = 4


def summarized(shifts: RoleComparison) -> Iterator[Shown]:
    """Count and name roles kept, lost and gained, and means that moved beyond the margin."""
    of_arcs = shifts.frame["threshold"][shifts.frame["role"].map(is_arc)].dropna()
    has_offsets = not np.allclose(of_arcs, shifts.facts["threshold"])
    yield "\n".join(_about_sides(shifts, has_offsets))
    rows, last = rows_counted_once(shifts.frame), shifts.checkpoints[-1]
    of_last = rows[rows["checkpoint"] == last]
    to = f", before to {last}" if len(shifts.checkpoints) > 1 else ""
    if to:
        yield _grid("All roles, before to", rows.groupby("checkpoint", sort=False))
    happened = {name: of_last[of_last["status"] == name] for name in ("lost", "gained")}
    lost, gained = (len(own[["layer", "head"]].drop_duplicates()) for own in happened.values())
    if lost + gained:
        yield f"{lost} head{'s' * (lost != 1)} lost a role, {gained} gained one."
    else:
        yield "No head was shown to lose or gain a role."
    grid = _grid(f"Roles of heads{to}", of_last.groupby("group", sort=False))
    yield grid
    if any(row[-1] != "0" for row in grid.rows):
        yield "Open: shown on one side only; the change itself is not shown."
    for status, own in happened.items():
        if len(own):
            yield f"{status.capitalize()}: {_named(own)}."
    is_controlled = has_offsets or shifts.facts["distance_margin"]
    if not is_controlled and (rows["group"] == SYNTACTIC).any():
        yield NOT_CONTROLLED.replace("some of these", "some syntactic")
    yield _about_means(shifts, of_last)
    yield from map(Warned, shifts.record.warnings)


def rows_counted_once(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a comparison without roles that count the attention of others again.

    The column ``group`` is the role in words; all roles of arcs are one group.
    """
    others, arcs = split_roles(list(frame["role"].unique()))
    rows = frame[frame["role"].isin([*others, *arcs])]
    return rows.assign(group=[SYNTACTIC if is_arc(own) else in_words(own) for own in rows["role"]])


def _about_sides(shifts: RoleComparison, has_offsets: bool) -> Iterator[str]:
    """Name models, corpus, examples, level and what was dropped."""
    facts, names = shifts.facts, [model.name for model in shifts.record.models.values()]
    over = listed([file.rpartition("/")[2] for file in shifts.record.files])
    units = f" of {facts['n_clusters']} documents" * (facts["clustered_by"] != "none")
    yield f"{names[0]} -> {', '.join(names[1:])}{f' over {over}' if over else ''}:"
    yield (
        f"{facts['examples']} examples{units} that all models read. Heads are named "
        "layer-head, counted from 0."
    )
    yield about_level(shifts.options, facts, shifts.options.offset_margin * has_offsets)
    dropped = []
    for name, n_examples in facts["dropped_examples"].items():
        roles = facts["dropped_roles"][name]
        parts = [f"{n_examples} examples"] * bool(n_examples)
        parts += [f"{len(roles)} roles ({listed(roles)})"] * bool(roles)
        dropped += [f"of {name} {' and '.join(parts)}"] * bool(parts)
    if dropped:
        yield f"Dropped: {'; '.join(dropped)}."


def _grid(title: str, groups: Any) -> Grid:
    """Count roles by group; arcs come first."""
    rows = []
    for name, changes in groups:
        had, has = changes["answer_before"] == YES, changes["answer_after"] == YES
        if not (had | has).any():
            continue
        status, n = changes["status"], changes["role"].nunique()
        by_relation = f", by relation ({n})" * (name == SYNTACTIC and n > 1)
        by_status = (status == each for each in ("kept", "lost", "gained"))
        counted = (had, *by_status, has, (status == UNDECIDED) & (had | has))
        rows.append((f"{name}{by_relation}", *(str(int(each.sum())) for each in counted)))
    rows.sort(key=lambda row: not row[0].startswith(SYNTACTIC))
    return Grid((title, *_COUNTED), tuple(rows))


def _named(changes: pd.DataFrame) -> str:
    """Name heads with their roles, those of arcs first."""
    ordered = changes.sort_values("group", key=lambda group: group != SYNTACTIC, kind="stable")
    named = [
        f"{head_name((row['layer'], row['head']))} {in_words(row['role'])}"
        for row in ordered.to_dict("records")
    ]
    more = len(named) - _MOST_NAMED
    return "; ".join(named[:_MOST_NAMED]) + f"; and {more} more" * (more > 0)


def _about_means(shifts: RoleComparison, rows: pd.DataFrame) -> str:
    """Count the means of a checkpoint by their change; name layers and the largest change."""
    changed = rows[rows["changed"]].sort_values("difference", key=abs, ascending=False)
    layers = ", ".join(map(str, sorted(changed["layer"].unique())))
    named = f" (layer{'s' * (', ' in layers)} {layers})" * bool(layers)
    n_heads, n_roles = len(rows[["layer", "head"]].drop_duplicates()), rows["role"].nunique()
    text = (
        f"Of {len(rows)} means ({n_heads} heads x {n_roles} roles), {len(changed)} moved by more "
        f"than {shifts.facts['margin']:g}{named}, {rows['equivalent'].sum()} by less; the "
        "others are undecided."
    )
    if not len(changed):
        return text
    if (shifts.frame["certified"] != "").any():
        of_rows = shifts.counts().merge(rows[["checkpoint", "role", "layer"]].drop_duplicates())
        n_certified = of_rows["certified_changes"].sum()
        text += f"\nCertified to differ from 0: {n_certified} of the {len(changed)}."
    first = changed.iloc[0]
    unit = " times uniform attention" * (shifts.facts["score"] == BIAS.name)
    where = f"{head_name((first['layer'], first['head']))} {in_words(first['role'])}"
    return f"{text}\nLargest: {where} ({first['difference']:+.2g}{unit})."
