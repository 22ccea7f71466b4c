"""What figures of results can be asked for by name: the options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from headroles.options import Option, Options

KINDS: Mapping[str, Mapping[str, str]] = {
    "heads": {"role table": "maps:draw_heads", "comparison": "changes:draw_changed_heads"},
    "role": {"role table": "maps:draw_role", "replication": "replicates:draw_replication"},
    "roles": {"role table": "maps:draw_roles"},
    "shared": {"role table": "maps:draw_colocation"},
    "head": {"role table": "distributions:draw_head"},
    "error": {"role table": "distributions:draw_error"},
    "changes": {"comparison": "changes:draw_changes"},
    "trajectory": {"comparison": "changes:draw_trajectory"},
    "worth": {
        "importance": "worth:draw_importance",
        "ablations": "worth:draw_ablations",
        "role importance": "worth:draw_role_importance",
    },
    "curves": {
        "pruning curves": "losses:draw_pruning_curves",
        "plan": "distributions:draw_plan",
    },
    "tasks": {"task drops": "losses:draw_task_drops"},
    "layers": {"layer counts": "replicates:draw_layer_counts"},
    "tokens": {"token groups": "token_shares:draw_token_groups"},
}
"""For a kind of figure the function that draws it from each kind of result, loaded when needed."""


@dataclass(frozen=True, kw_only=True)
class FigureOptions(Options):
    """What a figure shows."""

    title: ClassVar[str] = "Output"

    kind: Annotated[
        str | None,
        Option(
            "What it shows; if left out, the usual figure of the results.",
            words="the kind of figure",
            choices=tuple(KINDS),
        ),
    ] = None
    role: Annotated[
        str | None,
        Option("Role, by id, words or relation; if left out, the one with the clearest head."),
    ] = None
    head: Annotated[str | None, Option("Head of the kind head, as LAYER-HEAD.")] = None
    checkpoint: Annotated[str | None, Option("Checkpoint of a comparison.")] = None
    estimator: Annotated[str | None, Option("Estimator of importance.")] = None
    measure: Annotated[str | None, Option("Measure of curves and tasks.")] = None
    heading: Annotated[str | None, Option("Title above the figure.", flag="--title")] = None
    width: Annotated[
        float | None, Option("Width in inches; 3.3 is a usual column of a paper.", above=0)
    ] = None
