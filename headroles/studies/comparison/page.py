"""Map and page of a comparison."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from headroles.drawing.grids import grid_of, text_grid_of
from headroles.drawing.head_map import HeadMap, View
from headroles.drawing.page import Page, Picture
from headroles.drawing.plain_page import plain_page
from headroles.drawing.style import figure_of, score_label
from headroles.roles import in_words
from headroles.studies.classification.page import group_of
from headroles.studies.comparison.answers import changed_most
from headroles.studies.comparison.figures import draw_changed_heads, draw_changes, draw_trajectory
from headroles.studies.comparison.result import RoleShifts

if TYPE_CHECKING:
    import pandas as pd


_SIGNS = {"gained": "▲", "lost": "▼", "kept": "●"}
_CHANGED = "*"
LEGEND = (
    ("▲", "gained the role", True),
    ("▼", "lost the role", True),
    (_CHANGED, "changed, neither gained nor lost", True),
    ("●", "kept the role, not shown to change beyond the margin", False),
    ("", "not shown to change beyond the margin", False),
)


def comparison_map(shifts: RoleShifts) -> HeadMap:
    """Return the map of a comparison, the role that changed most first."""
    views = tuple(
        _view(shifts, rows, str(checkpoint), role)
        for checkpoint, of_checkpoint in shifts.frame.groupby("checkpoint", sort=False)
        for role, rows in _ordered(of_checkpoint)
    )
    title = "Differences of mean scores after and before: layers are rows, heads are columns"
    return HeadMap(title, "difference", views, LEGEND, is_signed=True)


def _ordered(frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    frames = {str(role): rows for role, rows in frame.groupby("role", sort=False)}
    return [(role, frames[role]) for role in changed_most(frame)]


def _view(shifts: RoleShifts, rows: pd.DataFrame, checkpoint: str, role: str) -> View:
    own = rows.set_index(["layer", "head"])
    marks = own["status"].map(_SIGNS).fillna("")
    is_changed = (own["change"] == "changed") & ~own["status"].isin(["gained", "lost"])
    several = len(shifts.checkpoints) > 1

    def numbers(name: str) -> np.ndarray:
        return grid_of(shifts.frame, own[name])

    def texts(name: str) -> tuple[np.ndarray]:
        return (text_grid_of(shifts.frame, own[name]),)

    return View(
        name=f"{role} {checkpoint}" if several else role,
        words=f"{in_words(role)}, to {checkpoint}" if several else in_words(role),
        group=f"to {checkpoint}" if several else group_of(role),
        values=numbers("difference"),
        marks=text_grid_of(shifts.frame, marks.mask(is_changed, _CHANGED)),
        facts={
            "interval": (numbers("ci_low"), numbers("ci_high")),
            "before": (numbers("mean_before"),),
            "after": (numbers("mean_after"),),
            "change": texts("change"),
            "role": texts("status"),
            "certified": texts("certified"),
        },
        unit=f"difference of {score_label(shifts.record.score)}",
        line=float(own["threshold"].median()),
        arrow=(numbers("mean_before"), numbers("mean_after")),
    )


N_ROLES = 3


def comparison_page(shifts: RoleShifts) -> Page:
    """Make the page of a comparison."""
    names = [one.name for one in shifts.record.models.values()]
    between = f"from {names[0]} to {', '.join(names[1:])}" if len(names) > 1 else "in the heads"
    title = f"What changed in the attention heads {between}?"
    return plain_page(shifts, title, tuple(_pictures(shifts)), comparison_map(shifts))


def _pictures(shifts: RoleShifts) -> Iterator[Picture]:
    last = shifts.checkpoints[-1]
    yield Picture(
        (figure_of(draw_changed_heads(shifts)),),
        f"In how many roles each head changed, from before to {last}.",
    )
    moved = shifts.frame[shifts.frame["difference"].notna()]
    changed = set(moved.loc[moved["change"] == "changed", "role"])
    for role in [one for one in changed_most(moved) if one in changed][:N_ROLES]:
        yield Picture(
            (figure_of(draw_changes(shifts, role)),),
            f"{in_words(role)}: from the mean score before to that of {last}, of the heads "
            "that moved most; the dotted line is the threshold.",
        )
        if len(shifts.checkpoints) > 1:
            yield Picture(
                (figure_of(draw_trajectory(shifts, role)),),
                f"{in_words(role)}: mean scores by checkpoint.",
            )
