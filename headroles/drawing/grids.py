"""Grids of cells, layers x heads: values of a table, and their drawing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headroles.arrays import FloatArray
from headroles.drawing.style import (
    DIVERGING,
    MISSING,
    SCALE,
    THRESHOLD,
    figure_width,
    font_scale,
    new_axes,
)
from headroles.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh

MOST_LABELS = 16
"""Numbers of heads or layers that stand beside a map."""


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
    places = values.index.to_frame().to_numpy(dtype=int).T
    grid[places[0], places[1]] = values.to_numpy(dtype=np.float64)
    return grid


def draw_grid(
    ax: Axes,
    grid: NDArray[Any],
    scale: str = SCALE,
    most_labels: int = MOST_LABELS,
    is_signed: bool = False,
) -> QuadMesh:
    """Draw cells, the first row on top; the scale begins at 0 or at a smaller value.

    Signed values have 0 in the middle of their scale. Of more rows or columns than ``most_labels``,
    only some have a number.
    """
    found = grid[~np.isnan(grid)]
    low, high = (min(0.0, found.min()), found.max()) if len(found) else (0.0, 1.0)
    if is_signed:
        low, high = -max(-low, high), max(-low, high)
    from matplotlib import colormaps

    down, across = grid.shape
    mesh = ax.pcolormesh(
        np.arange(across + 1) - 0.5,  # cells lie around whole numbers, as marks and labels do
        np.arange(down + 1) - 0.5,
        np.ma.masked_invalid(grid),
        cmap=colormaps[DIVERGING if is_signed else scale].with_extremes(bad=MISSING),
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
) -> Axes:
    """Draw values (layers, heads) with their scale, and ``numbers`` in the cells that have one."""
    from matplotlib.ticker import MaxNLocator

    ax = new_map(ax, values.shape)
    mesh = draw_grid(ax, values, is_signed=is_signed)
    bar = ax.figure.colorbar(mesh, ax=ax, label=label)
    if numbers is values:
        bar.locator = MaxNLocator(integer=True)
    if numbers is not None:
        write_numbers(ax, mesh, numbers)
    ax.set(title=title, xlabel="head", ylabel="layer")
    return ax


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
