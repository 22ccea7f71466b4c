"""Figures and pages of replication, and of heads per layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headroles.drawing.grids import draw_counts, grid_of
from headroles.drawing.page import Page, Picture
from headroles.drawing.plain_page import plain_page
from headroles.drawing.style import figure_of, new_axes, role_label
from headroles.roles import find_role
from headroles.studies.heads import roles_in
from headroles.studies.replication.tables import LayerCounts, Replication

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def draw_replication(
    replication: Replication, role: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw layers x heads: in at least how many score sets each head has a role.

    Without ``role``, the number of roles that a head was shown to have in all sets. Raises
    UsageError for a role that the table does not have.

    With ``replication`` as `replicate_roles` returns it:

    >>> from headroles.report import draw_replication
    >>> draw_replication(replication).get_title()
    'roles in all 2 corpora'
    """
    heads, sets = replication.heads(), len(replication.asked.names)
    if role is None:
        found = (heads["at_least"] == sets).groupby([heads["layer"], heads["head"]]).sum()
        title, label = f"roles in all {sets} {replication.asked.over}", "number of roles"
    else:
        role = _role_in(role, replication.frame)
        found = heads[heads["role"] == role].set_index(["layer", "head"])["at_least"]
        title, label = role_label(role), f"{replication.asked.over} (of {sets})"
    counts = grid_of(heads, found.astype(float))
    return draw_counts(ax, counts, title, label, None if role is None else sets)


def draw_layer_counts(counts: LayerCounts, role: str, ax: Axes | None = None) -> Axes:
    """Draw heads with a role by layer: the mean over score sets, with the fewest and the most.

    Raises UsageError for a role that the table does not have.

    With ``counts`` as `replicate_roles` returns them:

    >>> from headroles.report import draw_layer_counts
    >>> draw_layer_counts(counts, "local").get_xlabel()
    'layer'
    """
    role = _role_in(role, counts.frame)
    summary = counts.summary()
    rows = summary[summary["role"] == role]
    ax = new_axes(ax, 6, 3.2)
    apart = np.stack([rows["mean"] - rows["min"], rows["max"] - rows["mean"]])
    ax.bar(rows["layer"], rows["mean"], color="0.75", yerr=apart, capsize=4)
    ax.set_xticks(rows["layer"])
    ax.set(xlabel="layer", ylabel="heads: mean, fewest and most", title=role_label(role))
    return ax


def _role_in(role: str, frame: pd.DataFrame) -> str:
    return find_role(role, [str(one) for one in roles_in(frame)])


_MOST_MAPS = 4


def replication_page(result: Replication) -> Page:
    """Make the page of roles that several score sets show."""
    sets, over = len(result.asked.names), result.asked.over
    heads = result.heads()
    everywhere = heads[heads["at_least"] == sets]
    counts = everywhere["role"].value_counts()
    pictures = [
        Picture(
            (figure_of(draw_replication(result)),),
            f"Number of roles that each head was shown to have in all {sets} {over}.",
        )
    ]
    pictures += [
        Picture(
            (figure_of(draw_replication(result, role)),),
            f"{role}: in at least how many {over} each head has it.",
        )
        for role in map(str, counts.index[:_MOST_MAPS])
    ]
    return plain_page(result, f"Which roles replicate over {over}?", tuple(pictures))


def layer_counts_page(result: LayerCounts) -> Page:
    """Make the page of how many heads of each layer have roles in several models."""
    total = result.frame.groupby(["set", "role"])["with_role"].sum().groupby("role")
    most = total.max()
    roles = [str(one) for one in most.nlargest(_MOST_MAPS).index]
    pictures = tuple(
        Picture(
            (figure_of(draw_layer_counts(result, one)),),
            f"{one}: heads that have it, by layer; the mean over sets, with the fewest and "
            "the most.",
        )
        for one in roles
    )
    return plain_page(result, "In which layers are heads with a role?", pictures)
