"""Grids of cells, layers x heads: values or texts of a table, and their drawing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headroles.arrays import FloatArray
from headroles.drawing.style import DIVERGING, MISSING, SCALE, THRESHOLD, font_scale, new_axes
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


def text_grid_of(frame: pd.DataFrame, texts: pd.Series[str]) -> NDArray[np.object_]:
    """Arrange texts by (layer, head) as an array (layers, heads), empty for missing ones."""
    grid = np.full(sizes_in(frame), "", dtype=object)
    places = texts.index.to_frame().to_numpy(dtype=int).T
    grid[places[0], places[1]] = texts.to_numpy()
    return grid


def draw_grid(
    ax: Axes, grid: NDArray[Any], scale: str = SCALE, most_labels: int = MOST_LABELS
) -> QuadMesh:
    """Draw cells, the first row on top; the scale begins at 0 or at a smaller value.

    Of more rows or columns than ``most_labels``, only some have a number.
    """
    found = grid[~np.isnan(grid)]
    low, high = (min(0.0, found.min()), found.max()) if len(found) else (0.0, 1.0)
    down, across = grid.shape
    mesh = ax.pcolormesh(
        np.arange(across + 1) - 0.5,  # cells lie around whole numbers, as marks and labels do
        np.arange(down + 1) - 0.5,
        np.ma.masked_invalid(grid),
        cmap=scale,
        vmin=low,
        vmax=high if high > low else low + 1,
        edgecolors="white",
        linewidth=0.4,
    )
    ax.set_facecolor(MISSING)
    ax.set(xlim=(-0.5, across - 0.5), ylim=(down - 0.5, -0.5))
    ax.set_xticks(range(0, across, -(-across // most_labels)))
    ax.set_yticks(range(0, down, -(-down // most_labels)))
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_color(THRESHOLD)
    return mesh


def centre_scale(mesh: QuadMesh, values: FloatArray) -> float:
    """Put 0 into the middle of the scale of values with signs, and return the largest value."""
    reach = float(np.nanmax(np.abs(values))) or 1.0
    mesh.set_clim(-reach, reach)
    return reach


def write_numbers(ax: Axes, grid: FloatArray) -> None:
    """Write the numbers of the cells, in black or white ink."""
    most = np.nanmax(grid)
    for (row, column), value in np.ndenumerate(grid):
        if value > 0:
            look: dict[str, Any] = {
                "color": ink_on(value, 0, most),
                "fontsize": min(7.0, 110 / grid.shape[1] * font_scale()),
                "in_layout": False,
            }
            ax.text(column, row, f"{value:.0f}", ha="center", va="center", **look)


def draw_counts(
    ax: Axes | None, counts: FloatArray, title: str, label: str, most: int | None = None
) -> Axes:
    """Draw counts (layers, heads) as numbers and as colours, of a scale up to ``most`` if given."""
    from matplotlib.ticker import MaxNLocator

    layers, heads = counts.shape
    ax = new_axes(ax, 2.2 + 0.42 * heads, 1.1 + 0.36 * layers)
    mesh = draw_grid(ax, counts)
    if most is not None:
        mesh.set_clim(0, most)
    bar = ax.figure.colorbar(mesh, ax=ax, label=label)
    bar.locator = MaxNLocator(integer=True)
    write_numbers(ax, counts)
    ax.set(title=title, xlabel="head", ylabel="layer")
    return ax


def draw_values(values: FloatArray, label: str, ax: Axes | None, is_signed: bool = False) -> Axes:
    """Draw values (layers, heads) with their scale, which has 0 in its middle if signed."""
    layers, heads = values.shape
    ax = new_axes(ax, max(4.5, 2.2 + 0.42 * heads), 1.5 + 0.36 * layers)
    mesh = draw_grid(ax, values, DIVERGING if is_signed else SCALE)
    if is_signed:
        centre_scale(mesh, values)
    ax.figure.colorbar(mesh, ax=ax, label=label)
    ax.set(xlabel="head", ylabel="layer")
    return ax


def ink_on(value: float, low: float, high: float) -> str:
    """Return the ink that is legible on the colour of a value, of a scale from low to high."""
    # Cells without a value are light.
    return "white" if value - low <= 0.45 * (high - low) else "black"
