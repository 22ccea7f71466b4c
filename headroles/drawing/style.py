"""The kit of all figures: colours, sizes and labels, grids of heads."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headroles.arrays import FloatArray
from headroles.errors import UsageError
from headroles.head_rows import HeadRows
from headroles.wording import printable, shortened

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

    from headroles.results.result import AnyResult

SCALE = "Blues"
"""From white to one hue, whose lightness falls evenly: for the colour-blind, and in grey print."""
_DIVERGING = "PuOr_r"
"""For values with signs: both ends are dark, and colour-blind readers can distinguish them."""
_MISSING = "0.9"
DARK, BRIGHT = "#1b3a5f", "#c98a00"
"""Two colours that differ in lightness as well as in hue."""
THRESHOLD = "0.35"
MOST_LABELS = 16
"""Numbers of heads or layers that stand beside a map."""
_LONGEST_ROLE, _LONGEST_WORDS = 48, 80
_LINES = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
# Colour-blind readers can distinguish the colours (Okabe and Ito 2008), grey print the forms.
_FORMS = "osD^vPX<>"
_SMALLEST_FONT, _USUAL_FONT = 7.0, 10.0
_asked_width: ContextVar[float | None] = ContextVar("headroles_width", default=None)


@contextmanager
def of_width(width: float | None) -> Iterator[None]:
    """Make figures in this context so many inches wide, in letters that fit.

    Letters shrink to 7 points at most; a figure that shrinks more keeps more of its height.
    """
    import matplotlib as mpl

    token = _asked_width.set(width)
    size = min(_USUAL_FONT, max(_SMALLEST_FONT, 1.45 * (width or _USUAL_FONT)))
    try:
        with mpl.rc_context({"font.size": size}):
            yield
    finally:
        _asked_width.reset(token)


def figure_width(width: float) -> float:
    """Return the width in inches that was asked for, else ``width``."""
    return _asked_width.get() or width


def font_scale() -> float:
    """Return the size of letters as a share of the usual one."""
    import matplotlib as mpl

    return float(mpl.rcParams["font.size"]) / _USUAL_FONT


def new_axes(ax: Axes | None, width: float, height: float) -> Axes:
    """Return ``ax``, or the axes of a new figure of so many inches, or as wide as asked for."""
    if ax is not None:
        return ax
    from headroles.drawing.own_figures import ShownAxes, new_figure

    share = figure_width(width) / width
    high = min(1.0, max(share, font_scale()))
    return new_figure(share * width, high * height).add_subplot(axes_class=ShownAxes)


def several_axes(
    n: int, width: float, across: int, shape: float, least: float = 1.6, **shared: Any
) -> tuple[Figure, list[Axes]]:
    """Make a figure of ``n`` axes in rows of ``across``, fewer where a narrow figure is asked for.

    Each is ``width`` inches wide, not less than ``least``, and ``shape`` times as high, with half
    an inch for its title and labels.
    """
    from headroles.drawing.own_figures import new_figure

    across = min(n, across)
    whole = figure_width(width * across)
    across = max(1, min(across, int(whole / least)))
    down = -(-n // across)
    figure = new_figure(whole, down * (shape * whole / across + 0.5) + 0.4)
    axes = figure.subplots(down, across, squeeze=False, **shared).ravel().tolist()
    for ax in axes[n:]:
        ax.remove()
    return figure, axes[:n]


def legend_below(
    ax: Axes, title: str | None = None, keys: Mapping[str, Artist] | None = None
) -> None:
    """Draw a legend: below all axes of a figure of their own, in as many columns as it is wide.

    In another figure it stands at the best free place of ``ax``, whose ``keys`` it has by default.
    """
    from headroles.drawing.own_figures import ShownFigure

    drawn = ax.get_legend_handles_labels()
    handles, labels = ([*keys.values()], [*keys]) if keys else drawn
    look: dict[str, Any] = {"fontsize": "small", "title": title}
    if not isinstance(figure := figure_of(ax), ShownFigure):
        if labels:
            ax.legend(handles, labels, **look)
        return
    for columns in range(len(labels), 0, -1):
        for legend in figure.legends:
            legend.remove()
        legend = figure.legend(handles, labels, ncols=columns, loc="outside lower center", **look)
        if legend.get_window_extent().width < figure.bbox.width:
            return


def set_title(ax: Axes, text: str, size: float = 1.2) -> None:
    """Put a title above axes, in lines that are as long as the axes are wide.

    ``size`` is that of its letters, as a share of the usual size of the figure.
    """
    points = size * font_scale() * _USUAL_FONT
    inches = ax.get_position().width * figure_of(ax).get_size_inches()[0]
    lines = (textwrap.wrap(line, int(72 * inches / (points / 2))) for line in text.split("\n"))
    ax.set_title("\n".join(part for line in lines for part in line), fontsize=points)


def line_looks() -> Iterator[dict[str, Any]]:
    """Yield looks of lines without end, which differ in colour and marker."""
    for color, marker in zip(cycle(_LINES), cycle(_FORMS), strict=False):
        yield {"color": color, "marker": marker, "markersize": 5}


def figure_of(drawn: Figure | Axes) -> Figure:
    """Return a figure, or the whole one that axes are part of."""
    from matplotlib.figure import Figure

    figure = drawn.get_figure(root=True)
    assert isinstance(figure, Figure)
    return figure


def plain(text: object, most: int = _LONGEST_ROLE) -> str:
    """Return text for a label: shortened, and without formulas even if it has dollar signs."""
    return shortened(printable(text), most).replace("$", r"\$")


def role_label(result: AnyResult, role: object) -> str:
    """Return a role of a result in words for a label."""
    return words_label(result.in_words(role))


def words_label(words: str) -> str:
    """Return the words of a role for a label."""
    return plain(words.replace("->", "\u2192").replace("<-", "\u2190"), _LONGEST_WORDS)


def score_label(score: str) -> str:
    """Return the label of the axis of means."""
    names = {"bias": "mean (times uniform)", "hit": "share of first choices"}
    return names.get(score, f"mean {score} score")


# Grids of cells, layers x heads.


def sizes_in(frame: pd.DataFrame) -> tuple[int, int]:
    """Return layers and heads of a table. Raises UsageError for one without rows."""
    if not len(frame):
        raise UsageError("the table has no rows to draw")
    return int(frame["layer"].max()) + 1, int(frame["head"].max()) + 1


def grid_of(
    frame: pd.DataFrame, values: pd.Series[float], sizes: tuple[int, int] | None = None
) -> FloatArray:
    """Arrange values by (layer, head) as an array (layers, heads), NaN for missing ones.

    Without ``sizes``, the frame gives the numbers of layers and heads.
    """
    grid = np.full(sizes or sizes_in(frame), np.nan)
    cells = values.index.to_frame().to_numpy(dtype=int).T
    grid[cells[0], cells[1]] = values.to_numpy(dtype=np.float64)
    return grid


def draw_grid(
    ax: Axes,
    grid: NDArray[Any],
    most_labels: int = MOST_LABELS,
    is_signed: bool = False,
) -> QuadMesh:
    """Draw cells, the first row on top; the scale begins at 0 or at a smaller value.

    Signed values have 0 in the middle of their scale. Of more rows or columns than ``most_labels``,
    only some have a number.
    """
    values = grid[~np.isnan(grid)]
    low, high = (min(0.0, values.min()), values.max()) if len(values) else (0.0, 1.0)
    if is_signed:
        low, high = -max(-low, high), max(-low, high)
    from matplotlib import colormaps

    down, across = grid.shape
    mesh = ax.pcolormesh(
        np.arange(across + 1) - 0.5,  # cells lie around whole numbers, as marks and labels do
        np.arange(down + 1) - 0.5,
        np.ma.masked_invalid(grid),
        cmap=colormaps[_DIVERGING if is_signed else SCALE].with_extremes(bad=_MISSING),
        vmin=low,
        vmax=high if high > low else low + 1,
        edgecolors="0.85",
        linewidth=0.4,
    )
    ax.set(xlim=(-0.5, across - 0.5), ylim=(down - 0.5, -0.5))
    ax.set_xticks(range(0, across, -(-across // most_labels)))
    ax.set_yticks(range(0, down, -(-down // most_labels)))
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_color(THRESHOLD)
    return mesh


def new_map(ax: Axes | None, shape: tuple[int, int]) -> Axes:
    """Return ``ax``, or new axes for cells (layers, heads) that are about as high as wide."""
    layers, heads = shape
    width = figure_width(max(4.5, 2.2 + 0.38 * heads))
    return new_axes(ax, width, 1.6 * font_scale() + layers * (width - 1.6 * font_scale()) / heads)


def draw_values(
    ax: Axes | None,
    values: FloatArray,
    title: str,
    label: str,
    numbers: FloatArray | None = None,
    is_signed: bool = False,
    rows: HeadRows = HeadRows(),  # noqa: B008 - it cannot change
) -> Axes:
    """Draw values (layers, heads) with their scale, and ``numbers`` in the cells that have one.

    Of ``rows`` of several kinds of attention each kind has a grid of its own, on one scale.
    """
    from matplotlib.ticker import MaxNLocator

    if len(rows.layers) > 1:
        return _draw_kinds(ax, values, title, label, numbers, is_signed, rows)
    ax = new_map(ax, values.shape)
    mesh = draw_grid(ax, values, is_signed=is_signed)
    bar = ax.figure.colorbar(mesh, ax=ax, label=label)
    if numbers is values:
        bar.locator = MaxNLocator(integer=True)
    if numbers is not None:
        write_numbers(ax, mesh, numbers)
    ax.set(title=title, xlabel="head", ylabel="layer")
    return ax


def _draw_kinds(
    ax: Axes | None,
    values: FloatArray,
    title: str,
    label: str,
    numbers: FloatArray | None,
    is_signed: bool,
    rows: HeadRows,
) -> Axes:
    """Draw values as `draw_values`, a grid for each kind of attention, side by side."""
    n, n_heads = len(rows.layers), values.shape[1]
    most = max(rows.layers.values())
    width = figure_width(n * (0.8 + 0.26 * n_heads) + 1.2)
    ax = new_axes(ax, width, 1.4 + (width / n - 0.8) * most / n_heads)
    ax.set_axis_off()
    ax.set_title(title, pad=22)
    grids = [ax.inset_axes((k / n, 0, 0.86 / n, 1)) for k in range(n)]
    parts = list(rows.parts.values())
    meshes = [
        draw_grid(grid, values[part], is_signed=is_signed)
        for grid, part in zip(grids, parts, strict=True)
    ]
    lows, highs = zip(*(mesh.get_clim() for mesh in meshes), strict=True)
    for kind, grid, mesh, part in zip(rows.layers, grids, meshes, parts, strict=True):
        mesh.set_clim(min(lows), max(highs))
        grid.set(title=kind, xlabel="head", ylabel="layer" if grid is grids[0] else "")
        if numbers is not None:
            write_numbers(grid, mesh, numbers[part])
    ax.figure.colorbar(meshes[0], ax=ax, label=label)
    return ax


def grids_of(ax: Axes) -> list[Axes]:
    """Return the grids that `draw_values` drew, one for each kind of attention."""
    grids: list[Any] = list(ax.child_axes)
    return grids or [ax]


def write_numbers(ax: Axes, mesh: QuadMesh, numbers: FloatArray) -> None:
    """Write the positive numbers into their cells, in ink that is legible there."""
    size = min(7.0, 110 / numbers.shape[1] * font_scale())
    for (row, column), ink in np.ndenumerate(inks(mesh).reshape(numbers.shape)):
        if (number := numbers[row, column]) > 0:
            look: dict[str, Any] = {"ha": "center", "va": "center", "in_layout": False}
            ax.text(column, row, f"{number:.0f}", color=ink, fontsize=size, **look)


def inks(mesh: QuadMesh) -> Any:
    """Return black or white for each cell of a grid, whichever is legible on its colour."""
    values: Any = mesh.get_array()
    rgba = mesh.to_rgba(values, mesh.get_alpha()).reshape(-1, 4)
    paper = rgba[:, :3] * rgba[:, 3:] + 1 - rgba[:, 3:]
    return np.where(paper @ [0.299, 0.587, 0.114] > 0.55, "black", "white")
