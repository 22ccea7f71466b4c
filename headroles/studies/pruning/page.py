"""Figure and page of pruning curves."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headroles.drawing.page import Page
from headroles.drawing.plain_page import plain_page
from headroles.drawing.style import THRESHOLD, line_looks, new_axes, plain
from headroles.studies.importance.figures import known_measure
from headroles.studies.importance.page import by_measure
from headroles.studies.pruning.curves import PruningCurves

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_pruning_curves(
    curves: PruningCurves, measure: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the measure without a share of the heads: a line with its band for each order.

    Bands are the intervals of the table; the dotted line is the whole model. ``measure`` is by
    default the first metric of the task, or the loss. Raises UsageError for a measure that the
    table does not have.

    With ``curves`` as `find_pruning_curves` returns them:

    >>> from headroles.report import draw_pruning_curves
    >>> draw_pruning_curves(curves, "loss").get_xlabel()
    'heads removed'
    """
    measure = known_measure(measure or curves.measure, list(curves.frame["measure"].unique()))
    rows = curves.frame[(curves.frame["measure"] == measure) & curves.frame["share"].notna()]
    ax = new_axes(ax, 6.5, 4)
    for look, (order, own) in zip(line_looks(), rows.groupby("order", sort=False), strict=False):
        ax.plot(own["share"], own["value"], label=plain(order), **look)
        band = {"color": look["color"], "alpha": 0.15, "linewidth": 0}
        ax.fill_between(own["share"], own["ci_low"], own["ci_high"], **band)
    whole = curves.curves.whole[measure]
    ax.axhline(whole, color=THRESHOLD, linestyle="dotted", label="whole model")
    ax.set_xticks(shares := sorted(rows["share"].unique()), [f"{share:.0%}" for share in shares])
    ax.set(xlabel="heads removed", ylabel=f"{measure} without them")
    ax.legend(fontsize="small", title="order of removing")
    return ax


def curves_page(result: PruningCurves) -> Page:
    """Make the page of pruning curves."""
    caption = (
        "value without a share of the heads, by order of removal, with intervals; the dotted line "
        "is the whole model."
    )
    pictures = by_measure(partial(draw_pruning_curves, result), result.measure, caption)
    title = f"How many attention heads can {result.record.model.name} do without?"
    return plain_page(result, title, pictures)
