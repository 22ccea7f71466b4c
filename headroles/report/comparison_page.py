"""The page of a comparison: what changed in which heads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from headroles.report.changes import draw_changed_heads, draw_changes, draw_trajectory
from headroles.report.page import Page, Picture, Section, Table
from headroles.report.rows import without_contrasts
from headroles.report.run_facts import made_how
from headroles.report.style import figure_of
from headroles.results import Grid
from headroles.scoring import model_name
from headroles.studies.comparison import RoleShifts, is_certified

N_ROLES, N_CERTIFIED = 3, 5


def comparison_page(folder: Path) -> Page:
    """The page of the comparison of two score sets or more in a folder.

    Raises StorageError for results that cannot be read.
    """
    shifts = RoleShifts.load(folder)
    sections = [
        _pictures(shifts),
        Section("Roles, layers and heads", tables=tuple(_tables(shifts))),
    ]
    if warnings := shifts.warnings:
        sections.append(Section("What to be careful about", cautions=warnings))
    names = [model_name(one) for one in shifts.provenance.get("sets", {}).values()]
    between = f"from {names[0]} to {', '.join(names[1:])}" if len(names) > 1 else "in the heads"
    return Page(
        f"What changed in the attention heads {between}?",
        tuple(_answer(shifts)),
        (*sections, made_how(shifts.provenance)),
    )


def _answer(shifts: RoleShifts) -> Iterator[str]:
    for name in shifts.checkpoints:
        rows = shifts.frame[shifts.frame["checkpoint"] == name]
        changes = rows["change"].value_counts()
        untestable = changes.get("untestable", 0)
        yield (
            f"Before to {name}: {_roles_of_heads(rows)} Of {len(rows)} pairs of head and role or "
            f"contrast {changes.get('changed', 0)} changed, {changes.get('trivial', 0)} changed by "
            f"less than the margin, {changes.get('equivalent', 0)} did not change by more than it, "
            f"and {changes.get('undecided', 0)} are undecided"
            f"{f', {untestable} untestable' if untestable else ''}.{_certified(shifts, rows)}"
        )
    moved = shifts.moved(1).to_dict("records")
    if moved and moved[-1]["effect_size"] > 0:
        last = moved[-1]
        up_to = f", up to {shifts.checkpoints[-1]}," if len(shifts.checkpoints) > 1 else ""
        yield (
            f"The head that moved most{up_to} is "
            f"{last['layer']}-{last['head']}: most in {last['role']}, "
            f"by {last['role_difference']:+.3g}."
        )


def _certified(shifts: RoleShifts, rows: pd.DataFrame) -> str:
    """How many changes are certified, if any could be, and which of those are the largest."""
    if not shifts.knows_bounds:
        return ""
    found = rows[is_certified(rows)]
    largest = found.loc[found["difference"].abs().sort_values(ascending=False).index[:N_CERTIFIED]]
    named = [
        f"{row.layer}-{row.head} {row.role} ({row.difference:+.2g})" for row in largest.itertuples()
    ]
    of_changes = f" {len(found)} of the {rows['changed'].sum()} changes are certified"
    return f"{of_changes}{', the largest of them ' if named else ''}{', '.join(named)}."


def _roles_of_heads(rows: pd.DataFrame) -> str:
    """How many roles heads kept, lost and gained, and where most of that was; no contrasts."""
    roles, statuses = without_contrasts(rows), ["kept", "lost", "gained"]
    counts = pd.crosstab(roles["role"], roles["status"]).reindex(columns=statuses, fill_value=0)
    kept, lost, gained = (counts[status] for status in statuses)
    told = (
        f"of their {kept.sum() + lost.sum()} roles the heads kept {kept.sum()} and lost "
        f"{lost.sum()}; they gained {gained.sum()}."
    )
    happened = lost + gained
    if not happened.any():
        return told
    most = str(happened.idxmax())
    return f"{told} Most of that was in {most}: {lost[most]} lost, {gained[most]} gained."


def _pictures(shifts: RoleShifts) -> Section:
    last = shifts.checkpoints[-1]
    pictures = [
        Picture(
            (figure_of(draw_changed_heads(shifts)),),
            f"In how many roles each head changed, from before to {last}.",
        )
    ]
    for role in _most_changed(shifts):
        pictures.append(
            Picture(
                (figure_of(draw_changes(shifts, role)),),
                f"{role}: from the mean score before to that of {last}, of the heads that moved "
                "most; the dotted line is the threshold.",
            )
        )
        if len(shifts.checkpoints) > 1:
            pictures.append(
                Picture(
                    (figure_of(draw_trajectory(shifts, role)),),
                    f"{role}: mean scores by checkpoint.",
                )
            )
    return Section("All heads", pictures=tuple(pictures))


def _most_changed(shifts: RoleShifts) -> list[str]:
    """The roles most often gained or lost, then most often changed."""
    rows = shifts.frame[shifts.frame["difference"].notna()]
    happened = rows["status"].isin(["gained", "lost"]).groupby(rows["role"], sort=False).sum()
    changed = (rows["change"] == "changed").groupby(rows["role"], sort=False).sum()
    ranked = sorted(changed.index, key=lambda role: (-happened[role], -changed[role]))
    return [str(role) for role in ranked[:N_ROLES] if changed[role]]


def _tables(shifts: RoleShifts) -> Iterator[Table]:
    """What the comparison shows to people, grid by grid."""
    for one in shifts.shown():
        if isinstance(one, Grid):
            yield Table.of(one, f"{one.columns[0].capitalize()}.")
