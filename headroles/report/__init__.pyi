# Written by `make stubs`; do not edit.

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from transformers import PreTrainedTokenizerBase

from headroles.drawing.page import Page
from headroles.drawing.saving import save_figure as save_figure
from headroles.models.loading.encoder import Model
from headroles.roles.own import Find
from headroles.storage import PathLike
from headroles.studies.alignment.figures import draw_error_rates as draw_error_rates
from headroles.studies.alignment.figures import draw_links as draw_links
from headroles.studies.classification.figures import draw_heads as draw_heads
from headroles.studies.classification.figures import draw_role as draw_role
from headroles.studies.classification.figures import draw_roles as draw_roles
from headroles.studies.comparison.figures import draw_changed_heads as draw_changed_heads
from headroles.studies.comparison.figures import draw_changes as draw_changes
from headroles.studies.comparison.figures import draw_trajectory as draw_trajectory
from headroles.studies.importance.ablate import draw_ablations as draw_ablations
from headroles.studies.importance.by_role import draw_importance_by_role as draw_importance_by_role
from headroles.studies.importance.by_task import draw_drops_by_task as draw_drops_by_task
from headroles.studies.importance.importance import draw_importance as draw_importance
from headroles.studies.inspection.attention import draw_attention as draw_attention
from headroles.studies.inspection.origin import ReportOptions
from headroles.studies.inspection.tokens import draw_token_group as draw_token_group
from headroles.studies.inspection.tokens import draw_token_groups as draw_token_groups
from headroles.studies.power import draw_power as draw_power
from headroles.studies.pruning.pruning_curves import draw_pruning_curves as draw_pruning_curves
from headroles.studies.replicate import draw_layer_counts as draw_layer_counts
from headroles.studies.replicate import draw_replication as draw_replication

__version__: str
__all__ = [
    "draw_ablations",
    "draw_attention",
    "draw_changed_heads",
    "draw_changes",
    "draw_drops_by_task",
    "draw_error_rates",
    "draw_heads",
    "draw_importance",
    "draw_importance_by_role",
    "draw_layer_counts",
    "draw_links",
    "draw_power",
    "draw_pruning_curves",
    "draw_replication",
    "draw_role",
    "draw_roles",
    "draw_token_group",
    "draw_token_groups",
    "draw_trajectory",
    "make_report",
    "save_figure",
    "write_report",
]

def make_report(
    folder: str | Path,
    *,
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",
    revision: str | None = None,
    trust_remote_code: bool = False,
    tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    device: str = "auto",
    roles: str | Find | Iterable[str | Find] | None = None,
    corpus: PathLike | Iterable[PathLike] | None = None,
    model: Model | None = None,
    text: str | None = None,
    tokens: str | Iterable[str] | None = None,
    parser: str | None = None,
    options: ReportOptions = ...,
) -> Page:
    """Make the page about the results in ``folder``: a role table, a comparison, or another table."""

def write_report(
    folder: str | Path,
    out: str | Path | None = None,
    *,
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",
    revision: str | None = None,
    trust_remote_code: bool = False,
    tokenizer: str | Path | PreTrainedTokenizerBase | None = None,
    device: str = "auto",
    roles: str | Find | Iterable[str | Find] | None = None,
    corpus: PathLike | Iterable[PathLike] | None = None,
    model: Model | None = None,
    text: str | None = None,
    tokens: str | Iterable[str] | None = None,
    parser: str | None = None,
    options: ReportOptions = ...,
) -> Path:
    """Write the page about the results in ``folder`` as one HTML file, and return its path."""
