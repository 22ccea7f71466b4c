"""The map of a comparison: every role as a view, with arrows from before to after."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headroles.report.head_map import HeadMap, View
from headroles.report.maps import grid_of, text_grid_of
from headroles.report.role_map import group_of
from headroles.report.style import score_label
from headroles.roles import in_words, is_contrast
from headroles.studies.role_answers import is_arc

if TYPE_CHECKING:
    import pandas as pd

    from headroles.studies.comparison import RoleShifts

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


def changed_most(frame: pd.DataFrame) -> list[str]:
    """Roles by how often heads gained or lost them, then changed: syntactic first, contrasts last.

    >>> import pandas as pd
    >>> changed_most(pd.DataFrame({"role": ["local", "syntactic"], "status": ["lost", "kept"],
    ...     "change": ["changed", "undecided"]}))
    ['syntactic', 'local']
    """
    happened = frame["status"].isin(["gained", "lost"]).groupby(frame["role"], sort=False).sum()
    changed = (frame["change"] == "changed").groupby(frame["role"], sort=False).sum()

    def place(role: str) -> tuple[bool, bool, int, int]:
        return is_contrast(role), not is_arc(role), -happened[role], -changed[role]

    return sorted(map(str, changed.index), key=place)


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
        is_contrast=is_contrast(role),
        arrow=(numbers("mean_before"), numbers("mean_after")),
    )
