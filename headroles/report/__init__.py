"""Figures and pages of results, by their public names."""

from headroles.drawing.saving import save_figure
from headroles.report.pages import make_report, write_report
from headroles.studies.classification.figures import (
    draw_colocation,
    draw_error,
    draw_head,
    draw_heads,
    draw_role,
    draw_roles,
    draw_scores,
)
from headroles.studies.comparison.figures import draw_changed_heads, draw_changes, draw_trajectory
from headroles.studies.importance.figures import (
    draw_ablations,
    draw_importance,
    draw_role_importance,
    draw_task_drops,
)
from headroles.studies.inspection.figures import (
    draw_arcs,
    draw_attention,
    draw_matrix,
    draw_token_group,
    draw_token_groups,
)
from headroles.studies.planning.page import draw_plan
from headroles.studies.pruning.page import draw_pruning_curves
from headroles.studies.replication.page import draw_layer_counts, draw_replication

__all__ = [
    "draw_ablations",
    "draw_arcs",
    "draw_attention",
    "draw_changed_heads",
    "draw_changes",
    "draw_colocation",
    "draw_error",
    "draw_head",
    "draw_heads",
    "draw_importance",
    "draw_layer_counts",
    "draw_matrix",
    "draw_plan",
    "draw_pruning_curves",
    "draw_replication",
    "draw_role",
    "draw_role_importance",
    "draw_roles",
    "draw_scores",
    "draw_task_drops",
    "draw_token_group",
    "draw_token_groups",
    "draw_trajectory",
    "make_report",
    "save_figure",
    "write_report",
]
