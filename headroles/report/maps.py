"""Layers x heads: one role, all roles at a glance, how many roles heads have, and share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headroles.errors import UsageError
from headroles.report.rows import without_contrasts
from headroles.report.style import MISSING, SCALE, THRESHOLD, new_axes, plain, score_label
from headroles.roles import find_role, is_contrast
from headroles.testing import UNDECIDED, UNTESTABLE, YES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

    from headroles.studies import RoleTable

MOST_LABELS = 16
"""Numbers of heads or layers that stand beside a map."""
MOST_ROLES = 16
"""Roles that a figure of all roles shows unless it is told which."""
_SHOWN = ["layer", "head", "mean", "threshold", "answer", "certified"]
_MARKS: dict[str, dict[str, Any]] = {
    "yes, certified": {"marker": "o", "facecolor": "black", "edgecolor": "white"},
    "yes": {"marker": "o", "facecolor": "white", "edgecolor": "black"},
    UNDECIDED: {"marker": "$?$", "linewidth": 0.2},
    UNTESTABLE: {"marker": "x"},
}


def draw_role(table: RoleTable, role: str, ax: Axes | None = None) -> Axes:
    """Layers x heads for a role: the colour is the mean score, the mark is the answer.

    A full circle is a certified "yes", an open one another "yes", ``?`` is undecided, a cross
    untestable; no mark is "no". The line in the scale is the threshold.

    Raises UsageError for a role that the table does not have.
    """
    layers, heads = sizes_in(table.frame)
    is_own = ax is None
    ax = new_axes(ax, max(4.5, 2.2 + 0.36 * heads), 1.7 + 0.32 * layers)
    own_figure = ax.get_figure(root=True) if is_own else None
    rows = _rows_of(table, role)
    mesh = _draw_map(table, rows, ax, mark_size=46)
    bar = ax.figure.colorbar(mesh, ax=ax, label=score_label(table.record.score))
    threshold = float(rows["threshold"].median())
    if mesh.norm.vmin <= threshold <= mesh.norm.vmax:  # type: ignore[operator]
        bar.ax.axhline(threshold, color="white", linewidth=3)
        bar.ax.axhline(threshold, color="black", linewidth=1)
    ax.set(title=plain(role), xlabel="head", ylabel="layer")
    if handles := [one for one in ax.collections if one is not mesh]:
        looks: dict[str, Any] = {"facecolor": "0.75", "fontsize": "small"}  # white marks are seen
        if own_figure is None:
            ax.legend(handles=handles, **looks)
        else:
            own_figure.legend(handles=handles, loc="outside lower center", ncols=4, **looks)
    return ax


def draw_roles(table: RoleTable, roles: Sequence[str] | None = None) -> Figure:
    """All roles at a glance: a small map as `draw_role` makes it for each, its scale its own.

    Without ``roles``, those of the table that most heads have, in its order, up to 16.

    Raises UsageError for a role that the table does not have, and for none.
    """
    from headroles.report.shown_figures import new_figure

    chosen = list(strongest_roles(table) if roles is None else roles)
    if not chosen:
        raise UsageError("there is no role to draw; name one or more")
    layers, heads = sizes_in(table.frame)
    across = min(len(chosen), 4 if heads <= 12 else 3)
    down = -(-len(chosen) // across)
    width, height = 3.1 * across, (0.8 + 2.6 * layers / heads) * down
    # Places in inches: a layout that is found by drawing takes as long as the drawing itself.
    figure = new_figure(width, height + 0.4)
    grid = {
        "left": 0.5 / width,
        "right": 1 - 0.1 / width,
        "bottom": 0.5 / (height + 0.4),
        "top": 1 - 0.5 / (height + 0.4),
        "wspace": 0.1,
        "hspace": 0.55 / (height / down - 0.55),
    }
    places = figure.subplots(down, across, squeeze=False, gridspec_kw=grid).ravel()
    for k, (ax, role) in enumerate(zip(places, chosen, strict=False)):
        _draw_small_map(table, role, ax)
        has_below, has_left = k + across < len(chosen), k % across > 0
        ax.tick_params(labelsize=6, labelbottom=not has_below, labelleft=not has_left)
    for ax in places[len(chosen) :]:
        ax.remove()
    figure.supxlabel("head", fontsize=9, y=0.1 / height)
    figure.supylabel("layer", fontsize=9, x=0.1 / width)
    return figure


def draw_maps(table: RoleTable, roles: Sequence[str]) -> Iterator[Figure]:
    """The small maps of `draw_roles`, a figure each: to stand in rows as long as a page is wide."""
    from headroles.report.shown_figures import new_figure

    layers, heads = sizes_in(table.frame)
    width, height = 3.1, 1.0 + 2.6 * layers / heads
    for role in roles:
        figure = new_figure(width, height)
        across = {"left": 0.35 / width, "right": 1 - 0.05 / width}
        down = {"bottom": 0.35 / height, "top": 1 - 0.45 / height}
        ax = figure.subplots(gridspec_kw={**across, **down})
        _draw_small_map(table, role, ax)
        ax.collections[0].set_rasterized(True)  # of large models, cells would be a large file
        ax.tick_params(labelsize=7)
        ax.set_xlabel("head", fontsize=7, labelpad=1)
        ax.set_ylabel("layer", fontsize=7, labelpad=1)
        yield figure


def strongest_roles(table: RoleTable, most: int = MOST_ROLES) -> list[str]:
    """The roles that most heads have, in the order of the table; contrasts are taken last."""
    counts = table.frame.groupby("role", sort=False)["assigned"].sum()
    ranked = sorted(counts.index, key=lambda one: (not counts[one], is_contrast(one), -counts[one]))
    chosen = set(ranked[:most])
    return [role for role in table.roles if role in chosen]


def draw_heads(table: RoleTable, ax: Axes | None = None) -> Axes:
    """Layers x heads: how many roles each head has, as number and as colour.

    The contrasts of roles with position are left out.
    """
    frame = without_contrasts(table.frame)
    layers, heads = _sizes_of(table)
    ax = new_axes(ax, 2.2 + 0.42 * heads, 1.1 + 0.36 * layers)
    n_roles = frame.groupby(["layer", "head"])["assigned"].sum()
    counts = grid_of(table.frame, n_roles, (layers, heads))
    mesh = draw_grid(ax, counts)
    ax.figure.colorbar(mesh, ax=ax, label="number of roles")
    write_numbers(ax, counts)
    ax.set(title="roles of each head", xlabel="head", ylabel="layer")
    return ax


def draw_colocation(table: RoleTable, ax: Axes | None = None) -> Axes:
    """Roles x roles: the number of heads that have both; the diagonal has the heads of a role.

    Roles that no head has are left out. Raises UsageError if that leaves none.
    """
    shared = table.colocation()
    had = [role for role in shared.index if shared.loc[role, role] > 0]
    if not had:
        raise UsageError("no head has a role, so that no two roles share one")
    counts = shared.loc[had, had].to_numpy(dtype=np.float64)
    ax = new_axes(ax, 3.5 + 0.3 * len(had), 2.7 + 0.3 * len(had))
    mesh = draw_grid(ax, counts)
    ax.figure.colorbar(mesh, ax=ax, label="heads with both roles")
    names = [plain(role) for role in had]
    ax.set_xticks(range(len(had)), names, rotation=90)
    ax.set_yticks(range(len(had)), names)
    if len(had) <= 24:
        write_numbers(ax, counts)
    ax.set_title("roles of the same heads")
    return ax


def _draw_small_map(table: RoleTable, role: str, ax: Axes) -> None:
    heads = sizes_in(table.frame)[1]
    rows = _rows_of(table, role)
    _draw_map(table, rows, ax, mark_size=min(14, 170 / heads), most_labels=8)
    ax.set_title(f"{plain(role, 40)}\nlargest mean {rows['mean'].max():.2g}", fontsize=8)


def _rows_of(table: RoleTable, role: str) -> pd.DataFrame:
    """What a map shows of a role. Raises UsageError for one that the table does not have."""
    return table.frame.loc[table.frame["role"] == find_role(role, table.roles), _SHOWN]


def _draw_map(
    table: RoleTable,
    rows: pd.DataFrame,
    ax: Axes,
    mark_size: float,
    most_labels: int = MOST_LABELS,
) -> QuadMesh:
    means = grid_of(table.frame, rows.set_index(["layer", "head"])["mean"], _sizes_of(table))
    mesh = draw_grid(ax, means, most_labels=most_labels)
    certified = (rows["answer"] == YES) & (rows["certified"] == YES)
    shown = rows["answer"].where(~certified, "yes, certified")
    for answer, look in _MARKS.items():
        own = rows[shown == answer]
        if len(own):
            size = mark_size * (3 if answer == UNDECIDED else 1)  # the sign has thin lines
            drawn = {"linewidth": 0.8, "s": size, "label": answer, **look}
            if "facecolor" not in look:
                low, high = mesh.get_clim()
                drawn["color"] = [ink_on(mean, low, high) for mean in own["mean"]]
            ax.scatter(own["head"], own["layer"], **drawn)
    return mesh


def sizes_in(frame: pd.DataFrame) -> tuple[int, int]:
    """Layers and heads that a table is about. Raises UsageError for one without rows."""
    if not len(frame):
        raise UsageError("the table has no rows to draw")
    return int(frame["layer"].max()) + 1, int(frame["head"].max()) + 1


def _sizes_of(table: RoleTable) -> tuple[int, int]:
    """Layers and heads of the model, whatever part of them the table is about."""
    (layers, heads), (all_layers, all_heads) = sizes_in(table.frame), table.record.shape
    return max(layers, all_layers), max(heads, all_heads)


def grid_of(
    frame: pd.DataFrame, values: pd.Series[float], sizes: tuple[int, int] | None = None
) -> NDArray[np.float64]:
    """Values by (layer, head) as an array (layers, heads), NaN where there are none.

    Without ``sizes`` as large as the frame says.
    """
    grid = np.full(sizes or sizes_in(frame), np.nan)
    places = values.index.to_frame().to_numpy(dtype=int).T
    grid[places[0], places[1]] = values.to_numpy(dtype=np.float64)
    return grid


def text_grid_of(frame: pd.DataFrame, texts: pd.Series[str]) -> NDArray[np.object_]:
    """Texts by (layer, head) as an array (layers, heads), empty where there are none."""
    grid = np.full(sizes_in(frame), "", dtype=object)
    places = texts.index.to_frame().to_numpy(dtype=int).T
    grid[places[0], places[1]] = texts.to_numpy()
    return grid


def draw_grid(
    ax: Axes, grid: NDArray[Any], scale: str = SCALE, most_labels: int = MOST_LABELS
) -> QuadMesh:
    """Cells with the first row on top, whose scale begins at 0 unless there is less.

    Of more rows or columns than ``most_labels`` every second one or so has its number.
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


def centre_scale(mesh: QuadMesh, values: NDArray[np.float64]) -> float:
    """Put 0 into the middle of the scale of values that have signs. Returns how far it reaches."""
    reach = float(np.nanmax(np.abs(values))) or 1.0
    mesh.set_clim(-reach, reach)
    return reach


def write_numbers(ax: Axes, grid: NDArray[np.float64]) -> None:
    """Numbers of the cells, in the ink that can be read on them."""
    most = np.nanmax(grid)
    for (row, column), value in np.ndenumerate(grid):
        if value > 0:
            look: dict[str, Any] = {
                "color": ink_on(value, 0, most),
                "fontsize": 7,
                "in_layout": False,
            }
            ax.text(column, row, f"{value:.0f}", ha="center", va="center", **look)


def ink_on(value: float, low: float, high: float) -> str:
    """The ink that can be read on the colour of a value, of a scale from ``low`` to ``high``."""
    # Cells without a value are light.
    return "white" if value - low <= 0.45 * (high - low) else "black"
