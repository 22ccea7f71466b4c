"""Figures of attention between words, and of attention to tokens of each kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headroles.drawing.grids import MOST_LABELS, draw_grid
from headroles.drawing.style import (
    BRIGHT,
    DARK,
    THRESHOLD,
    figure_of,
    figure_width,
    font_scale,
    new_axes,
    plain,
    role_label,
)
from headroles.errors import UsageError
from headroles.wording import not_among

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from headroles.arrays import BoolArray, FloatArray
    from headroles.studies.inspection.attention import WordAttention
    from headroles.studies.inspection.token_groups import TokenGroups

LEAST = 0.1
"""Smaller attention has no arc."""
_GREY = "0.65"
_MANY = 48  # words, from which on they are written smaller
_LONGEST_WORD = 24
_DEPTH = 1.8  # inches that arcs take on either side of the words
_WIDEST_LINE = 4.0  # points, of an attention of 1


def draw_attention(attention: WordAttention, least: float = LEAST) -> Figure:
    """Draw arcs and matrix side by side, as `draw_arcs` and `draw_matrix` make them.

    The figure grows with the example: its words stay readable.

    With ``attention`` as `read_attention` returns it:

    >>> from headroles.report import draw_attention
    >>> len(draw_attention(attention[0]).axes)
    3
    """
    from headroles.drawing.own_figures import new_figure

    row, width = _row_height(attention), _label_width(attention)
    sizes = (width + 2 * _DEPTH, width + row * len(attention) + 1.2)
    height = row * len(attention) + width + 1.3
    figure = new_figure(sum(sizes), height, "constrained")
    left, right = figure.subplots(1, 2, width_ratios=sizes)
    draw_arcs(attention, least, ax=left)
    draw_matrix(attention, ax=right)
    return figure


def draw_arcs(attention: WordAttention, least: float = LEAST, ax: Axes | None = None) -> Axes:
    """Draw words below one another, and arcs from those that look to those looked at.

    An arc to the left leads to a word before, one to the right to a word after; a dot is a word
    that looks at itself. Arcs are as wide as the attention is large, dark where the role has them
    in its sieve, grey elsewhere; those below ``least`` are left out. Where the sieve has a key for
    each word at most, dotted arcs lead to those that get less.

    With ``attention`` as `read_attention` returns it:

    >>> from headroles.report import draw_arcs
    >>> len(draw_arcs(attention[0]).texts) == len(attention[0])
    True
    """
    height = _row_height(attention) * len(attention) + 1.4
    width = _label_width(attention)
    ax = new_axes(ax, width + 2 * _DEPTH, height)
    for place, label in enumerate(attention.labels):
        text = plain(label, _LONGEST_WORD)
        ax.text(0, place, text, ha="center", va="center", fontsize=_font_size(attention))
    is_large = attention.weights >= least
    is_missed = attention.sieve & ~is_large & (attention.sieve.sum(axis=1).max(initial=0) <= 1)
    arcs = (
        ("missed", is_missed, f"in the sieve, less than {least:g}", BRIGHT, "dotted"),
        ("elsewhere", is_large & ~attention.sieve, "elsewhere", _GREY, "solid"),
        ("sieve", is_large & attention.sieve, "in the sieve", DARK, "solid"),
    )
    for name, chosen, label, color, look in arcs:
        if chosen.any():
            _add_arcs(ax, attention, chosen, name, color, look)
            ax.plot([], [], color=color, linestyle=look, linewidth=2, label=label)
    edge = width / 2 + _DEPTH
    ax.set(xlim=(-edge, edge), ylim=(len(attention) - 0.5, -0.5))
    ax.set_axis_off()
    ax.set_title(f"{_title(attention)}\n<  to words before    |    to words after  >", fontsize=9)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0), fontsize="small", ncols=2)
    return ax


def draw_matrix(attention: WordAttention, ax: Axes | None = None) -> Axes:
    """Draw words that look as rows, words looked at as columns; lines go around the sieve.

    With ``attention`` as `read_attention` returns it:

    >>> from headroles.report import draw_matrix
    >>> draw_matrix(attention[0]).get_ylabel()
    'looks'
    """
    row, width = _row_height(attention), _label_width(attention)
    side = row * len(attention)
    ax = new_axes(ax, side + width + 1.2, side + width + 1.3)
    mesh = draw_grid(ax, attention.weights, "Greys")
    mesh.set_rasterized(len(attention) > _MANY)  # thousands of cells would make a large file
    _draw_border(ax, attention.sieve)
    names = [plain(label, _LONGEST_WORD) for label in attention.labels]
    places, size = range(len(attention)), _font_size(attention)
    ax.set_xticks(places, names, rotation=90, fontsize=size)
    ax.set_yticks(places, names, fontsize=size)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.xaxis.set_label_position("top")
    ax.set(xlabel="looked at (lines: the sieve)", ylabel="looks", aspect="equal")
    figure_of(ax).colorbar(mesh, ax=ax, label=_attention_label(attention), shrink=0.6, aspect=25)
    return ax


def _add_arcs(
    ax: Axes,
    attention: WordAttention,
    chosen: BoolArray,
    name: str,
    color: str,
    look: str,
) -> None:
    """Draw arcs of the ``chosen`` (U, U), dots where words look at themselves."""
    from matplotlib.collections import LineCollection

    queries, keys = np.nonzero(chosen)
    weights = attention.weights[queries, keys]
    widths = _WIDEST_LINE * weights if look == "solid" else np.ones(len(weights))
    apart = np.abs(keys - queries)
    depth = 0.2 + (_DEPTH - 0.3) * np.sqrt(apart / max(1, len(attention) - 1))
    edge = _widths(attention) / 2 + 0.05
    angle = np.linspace(0, np.pi, 40)
    way = (1 - np.cos(angle)) / 2  # from query to key
    x = (
        edge[queries] + np.outer(way, edge[keys] - edge[queries]) + np.outer(np.sin(angle), depth)
    ).T
    y = queries[:, None] + np.outer(keys - queries, way)
    lines = np.stack([np.where(keys > queries, 1, -1)[:, None] * x, y], axis=-1)
    other = apart > 0
    ax.add_collection(
        LineCollection(
            list(lines[other]), linewidths=widths[other], colors=color, linestyles=look, gid=name
        )
    )
    own = queries[~other]
    ax.scatter(-edge[own], own, s=30 * attention.weights[own, own], color=color)


def _draw_border(ax: Axes, chosen: BoolArray) -> None:
    """Draw lines around the cells that are ``chosen``, wherever they end."""
    from matplotlib.collections import LineCollection

    around = np.pad(chosen, 1)
    row, column = np.nonzero(around[1:-1, 1:] != around[1:-1, :-1])
    upright = np.stack([[column - 0.5, row - 0.5], [column - 0.5, row + 0.5]]).transpose(2, 0, 1)
    row, column = np.nonzero(around[1:, 1:-1] != around[:-1, 1:-1])
    level = np.stack([[column - 0.5, row - 0.5], [column + 0.5, row - 0.5]]).transpose(2, 0, 1)
    lines = list(np.concatenate([upright, level]))
    ax.add_collection(LineCollection(lines, colors=BRIGHT, linewidths=1.5))


def _title(attention: WordAttention) -> str:
    return (
        f"head {attention.layer}-{attention.head}, {role_label(attention.role)}: "
        f"{attention.score_name} score {attention.score:.3g}\n{plain(attention.example)}"
    )


def _attention_label(attention: WordAttention) -> str:
    return "attention" if attention.measure == "weights" else f"share of {attention.measure}"


def _row_height(attention: WordAttention) -> float:
    """Return the inches from one word to the next."""
    return 0.2 if len(attention) <= _MANY else 0.14


def _font_size(attention: WordAttention) -> float:
    return 8.5 if len(attention) <= _MANY else 6.5


def _label_width(attention: WordAttention) -> float:
    """Estimate the width of the widest word in inches."""
    return float(_widths(attention).max())


def _widths(attention: WordAttention) -> FloatArray:
    """Estimate the width (U,) of words in inches; some scripts have characters twice as wide."""
    from rich.cells import cell_len

    cells = [cell_len(plain(label, _LONGEST_WORD)) for label in attention.labels]
    return (0.2 + 0.08 * np.array(cells)) * _font_size(attention) / 8.5


_ALL = "all"  # the row of all layers together
_LOOKS: dict[str, dict[str, Any]] = {
    "weights": {"color": DARK, "marker": "o"},
    "norms": {"color": BRIGHT, "marker": "s", "linestyle": "dashed"},
}


def draw_token_group(groups: TokenGroups, group: str, ax: Axes | None = None) -> Axes:
    """Draw by layer the shares of weights and norms that the tokens of one group get.

    Bars are the intervals of the table; the dotted line is the share of the tokens that are of the
    group, as with uniform attention. Raises UsageError for an unknown group, and for a table
    without single layers.

    With ``groups`` as `measure_token_groups` returns them:

    >>> from headroles.report import draw_token_group
    >>> draw_token_group(groups, "separators").get_title()
    'separators'
    """
    known = list(groups.frame["group"].unique())
    if group not in known:
        raise UsageError(not_among("group", group, known))
    if not set(groups.frame["layer"]) - {_ALL}:
        raise UsageError("the table has no single layer to draw; include some")
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
    """Draw every group that some example has, each as `draw_token_group` does.

    Raises UsageError if there is none.

    With ``groups`` as `measure_token_groups` returns them:

    >>> from headroles.report import draw_token_groups
    >>> len(draw_token_groups(groups).axes)
    4
    """
    from headroles.drawing.own_figures import new_figure

    if not (names := groups.found):
        raise UsageError("no example has tokens of any group, so the figure would be empty")
    width = figure_width(3.2 * len(names))
    across = max(1, min(len(names), int(width / 1.6)))
    down = -(-len(names) // across)
    high = max(3 * font_scale(), 0.9 * width / across)
    figure = new_figure(width, high * down, "constrained")
    places = figure.subplots(down, across, sharey=True, squeeze=False).ravel()
    for ax in places[len(names) :]:
        ax.remove()
    for k, (ax, name) in enumerate(zip(places, names, strict=False)):
        draw_token_group(groups, name, ax)
        if k:
            ax.get_legend().remove()
        if k % across:
            ax.set_ylabel("")
    return figure
