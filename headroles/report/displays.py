"""The figure that a notebook shows with a result."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headroles.errors import HeadRolesError
from headroles.report.changes import draw_changed_heads
from headroles.report.distributions import draw_plan
from headroles.report.maps import draw_roles
from headroles.studies.comparison import RoleShifts
from headroles.studies.planning import PowerPlan
from headroles.studies.role_table import RoleTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES: dict[type, tuple[Callable[[Any], Any], str]] = {
    RoleTable: (draw_roles, "Mean scores of roles by layer and head."),
    RoleShifts: (draw_changed_heads, "Number of roles that changed, by layer and head."),
    PowerPlan: (draw_plan, "Share of heads and roles decided, by number of examples."),
}
"""Kinds of results that have a figure: what draws it, and what it shows."""
_DOTS_PER_INCH = 90


def display(result: object) -> str:
    """The figure of a result as an element of a page; nothing where it has none.

    A picture and no drawing: cells of large models make drawings of megabytes.
    """
    draw, description = FIGURES.get(type(result), (None, ""))
    if draw is None:
        return ""
    try:
        drawn = draw(result)
    except HeadRolesError:  # such as a table without rows
        return ""
    figure: Figure = drawn.get_figure(root=True)
    page = io.BytesIO()
    figure.savefig(page, format="png", dpi=_DOTS_PER_INCH)
    data = base64.b64encode(page.getvalue()).decode()
    return f'<img alt="{html.escape(description)}" src="data:image/png;base64,{data}">'
