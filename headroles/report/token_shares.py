"""What goes to tokens of each kind, layer by layer: by weights and by norms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headroles.errors import UsageError
from headroles.report.maps import MOST_LABELS
from headroles.report.style import BRIGHT, DARK, THRESHOLD, new_axes
from headroles.wording import not_among

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from headroles.studies import TokenGroups

_ALL = "all"  # the row of all layers together
_LOOKS: dict[str, dict[str, Any]] = {
    "weights": {"color": DARK, "marker": "o"},
    "norms": {"color": BRIGHT, "marker": "s", "linestyle": "dashed"},
}


def draw_token_group(groups: TokenGroups, group: str, ax: Axes | None = None) -> Axes:
    """Layer by layer, the shares of weights and of norms that go to the tokens of one group.

    Bars are the intervals of the table; the dotted line is the share of the tokens that are of the
    group, which uniform attention would give it. Raises UsageError for a group that there is not,
    and where all layers were left out.
    """
    known = list(groups.frame["group"].unique())
    if group not in known:
        raise UsageError(not_among("group", group, known))
    if not set(groups.frame["layer"]) - {_ALL}:
        raise UsageError("all single layers were left out; there is nothing to draw")
    rows = groups.frame[groups.frame["group"] == group].set_index(["quantity", "layer"])
    ax = new_axes(ax, 4, 3)
    for name, look in _LOOKS.items():
        own = rows.loc[name].drop(_ALL, errors="ignore")
        layers, mean = own.index.astype(int), own["mean"]
        ax.plot(layers, mean, label=name, markersize=4, **look)
        ax.vlines(layers, own["ci_low"], own["ci_high"], color=look["color"])
    uniform = float(rows["mean"].loc["tokens"].iloc[-1])
    ax.axhline(uniform, color=THRESHOLD, linestyle="dotted", label="share of the tokens")
    ax.set_xticks(layers[:: -(-len(layers) // MOST_LABELS)])
    ax.set(ylim=(0, 1), xlabel="layer", ylabel="share")
    ax.set_title(group, fontsize=10)
    ax.legend(fontsize="small")
    return ax


def draw_token_groups(groups: TokenGroups) -> Figure:
    """Every group that some example has, beside the others, each as `draw_token_group` draws it.

    Raises UsageError if there is none.
    """
    from headroles.report.shown_figures import new_figure

    if not (names := groups.found):
        raise UsageError("no example has tokens of any group; there is nothing to draw")
    figure = new_figure(3.2 * len(names), 3, "constrained")
    places = figure.subplots(1, len(names), sharey=True, squeeze=False).ravel()
    for k, (ax, name) in enumerate(zip(places, names, strict=True)):
        draw_token_group(groups, name, ax)
        if k:
            ax.get_legend().remove()
            ax.set_ylabel("")
    return figure
