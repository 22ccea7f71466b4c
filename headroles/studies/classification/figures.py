"""Figures of role tables: one role, all roles, all heads, one head, and the width of intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headroles.drawing.grids import (
    MOST_LABELS,
    draw_counts,
    draw_grid,
    grid_of,
    ink_on,
    sizes_in,
    write_numbers,
)
from headroles.drawing.style import (
    BRIGHT,
    DARK,
    THRESHOLD,
    figure_width,
    legend_below,
    new_axes,
    role_label,
    score_label,
)
from headroles.errors import UsageError
from headroles.testing.answers import NO, POSITIONAL, UNDECIDED, UNTESTABLE, YES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

    from headroles.scoring.scores import HeadScores
    from headroles.studies.classification.role_table import RoleTable


CERTIFIED = "yes, certified"
"""The kind of "yes" that is marked apart."""
MOST_ROLES = 16
"""Number of roles in a figure of all roles, by default."""
_MARKS: dict[str, dict[str, Any]] = {
    CERTIFIED: {"marker": "o", "facecolor": "black", "edgecolor": "white"},
    YES: {"marker": "o", "facecolor": "white", "edgecolor": "black"},
    POSITIONAL: {"marker": "^", "facecolor": "white", "edgecolor": "black"},
    UNDECIDED: {"marker": "$?$", "linewidth": 0.2},
    UNTESTABLE: {"marker": "x"},
}


def draw_role(table: RoleTable, role: str, ax: Axes | None = None) -> Axes:
    """Draw layers x heads for a role: the colour is the mean score, the mark is the answer.

    A full circle is a certified "yes", an open one another "yes", a triangle positional: as
    much to any word at that distance, ``?`` is undecided, a cross untestable; no mark is "no". The
    line in the scale is the threshold.

    Raises UsageError for a role that the table does not have.

    With ``table`` as `assign_roles` returns it:

    >>> from headroles.report import draw_role
    >>> draw_role(table, "local").get_xlabel()
    'head'
    """
    layers, heads = sizes_in(table.frame)
    ax = new_axes(ax, max(4.5, 2.2 + 0.36 * heads), 1.7 + 0.32 * layers)
    role = table.clearest_role(role)
    rows = table.frame[table.frame["role"] == role]
    mesh = _draw_map(table, rows, ax, mark_size=46)
    bar = ax.figure.colorbar(mesh, ax=ax, label=score_label(table.record.score))
    threshold = float(rows["threshold"].median())
    if mesh.norm.vmin <= threshold <= mesh.norm.vmax:  # type: ignore[operator]
        bar.ax.axhline(threshold, color="white", linewidth=3)
        bar.ax.axhline(threshold, color="black", linewidth=1)
    ax.set(title=role_label(role), xlabel="head", ylabel="layer")
    if len(ax.collections) > 1:
        legend_below(ax, facecolor="0.75")  # on which white marks are seen
    return ax


def draw_roles(table: RoleTable, roles: Sequence[str] | None = None) -> Figure:
    """Draw all roles at a glance: a small map for each, as by `draw_role`, with its own scale.

    The default is up to 16 roles of the table that most heads have, in its order.

    Raises UsageError for a role that the table does not have, and for none.

    With ``table`` as `assign_roles` returns it:

    >>> from headroles.report import draw_roles
    >>> len(draw_roles(table).axes)
    1
    """
    from headroles.drawing.own_figures import new_figure

    named = strongest_roles(table) if roles is None else roles
    chosen = [table.clearest_role(role) for role in named]
    if not chosen:
        raise UsageError("there is no role to draw; name one or more")
    layers, heads = sizes_in(table.frame)
    across = min(len(chosen), 4 if heads <= 12 else 3)
    width = figure_width(3.1 * across)
    across = max(1, min(across, int(width / 1.6)))
    down, each = -(-len(chosen) // across), width / across
    size = min(8.0, 1.6 + 2.7 * each)
    rows = [table.frame[table.frame["role"] == role] for role in chosen]
    titles = [
        f"{role_label(role, int(130 * each / size))}\nlargest mean {own['mean'].max():.2g}"
        for role, own in zip(chosen, rows, strict=True)
    ]
    # Places in inches, since an automatic layout takes as long as the drawing itself.
    above = (max(title.count("\n") for title in titles) + 2.0) * size / 56
    one = above + 0.84 * each * layers / heads + 0.1
    height = one * down + 0.4
    figure = new_figure(width, height)
    places = figure.subplots(down, across, squeeze=False).ravel()
    figure.subplots_adjust(
        left=0.4 / width,
        right=1 - 0.1 / width,
        bottom=0.45 / height,
        top=1 - above / height,
        wspace=0.1,
        hspace=above / (one - above),
    )
    mark_size = min(14, 170 / heads) * (each / 3.1) ** 2
    for k, (ax, own, title) in enumerate(zip(places, rows, titles, strict=False)):
        _draw_map(table, own, ax, mark_size, most_labels=8)
        ax.set_title(title, fontsize=size)
        has_below, has_left = k + across < len(chosen), k % across > 0
        ax.tick_params(labelsize=6, labelbottom=not has_below, labelleft=not has_left)
    for ax in places[len(chosen) :]:
        ax.remove()
    figure.supxlabel("head", fontsize=9, y=0.05 / height)
    figure.supylabel("layer", fontsize=9, x=0.05 / width)
    return figure


def strongest_roles(table: RoleTable, most: int = MOST_ROLES) -> list[str]:
    """Return the roles that most heads have, in the order of the table."""
    counts = table.frame.groupby("role", sort=False)["assigned"].sum()
    chosen = set(counts.sort_values(ascending=False, kind="stable").index[:most])
    return [role for role in table.roles if role in chosen]


def shown_answers(rows: pd.DataFrame) -> pd.Series[str]:
    """Return the answers of rows, with `CERTIFIED` in the place of some "yes"."""
    is_certified = (rows["answer"] == YES) & (rows["certified"] == YES)
    return rows["answer"].mask(is_certified, CERTIFIED)


def draw_heads(table: RoleTable, ax: Axes | None = None) -> Axes:
    """Draw layers x heads: how many roles each head has, as number and as colour.

    With ``table`` as `assign_roles` returns it:

    >>> from headroles.report import draw_heads
    >>> draw_heads(table).get_title()
    'roles of each head'
    """
    n_roles = table.frame.groupby(["layer", "head"])["assigned"].sum()
    counts = grid_of(table.frame, n_roles, _sizes_of(table))
    return draw_counts(ax, counts, "roles of each head", "number of roles")


def draw_colocation(table: RoleTable, ax: Axes | None = None) -> Axes:
    """Draw roles x roles: the number of heads with both; the diagonal counts those of one.

    Roles that no head has are left out. Raises UsageError if that leaves none.

    With ``table`` as `assign_roles` returns it:

    >>> from headroles.report import draw_colocation
    >>> draw_colocation(table).get_title()
    'heads with both roles'
    """
    shared = table.colocation()
    had = shared.index[np.diag(shared) > 0]
    if not len(had):
        raise UsageError("no head has a role, so that no two roles share one")
    counts = shared.loc[had, had].to_numpy(dtype=np.float64)
    ax = new_axes(ax, 3.5 + 0.3 * len(had), 2.7 + 0.3 * len(had))
    mesh = draw_grid(ax, counts)
    names = [role_label(role) for role in had]
    ax.set_xticks(range(len(had)), names, rotation=90)
    ax.set_yticks(range(len(had)), names)
    if len(had) <= 24:
        write_numbers(ax, counts)
    else:
        ax.figure.colorbar(mesh, ax=ax, label="heads with both roles")
    ax.set_title("heads with both roles")
    return ax


def _draw_map(
    table: RoleTable,
    rows: pd.DataFrame,
    ax: Axes,
    mark_size: float,
    most_labels: int = MOST_LABELS,
) -> QuadMesh:
    means = grid_of(table.frame, rows.set_index(["layer", "head"])["mean"], _sizes_of(table))
    mesh = draw_grid(ax, means, most_labels=most_labels)
    shown = shown_answers(rows)
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


def _sizes_of(table: RoleTable) -> tuple[int, int]:
    """Return the numbers of layers and heads of the model, in the table or not."""
    (layers, heads), (all_layers, all_heads) = sizes_in(table.frame), table.record.shape
    return max(layers, all_layers), max(heads, all_heads)


_LOOKS = {
    YES: {"color": DARK, "marker": "o"},
    NO: {"color": "0.6", "marker": "s"},
    UNDECIDED: {"color": BRIGHT, "marker": "D"},
    POSITIONAL: {"color": "0.6", "marker": "^"},
}


def draw_head(table: RoleTable, layer: int, head: int, ax: Axes | None = None) -> Axes:
    """Draw one head over all roles: means with intervals, and the thresholds of the roles.

    Roles without a mean are left out. The form of a point is the answer.

    Raises UsageError for a head that the table does not have.

    With ``table`` as `assign_roles` returns it:

    >>> from headroles.report import draw_head
    >>> draw_head(table, layer=0, head=1).get_title()
    'head 0-1'
    """
    frame = table.frame
    rows = frame[(frame["layer"] == layer) & (frame["head"] == head) & frame["mean"].notna()]
    if not len(rows):
        raise UsageError(f"the table has no means of head {layer}-{head}; it must have one to draw")
    is_narrow = figure_width(7) < 5
    ax = new_axes(ax, 7, 1.2 + (0.38 if is_narrow else 0.24) * len(rows))
    places = np.arange(len(rows))
    ax.vlines(
        rows["threshold"],
        places - 0.4,
        places + 0.4,
        color=THRESHOLD,
        linestyle="dotted",
        label="threshold",
    )
    for answer, look in _LOOKS.items():
        own = (rows["answer"] == answer).to_numpy()
        if own.any():
            part = rows[own]
            ax.hlines(places[own], part["ci_low"], part["ci_high"], color=look["color"])
            ax.plot(part["mean"], places[own], linestyle="none", label=answer, **look)  # type: ignore[arg-type]
    ax.set_yticks(places, [role_label(role, 26 * is_narrow) for role in rows["role"]])
    ax.set(ylim=(len(rows) - 0.5, -0.5), xlabel=score_label(table.record.score))
    ax.set_title(f"head {layer}-{head}")
    legend_below(ax)
    return ax


def draw_scores(
    scores: HeadScores,
    layer: int,
    head: int,
    role: str,
    threshold: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the distribution over examples of a head's scores, with mean and threshold.

    Without ``threshold``, that of the role. Raises UsageError for a head or role that the scores do
    not have, and where no example has a score.

    With ``scores`` as `score_heads` returns them:

    >>> from headroles.report import draw_scores
    >>> draw_scores(scores, layer=0, head=1, role="local").get_ylabel()
    'examples'
    """
    role = scores.role_of((layer, head), role)
    own = scores.of_head((layer, head), role)
    own = own[~np.isnan(own)].astype(np.float64)
    if not len(own):
        raise UsageError(f"no example has a score of head {layer}-{head} for {role}")
    found = next(one for one in scores.roles if one.id == role)
    limit = found.threshold(scores.score, threshold)
    ax = new_axes(ax, 6, 3.4)
    ax.hist(own, bins=min(50, max(5, int(np.sqrt(len(own))))), color="0.75", edgecolor="white")
    ax.axvline(own.mean(), color=DARK, linewidth=2, label=f"mean {own.mean():.3g}")
    ax.axvline(
        limit, color=THRESHOLD, linestyle="dotted", linewidth=2, label=f"threshold {limit:g}"
    )
    ax.set(xlabel=f"{scores.score.name} score of an example", ylabel="examples")
    ax.set_title(f"head {layer}-{head}, {role_label(role)}: {len(own)} examples")
    ax.legend(fontsize="small")
    return ax


def draw_error(table: RoleTable, role: str, ax: Axes | None = None) -> Axes:
    """Draw the half width of intervals of means against the number of examples.

    Lines are for the median head of the role and for nine tenths of heads. The half width falls
    with the root of the number of examples, if more examples and documents are like these. The
    points are those of the table.

    Raises UsageError for a role that the table does not have, or that has no intervals.

    With ``table`` as `assign_roles` returns it:

    >>> from headroles.report import draw_error
    >>> draw_error(table, "local").get_ylabel()
    'half width of the interval'
    """
    role = table.clearest_role(role)
    rows = table.frame[table.frame["role"] == role]
    half = ((rows["ci_high"] - rows["ci_low"]) / 2).replace(np.inf, np.nan).dropna()
    if not len(half):
        raise UsageError(f"the table has no intervals for {role}; it must have some to draw")
    n_now = int(rows["n"].max())
    n = np.geomspace(max(2, n_now / 16), n_now * 16, 100)
    ax = new_axes(ax, 6, 3.4)
    for share, name, look in (
        (0.5, "median head", "solid"),
        (0.9, "nine tenths of heads", "dashed"),
    ):
        now = float(half.quantile(share))
        (line,) = ax.plot(n, now * np.sqrt(n_now / n), color=DARK, linestyle=look, label=name)
        ax.plot([n_now], [now], "o", color=line.get_color())
    ax.set(xscale="log", xlabel="examples with a score", ylim=(0, None))
    ax.set_ylabel("half width of the interval")
    ax.set_title(role_label(role))
    ax.legend(fontsize="small")
    return ax
