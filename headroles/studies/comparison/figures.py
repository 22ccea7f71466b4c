"""Figures, map and page of a comparison."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from headroles.drawing.page import HeadMap, Page, Picture, plain_page
from headroles.drawing.style import (
    BRIGHT,
    DARK,
    THRESHOLD,
    draw_values,
    grid_of,
    legend_below,
    new_axes,
    plain,
    role_label,
    score_label,
    set_title,
)
from headroles.errors import UsageError
from headroles.roles import find_role
from headroles.studies.classification.figures import group_of
from headroles.wording import addressed, not_among

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headroles.studies.comparison.compare import RoleComparison

_NEITHER = "neither gained nor lost"
_LOOKS = {"gained": (DARK, "solid"), "lost": (BRIGHT, "dashed"), _NEITHER: ("0.6", "solid")}
LEGEND = {
    "gained": ("▲", "gained the role", "full"),
    "lost": ("▼", "lost the role", "full"),
    "changed": ("*", f"changed, {_NEITHER}", "full"),
    "kept": ("●", "kept the role, not shown to change beyond the margin", "pale"),
    "": ("", "not shown to change beyond the margin", "pale"),
}
"""Sign, meaning and look of what happened to a head, in the map of a page."""


def draw_changes(
    shifts: RoleComparison,
    role: str,
    checkpoint: str | None = None,
    most: int = 20,
    ax: Axes | None = None,
) -> Axes:
    """Draw for a role arrows from the mean before to the mean after, of heads that changed most.

    Dark arrows are heads that gained the role, bright broken ones heads that lost it, grey ones
    all others. Without ``checkpoint``, the last. Heads are in the order of the model.

    Raises UsageError for a role or checkpoint that was not compared, and where no head has means.

    With ``shifts`` as `compare_roles` returns them:

    >>> from headroles.report import draw_changes
    >>> draw_changes(shifts, "local").get_ylabel()
    'head'
    """
    role, rows = _rows(shifts, role)
    name = _checkpoint(shifts, checkpoint)
    rows = rows[rows["checkpoint"] == name]
    looks = rows["status"].where(rows["status"].isin(list(_LOOKS)), _NEITHER)
    order = rows["difference"].abs().where(looks == _NEITHER, np.inf)
    rows = rows.assign(look=looks).loc[order.nlargest(most).index].sort_values(["layer", "head"])
    ax = new_axes(ax, 6.5, 1.4 + 0.26 * len(rows))
    for look, heads in rows.assign(place=range(len(rows))).groupby("look", sort=False):
        color, line = _LOOKS[str(look)]
        arrow = {"arrowstyle": "->", "color": color, "linestyle": line, "shrinkA": 0}
        for row in heads.itertuples():
            after, before = (row.mean_after, row.place), (row.mean_before, row.place)
            ax.annotate("", xy=after, xytext=before, arrowprops=arrow)
        ax.plot(heads["mean_before"], heads["place"], "o", color=color, markersize=4, label=look)
        ax.plot(heads["mean_after"], heads["place"], " ", label="_after")  # so that arrows fit
    ax.axvline(float(rows["threshold"].median()), color=THRESHOLD, linestyle="dotted")
    ax.set_yticks(range(len(rows)), [f"{row.layer}-{row.head}" for row in rows.itertuples()])
    ax.set(ylim=(len(rows) - 0.5, -0.5), ylabel="head", xlabel=score_label(shifts.facts["score"]))
    set_title(ax, f"{role_label(shifts, role)}\nfrom before (point) to {plain(name)} (arrow)")
    ax.margins(x=0.05)
    legend_below(ax)
    return ax


def draw_trajectory(
    shifts: RoleComparison, role: str, most: int = 8, ax: Axes | None = None
) -> Axes:
    """Draw means of a role over the checkpoints, of heads that moved most.

    Raises UsageError for a role that was not compared, and where no head has means.

    With ``shifts`` as `compare_roles` returns them:

    >>> from headroles.report import draw_trajectory
    >>> len(draw_trajectory(shifts, "local").figure.legends[0].get_texts())
    2
    """
    role, rows = _rows(shifts, role)
    moved = rows.assign(moved=rows["difference"].abs()).groupby(["layer", "head"])["moved"].max()
    names = ["before", *shifts.checkpoints]
    ax = new_axes(ax, 6.5, 3.8)
    for k, (layer, head) in enumerate(moved.nlargest(most).index):
        of_head = rows[(rows["layer"] == layer) & (rows["head"] == head)].set_index("checkpoint")
        means = [of_head["mean_before"].iloc[0], *of_head["mean_after"].reindex(names[1:])]
        marker, shade = "osD^v<>P"[k % 8], str(0.75 * k / max(1, most))
        ax.plot(range(len(names)), means, marker=marker, color=shade, label=f"{layer}-{head}")
    ax.axhline(float(rows["threshold"].median()), color=THRESHOLD, linestyle="dotted")
    ax.set_xticks(range(len(names)), [plain(name) for name in names])
    ax.set(ylabel=score_label(shifts.facts["score"]), title=role_label(shifts, role))
    legend_below(ax, "head")
    return ax


def _rows(shifts: RoleComparison, role: str) -> tuple[str, pd.DataFrame]:
    """Return the id of a role, and its rows with means."""
    role = find_role(role, shifts.known_roles(shifts.roles))
    rows = shifts.frame[(shifts.frame["role"] == role) & shifts.frame["difference"].notna()]
    if not len(rows):
        raise UsageError(f"no head has means of {role} before and after")
    return role, rows


def draw_changed_heads(
    shifts: RoleComparison, checkpoint: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw layers x heads: how many means of roles changed, as number and as colour.

    Without ``checkpoint``, the last. Raises UsageError for one that was not compared.

    With ``shifts`` as `compare_roles` returns them:

    >>> from headroles.report import draw_changed_heads
    >>> draw_changed_heads(shifts).get_title()
    'means that changed, before to after'
    """
    name, rows = _checkpoint(shifts, checkpoint), shifts.rows_counted_once()
    rows = rows[rows["checkpoint"] == name]
    changed = rows["changed"].astype(float).groupby([rows["layer"], rows["head"]]).sum()
    title = f"means that changed, before to {plain(name)}"
    counts = grid_of(shifts.frame, changed)
    return draw_values(ax, counts, title, "means of roles that changed", counts)


def _checkpoint(shifts: RoleComparison, name: str | None) -> str:
    name = shifts.checkpoints[-1] if name is None else name
    if name not in shifts.checkpoints:
        raise UsageError(not_among("checkpoint", name, shifts.checkpoints))
    return name


def comparison_map(shifts: RoleComparison) -> HeadMap:
    """Return the map of a comparison, the role that changed most first."""
    frame, several = shifts.frame, len(shifts.checkpoints) > 1
    frame = pd.concat(
        rows[rows["role"] == role]
        for _, rows in frame.groupby("checkpoint", sort=False)
        for role in shifts.changed_most(rows)
    )
    to = ", to " + frame["checkpoint"] if several else ""
    is_changed = frame["changed"] & ~frame["status"].isin(["gained", "lost"])
    happened = frame["status"].mask(is_changed, "changed")
    frame = frame.assign(
        view=frame["role"] + to,
        words=frame["role"].map(partial(role_label, shifts)) + to,
        group="to " + frame["checkpoint"]
        if several
        else frame["role"].map(partial(group_of, shifts)),
        unit=f"difference of {score_label(shifts.facts['score'])}",
        line=frame.groupby("role")["threshold"].transform("median"),
        value=frame["difference"],
        mark=[LEGEND.get(what, ("",))[0] for what in happened],
    )
    facts = {
        "interval": ("ci_low", "ci_high"),
        "before": ("mean_before",),
        "after": ("mean_after",),
        "change": ("change",),
        "role": ("status",),
        "certified": ("certified",),
    }
    title = "Differences of mean scores after and before: layers are rows, heads are columns"
    return HeadMap(title, "difference", frame, facts, tuple(LEGEND.values()))


def comparison_page(shifts: RoleComparison, pictures: tuple[Picture, ...]) -> Page:
    """Make the page of a comparison: what changed, between which models, a map, and pictures."""
    models, *changes = (part for part in shifts.shown if isinstance(part, str))
    answer = (*map(addressed, changes), addressed(models))
    return plain_page(shifts, shifts.question, pictures, comparison_map(shifts), answer)
