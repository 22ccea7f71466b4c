"""Pictures of the attention of a head in an example: arcs between its words, and the matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headroles.arrays import BoolArray, FloatArray
from headroles.drawing.style import BRIGHT, DARK, draw_grid, figure_of, new_axes, plain, role_label
from headroles.models.options import WEIGHTS
from headroles.studies.inspection.attention import WordAttention

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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

    labels = _labels_of(attention)
    side, width = labels.side, labels.widest
    sizes = (width + 2 * _DEPTH, width + side + 1.2)
    figure = new_figure(sum(sizes), side + width + 1.3)
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
    labels = _labels_of(attention)
    ax = new_axes(ax, labels.widest + 2 * _DEPTH, labels.side + 1.4)
    for place, text in enumerate(labels.texts):
        ax.text(0, place, text, ha="center", va="center", fontsize=labels.size)
    is_large = attention.weights >= least
    is_missed = attention.sieve & ~is_large & (attention.sieve.sum(axis=1).max(initial=0) <= 1)
    arcs = (
        ("missed", is_missed, f"in the sieve, less than {least:g}", BRIGHT, "dotted"),
        ("elsewhere", is_large & ~attention.sieve, "elsewhere", _GREY, "solid"),
        ("sieve", is_large & attention.sieve, "in the sieve", DARK, "solid"),
    )
    for name, chosen, label, color, look in arcs:
        if chosen.any():
            _add_arcs(ax, attention, chosen, gid=name, colors=color, linestyles=look)
            ax.plot([], [], color=color, linestyle=look, linewidth=2, label=label)
    edge = labels.widest / 2 + _DEPTH
    ax.set(xlim=(-edge, edge), ylim=(len(attention) - 0.5, -0.5))
    ax.set_axis_off()
    title = (
        f"head {attention.layer}-{attention.head}, {role_label(attention.role)}: "
        f"{attention.score_name} score {attention.score:.3g}\n{plain(attention.example)}"
    )
    ax.set_title(f"{title}\n<  to words before    |    to words after  >", fontsize=9)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0), fontsize="small", ncols=2)
    return ax


def draw_matrix(attention: WordAttention, ax: Axes | None = None) -> Axes:
    """Draw words that look as rows, words looked at as columns; lines go around the sieve.

    With ``attention`` as `read_attention` returns it:

    >>> from headroles.report import draw_matrix
    >>> draw_matrix(attention[0]).get_ylabel()
    'looks'
    """
    labels = _labels_of(attention)
    width = labels.side + labels.widest
    ax = new_axes(ax, width + 1.2, width + 1.3)
    mesh = draw_grid(ax, attention.weights, "Greys")
    mesh.set_rasterized(len(attention) > _MANY)  # thousands of cells would make a large file
    _draw_border(ax, attention.sieve)
    ax.set_xticks(range(len(attention)), labels.texts, rotation=90, fontsize=labels.size)
    ax.set_yticks(range(len(attention)), labels.texts, fontsize=labels.size)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.xaxis.set_label_position("top")
    ax.set(xlabel="looked at (lines: the sieve)", ylabel="looks", aspect="equal")
    label = "attention" if attention.measure == WEIGHTS else f"share of {attention.measure}"
    figure_of(ax).colorbar(mesh, ax=ax, label=label, shrink=0.6, aspect=25)
    return ax


def _add_arcs(ax: Axes, attention: WordAttention, chosen: BoolArray, **look: Any) -> None:
    """Draw arcs of the ``chosen`` (U, U), dots where words look at themselves."""
    from matplotlib.collections import LineCollection

    queries, keys = np.nonzero(chosen)
    weights = attention.weights[queries, keys]
    widths = _WIDEST_LINE * weights if look["linestyles"] == "solid" else np.ones(len(weights))
    apart = np.abs(keys - queries)
    depth = 0.2 + (_DEPTH - 0.3) * np.sqrt(apart / max(1, len(attention) - 1))
    edge = _labels_of(attention).widths / 2 + 0.05
    angle = np.linspace(0, np.pi, 40)
    way = (1 - np.cos(angle)) / 2  # from query to key
    out = edge[queries] + np.outer(way, edge[keys] - edge[queries])
    x = (out + np.outer(np.sin(angle), depth)).T
    y = queries[:, None] + np.outer(keys - queries, way)
    lines = np.stack([np.where(keys > queries, 1, -1)[:, None] * x, y], axis=-1)
    other = apart > 0
    ax.add_collection(LineCollection(list(lines[other]), linewidths=widths[other], **look))
    itself = queries[~other]
    ax.scatter(-edge[itself], itself, s=30 * weights[~other], color=look["colors"])


def _draw_border(ax: Axes, chosen: BoolArray) -> None:
    """Draw lines around the cells that are ``chosen``, wherever they end."""
    from matplotlib.collections import LineCollection

    around, lines = np.pad(chosen, 1), []
    sides = ((0, 1), np.diff(around)[1:-1]), ((1, 0), np.diff(around, axis=0)[:, 1:-1])
    for step, changes in sides:
        start = np.argwhere(changes)[:, ::-1] - 0.5
        lines += list(np.stack([start, start + step], axis=1))
    ax.add_collection(LineCollection(lines, colors=BRIGHT, linewidths=1.5))


class _Labels(NamedTuple):
    """Texts of the words, the ``size`` of their font, and inches: of words, and of all rows."""

    texts: list[str]
    size: float
    widths: FloatArray
    side: float

    @property
    def widest(self) -> float:
        """The width of the longest word."""
        return float(self.widths.max())


def _labels_of(attention: WordAttention) -> _Labels:
    """Estimate the places that words take; some scripts have characters twice as wide."""
    from rich.cells import cell_len

    size, row = (8.5, 0.2) if len(attention) <= _MANY else (6.5, 0.14)
    texts = [plain(label, _LONGEST_WORD) for label in attention.labels]
    widths = (0.2 + 0.08 * np.array(list(map(cell_len, texts)))) * size / 8.5
    return _Labels(texts, size, widths, row * len(attention))
