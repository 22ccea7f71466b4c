"""Figures of the importance of heads to a task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headroles.drawing.grids import centre_scale, draw_grid, ink_on
from headroles.drawing.style import (
    DARK,
    DIVERGING,
    THRESHOLD,
    legend_below,
    new_axes,
    plain,
    role_label,
)
from headroles.errors import UsageError
from headroles.studies.importance.importance import USES
from headroles.testing.answers import UNDECIDED
from headroles.wording import not_among

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from headroles.arrays import FloatArray
    from headroles.studies.importance.ablation import Ablations
    from headroles.studies.importance.by_role import RoleImportance
    from headroles.studies.importance.by_task import TaskDrops
    from headroles.studies.importance.importance import Importance

STRONGEST = 10
"""Number of heads whose rank a map of importance shows."""
_MARKS = {"worse": "o", "better": "v"}


def draw_importance(
    importance: Importance, estimator: str = "absolute", ax: Axes | None = None
) -> Axes:
    """Draw layers x heads: the importance of each head, with the ranks of the most important.

    Raises UsageError for an estimator that the table does not have.

    With ``importance`` as `find_importance` returns it:

    >>> from headroles.report import draw_importance
    >>> draw_importance(importance, "taylor").get_ylabel()
    'layer'
    """
    known = list(dict.fromkeys(importance.frame["estimator"]))
    if estimator not in known:
        raise UsageError(not_among("estimator", estimator, known))
    values, ranks = importance.of(estimator), importance.of(estimator, "rank")
    ax = _map_of(values, f"importance ({estimator}, {USES[estimator][1]})", ax)
    low, high = min(0.0, np.nanmin(values)), np.nanmax(values)
    for layer, head in np.argwhere(ranks <= STRONGEST):
        ink = ink_on(values[layer, head], low, high)
        place: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7, "color": ink}
        ax.text(head, layer, f"{ranks[layer, head]:.0f}", **place)
    ax.set_title(f"importance of heads\nnumbers: the {STRONGEST} most important", fontsize=10)
    return ax


def draw_ablations(ablations: Ablations, ax: Axes | None = None) -> Axes:
    """Draw layers x heads: the change of the loss without each head alone.

    A circle is a head without which the loss is shown to be worse, a triangle a head without which
    it is shown to be better. Raises UsageError for ablations of no single heads.

    With ``ablations`` as `ablate_heads` returns them:

    >>> from headroles.report import draw_ablations
    >>> draw_ablations(ablations).get_title()
    'loss without each head'
    """
    rows = ablations.frame[ablations.frame["set"] == "single"]
    if not len(rows):
        raise UsageError("no head was removed by itself; the map needs the set single")
    changes = ablations.rises()
    ax = _map_of(changes, "change of the loss (nats)", ax, is_signed=True)
    look: dict[str, Any] = {"facecolor": "white", "edgecolor": "black", "linewidth": 0.8, "s": 30}
    for answer, marker in _MARKS.items():
        own = rows[rows["answer"] == answer]
        if len(own):
            ax.scatter(own["head"], own["layer"], label=answer, marker=marker, **look)
    ax.set_title("loss without each head", fontsize=10)
    if ax.get_legend_handles_labels()[0]:
        legend_below(ax, facecolor="0.75")
    return ax


def draw_role_importance(result: RoleImportance, ax: Axes | None = None) -> Axes:
    """Draw for each role the loss without its heads, less the mean of random sets as large.

    Lines hold the middle of the random sets; points are full for roles whose p-value, after
    correction, is at most alpha.

    With ``found`` as `compare_roles_in_task` returns it:

    >>> from headroles.report import draw_role_importance
    >>> len(draw_role_importance(found).get_yticklabels())
    2
    """
    frame = result.frame
    ax = new_axes(ax, 7, 1.3 + 0.26 * len(frame))
    places = np.arange(len(frame))
    is_found = (frame["answer"] != UNDECIDED).to_numpy()
    low, high = (frame[name] - frame["drawn_loss"] for name in ("drawn_low", "drawn_high"))
    ax.hlines(places, low, high, color="0.5", label="random sets of heads")
    look: dict[str, Any] = {"markeredgecolor": DARK, "marker": "o", "linestyle": "none"}
    for chosen, color, label in (
        (is_found, DARK, "significant"),
        (~is_found, "white", "not significant"),
    ):
        if chosen.any():
            differences = frame["removed_difference"][chosen]
            ax.plot(differences, places[chosen], color=color, label=label, **look)
    ax.axvline(0, color=THRESHOLD, linestyle="dotted")
    names = [f"{role_label(str(row.role))} ({row.heads} heads)" for row in frame.itertuples()]
    ax.set_yticks(places, names)
    ax.set(ylim=(len(frame) - 0.5, -0.5))
    ax.set_xlabel("loss without its heads, minus loss\nwithout as many random heads (nats)")
    legend_below(ax)
    return ax


def _map_of(values: FloatArray, label: str, ax: Axes | None, is_signed: bool = False) -> Axes:
    """Draw values of layers x heads with their scale, which has 0 in its middle if signed."""
    layers, heads = values.shape
    ax = new_axes(ax, max(4.5, 2.2 + 0.42 * heads), 1.5 + 0.36 * layers)
    mesh = draw_grid(ax, values, DIVERGING) if is_signed else draw_grid(ax, values)
    if is_signed:
        centre_scale(mesh, values)
    ax.figure.colorbar(mesh, ax=ax, label=label)
    ax.set(xlabel="head", ylabel="layer")
    return ax


def draw_task_drops(drops: TaskDrops, measure: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw removals x tasks: the relative drop, as colour and number, with the marks of the table.

    ``*`` differs from 0; ``>`` matters more, ``<`` less than in the other tasks. ``measure`` is by
    default the measure of the summary. Of many removals the largest drops are drawn. Raises
    UsageError for a measure that the tasks do not have.

    With ``drops`` as `compare_tasks` returns them:

    >>> from headroles.report import draw_task_drops
    >>> draw_task_drops(drops, "loss").get_title()
    'relative drop without heads, by loss'
    """
    from matplotlib.ticker import PercentFormatter

    measure = known_measure(measure or drops.measure, drops.measures)
    removals, names = drops.largest(measure), drops.tasks
    rows = drops.frame[drops.frame["measure"] == measure]
    cells = rows.set_index(["removed", "task"]).to_dict("index")
    found = [[cells[removed, name] for name in names] for removed in removals]
    values = np.array([[cell["relative_drop"] for cell in row] for row in found])
    ax = new_axes(ax, 3 + 0.9 * len(names), 1.3 + 0.28 * len(removals))
    mesh = draw_grid(ax, values, DIVERGING)
    reach = centre_scale(mesh, values)
    bar = ax.figure.colorbar(mesh, ax=ax, label="relative drop")
    bar.formatter = PercentFormatter(1)
    for (row, column), value in np.ndenumerate(values):
        ink = "white" if abs(value) > 0.6 * reach else "black"
        text = f"{value:+.1%}{drops.marks(found[row][column])}"
        ax.text(column, row, text, ha="center", va="center", fontsize=7, color=ink)
    ax.set_xticks(range(len(names)), [plain(name, 16) for name in names])
    ax.set_yticks(range(len(removals)), [role_label(name) for name in removals])
    ax.set_title(f"relative drop without heads, by {measure}", fontsize=10)
    return ax


def known_measure(measure: str, known: Sequence[str]) -> str:
    """Return ``measure``. Raises UsageError unless it is known."""
    if measure not in known:
        raise UsageError(not_among("measure", measure, known))
    return measure
