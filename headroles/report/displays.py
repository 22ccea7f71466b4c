"""The figure that a notebook shows with a result."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Callable
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from headroles.errors import HeadRolesError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES = {
    "role table": ("maps:draw_roles", "Mean scores of roles by layer and head."),
    "comparison": ("changes:draw_changed_heads", "Number of roles that changed, by head."),
    "plan": ("distributions:draw_plan", "Share of heads and roles decided, by examples."),
    "replication": ("replicates:draw_replication", "Number of roles in all sets, by head."),
    "importance": ("worth:draw_importance", "Importance by layer and head."),
    "ablations": ("worth:draw_ablations", "Change of the loss without each head."),
    "role importance": ("worth:draw_role_importance", "Loss without the heads of each role."),
    "pruning curves": ("losses:draw_pruning_curves", "What is reached, by share removed."),
    "task drops": ("losses:draw_task_drops", "What is lost, by removal and task."),
    "token groups": ("token_shares:draw_token_groups", "Shares of each group, by layer."),
}
"""For a kind of result the function that draws it, loaded when it is needed, and what it shows."""
_DOTS_PER_INCH = 90


def display(result: object) -> str:
    """The figure of a result as an element of a page; nothing where it has none.

    A picture and no drawing: cells of large models make drawings of megabytes.
    """
    figure = figure_of_result(result)
    if figure is None:
        return ""
    page = io.BytesIO()
    figure.savefig(page, format="png", dpi=_DOTS_PER_INCH)
    data = base64.b64encode(page.getvalue()).decode()
    description = html.escape(FIGURES[_kind(result)][1])
    return f'<img alt="{description}" src="data:image/png;base64,{data}">'


def figure_of_result(result: object) -> Figure | None:
    """The figure of a result; None where it has none."""
    if _kind(result) not in FIGURES:
        return None
    draw: Callable[[Any], Any] = resolve_name(f"{__package__}.{FIGURES[_kind(result)][0]}")
    try:
        drawn = draw(result)
    except HeadRolesError:  # such as a table without rows
        return None
    figure: Figure = drawn.get_figure(root=True)
    return figure


def _kind(result: object) -> str:
    return getattr(result, "kind", "")
