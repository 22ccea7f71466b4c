"""What is lost without heads: order by order as more of them go, and task by task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headroles.errors import UsageError
from headroles.report.maps import centre_scale, draw_grid
from headroles.report.style import DIVERGING, THRESHOLD, line_looks, new_axes, plain
from headroles.wording import not_among

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from headroles.studies.removal import PruningCurves, TaskDrops


def draw_pruning_curves(
    curves: PruningCurves, measure: str | None = None, ax: Axes | None = None
) -> Axes:
    """What a model reaches without a share of its heads: a line with its band for each order.

    Bands are the intervals of the table; the dotted line is the whole model. Without ``measure``,
    the first metric of the task, or the loss. Raises UsageError for a measure that the table does
    not have.
    """
    measure = known_measure(measure or curves.measure, list(curves.frame["measure"].unique()))
    rows = curves.frame[(curves.frame["measure"] == measure) & curves.frame["share"].notna()]
    ax = new_axes(ax, 6.5, 4)
    for look, (order, own) in zip(line_looks(), rows.groupby("order", sort=False), strict=False):
        ax.plot(own["share"], own["value"], label=plain(order), **look)
        ax.fill_between(
            own["share"],
            own["ci_low"],
            own["ci_high"],
            color=look["color"],
            alpha=0.15,
            linewidth=0,
        )
    whole = curves.curves.whole[measure]
    ax.axhline(whole, color=THRESHOLD, linestyle="dotted", label="whole model")
    ax.set_xticks(shares := sorted(rows["share"].unique()), [f"{share:.0%}" for share in shares])
    ax.set(xlabel="heads removed", ylabel=f"{measure} without them")
    ax.legend(fontsize="small", title="order of removing")
    return ax


def draw_task_drops(drops: TaskDrops, measure: str | None = None, ax: Axes | None = None) -> Axes:
    """Removals x tasks: the relative drop, as colour and number, with the marks of the table.

    ``*`` differs from 0; ``>`` matters more, ``<`` less than in the other tasks. Without
    ``measure``, the one that the table is shown by. Of many removals those with the largest drops
    are drawn. Raises UsageError for a measure that the tasks do not have.
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
    ax.set_yticks(range(len(removals)), [plain(name) for name in removals])
    ax.set_title(f"what is lost without, by {measure}", fontsize=10)
    return ax


def known_measure(measure: str, known: Sequence[str]) -> str:
    if measure not in known:
        raise UsageError(not_among("measure", measure, known))
    return measure
