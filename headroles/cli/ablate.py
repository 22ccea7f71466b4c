"""``headroles ablate``: what is lost without heads, tested."""

from __future__ import annotations

from headroles.cli.app import app
from headroles.cli.arguments import ModelArgument, Out, TaskArgument
from headroles.cli.flags import ReportedOptions, ResumeOptions, command
from headroles.cli.keeping import fill_resumably
from headroles.studies.removal import AblateOptions


@command(app)
def ablate(
    model: ModelArgument,
    task: TaskArgument,
    out: Out,
    options: AblateOptions,
    output: ReportedOptions,
    resuming: ResumeOptions,
) -> None:
    """Test what MODEL loses in TASK without heads.

    Without single heads, all heads of a layer but one, whole layers, or all heads with a role.
    """
    from headroles.studies.removal import Ablations
    from headroles.studies.removal import ablate as ablate_heads

    fill_resumably(
        out, Ablations, output, resuming, "ablation", ablate_heads, model, task, options=options
    )
