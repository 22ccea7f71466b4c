"""Figures of word alignments: error rates of all heads, and sentences with their links."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headroles.drawing.style import (
    BRIGHT,
    DARK,
    draw_grid,
    legend_below,
    plain,
    several_axes,
    sizes_in,
    write_numbers,
)
from headroles.errors import UsageError
from headroles.models.options import MEASURES
from headroles.studies.alignment.evidence import WHOLE_LAYER

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from headroles.studies.alignment.align import DrawnPair, WordAlignment

_GREY = "0.65"
_LOOKS = {
    "right": (DARK, "solid"),
    "wrong": (BRIGHT, "solid"),
    "missed": (_GREY, "dotted"),
    "link": (DARK, "solid"),
}
"""Colour and line of a link that the bitext has too, of others, and of those not found; of a bitext
without an alignment all are alike."""


def draw_error_rates(alignment: WordAlignment) -> Figure:
    """Draw the alignment error rate of every head in percent, by weights and by norms.

    Darker cells have fewer errors; the last column has whole layers. Raises UsageError without an
    alignment to count errors by.

    With ``alignment`` as `align_words` returns it:

    >>> from headroles.report import draw_error_rates
    >>> [ax.get_title() for ax in draw_error_rates(alignment).axes]
    ['errors in % by weights', 'errors in % by norms']
    """
    if not alignment.has_errors:
        raise UsageError("the bitext has no alignment, so there are no error rates to draw")
    frame = alignment.frame
    present = [measure for measure in MEASURES if measure in set(frame["measure"])]
    shape = max(0.45, min(1.2, np.divide(*sizes_in(frame))))
    figure, axes = several_axes(len(present), 4.2, len(present), shape, sharey=True)
    for ax, measure in zip(axes, present, strict=True):
        rates = frame[frame["measure"] == measure].set_index(["layer", "head"])["aer"].unstack()
        numbers: list[int] = rates.columns.to_numpy(dtype=np.int64).tolist()
        heads = sorted(numbers, key=lambda head: (head == WHOLE_LAYER, head))
        values = 100 * rates[heads].to_numpy()
        mesh = draw_grid(ax, 100 - values)
        write_numbers(ax, mesh, values)
        names = ["all" if head == WHOLE_LAYER else str(head) for head in heads]
        ax.set_xticks(range(len(heads)), names)
        ax.set_yticks(range(len(rates)), rates.index)
        ax.set(title=f"errors in % by {measure}", xlabel="head")
    axes[0].set_ylabel("layer")
    return figure


def draw_links(alignment: WordAlignment) -> Figure:
    """Draw pairs of sentences with the links of their words, the source on the left.

    Dark links are those of the bitext, bright ones are others, and dotted grey ones are sure links
    that were not found. Without an alignment all links are dark. Raises UsageError without pairs.

    With ``alignment`` as `align_words` returns it:

    >>> from headroles.report import draw_links
    >>> len(draw_links(alignment).axes)
    2
    """
    if not (pairs := alignment.facts["drawn"]):
        raise UsageError("the results have no pair of sentences to draw")
    n_words = max(len(words) for pair in pairs for words in (pair.source, pair.target))
    figure, axes = several_axes(len(pairs), 4.2, len(pairs), 0.07 * n_words + 0.1, least=2.5)
    keys: dict[str, Artist] = {}
    for ax, pair in zip(axes, pairs, strict=True):
        keys |= _draw_pair(ax, pair, n_words)
    if len(keys) > 1:
        legend_below(axes[0], keys=keys)
    return figure


def _draw_pair(ax: Axes, pair: DrawnPair, n_words: int) -> dict[str, Artist]:
    """Draw the words of a pair and lines between them; return a line of each look."""
    for side, words, align in ((0, pair.source, "right"), (1, pair.target, "left")):
        for place, word in enumerate(words):
            ax.text(side, place, plain(word, 24), ha=align, va="center", fontsize="small")
    keys: dict[str, Artist] = {}
    for name, (source, target) in _links_by_look(pair):
        color, line = _LOOKS[name]
        (keys[name],) = ax.plot([0.03, 0.97], [source, target], color=color, linestyle=line)
    ax.set(xlim=(-1.1, 2.1), ylim=(n_words - 0.5, -0.5), title=plain(pair.id))
    ax.set_axis_off()
    return keys


def _links_by_look(pair: DrawnPair) -> list[tuple[str, tuple[int, int]]]:
    """Return the links of a pair, those that were not found first, with their looks."""
    links, sure = pair.links, pair.sure
    gold = {*sure, *pair.possible}
    if not gold:
        return [("link", link) for link in links]
    missed = [("missed", link) for link in sure if link not in set(links)]
    return missed + [("right" if link in gold else "wrong", link) for link in links]
