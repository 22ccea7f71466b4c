"""The page of a comparison: what changed in which heads."""

from __future__ import annotations

from pathlib import Path

from headroles.report.changes import draw_changed_heads, draw_changes, draw_trajectory
from headroles.report.page import Page, Picture, Section
from headroles.report.plain_page import told
from headroles.report.run_facts import made_how
from headroles.report.style import figure_of
from headroles.scoring import model_name
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
    names = [model_name(one) for one in shifts.provenance.get("sets", {}).values()]
    between = f"from {names[0]} to {', '.join(names[1:])}" if len(names) > 1 else "in the heads"
    return Page(
        f"What changed in the attention heads {between}?",
        answer,
        (*sections, made_how(shifts.provenance)),
    )


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
