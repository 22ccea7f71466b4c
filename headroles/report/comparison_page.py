"""The page of a comparison: what changed in which heads."""

from __future__ import annotations

from pathlib import Path

from headroles.report.changes import draw_changed_heads, draw_changes, draw_trajectory
from headroles.report.citing import how_to_report
from headroles.report.comparison_map import changed_most, comparison_map
from headroles.report.page import Page, Picture, Section
from headroles.report.plain_page import told
from headroles.report.run_facts import made_how
from headroles.report.style import figure_of
from headroles.roles import in_words
from headroles.studies.comparison import RoleShifts

N_ROLES = 3


def comparison_page(folder: Path) -> Page:
    """The page of the comparison of two score sets or more in a folder.

    Raises StorageError for results that cannot be read.
    """
    shifts = RoleShifts.load(folder)
    answer, tables = told(shifts.shown())
    texts, details = told(shifts.details())
    sections = [
        _pictures(shifts),
        Section("Roles, layers and heads", texts=texts, tables=(*tables, *details)),
    ]
    if warnings := shifts.warnings:
        sections.append(Section("What to be careful about", cautions=warnings))
    names = [one.name for one in shifts.record.models.values()]
    between = f"from {names[0]} to {', '.join(names[1:])}" if len(names) > 1 else "in the heads"
    return Page(
        f"What changed in the attention heads {between}?",
        answer,
        (*sections, how_to_report(shifts), made_how(shifts.record)),
    )


def _pictures(shifts: RoleShifts) -> Section:
    last = shifts.checkpoints[-1]
    pictures = [
        Picture(
            (figure_of(draw_changed_heads(shifts)),),
            f"In how many roles each head changed, from before to {last}.",
        )
    ]
    moved = shifts.frame[shifts.frame["difference"].notna()]
    changed = set(moved.loc[moved["change"] == "changed", "role"])
    for role in [one for one in changed_most(moved) if one in changed][:N_ROLES]:
        pictures.append(
            Picture(
                (figure_of(draw_changes(shifts, role)),),
                f"{in_words(role)}: from the mean score before to that of {last}, of the heads "
                "that moved most; the dotted line is the threshold.",
            )
        )
        if len(shifts.checkpoints) > 1:
            pictures.append(
                Picture(
                    (figure_of(draw_trajectory(shifts, role)),),
                    f"{in_words(role)}: mean scores by checkpoint.",
                )
            )
    return Section("All heads", head_map=comparison_map(shifts), pictures=tuple(pictures))
