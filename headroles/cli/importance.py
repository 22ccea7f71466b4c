"""``headroles importance``: how the loss of a task depends on each head."""

from __future__ import annotations

from headroles.cli.app import app
from headroles.cli.arguments import ModelArgument, Out, TaskArgument
from headroles.cli.flags import ReportedOptions, ResumeOptions, command
from headroles.cli.keeping import fill_resumably
from headroles.studies.removal import ImportanceOptions


@command(app)
def importance(
    model: ModelArgument,
    task: TaskArgument,
    out: Out,
    options: ImportanceOptions,
    output: ReportedOptions,
    resuming: ResumeOptions,
) -> None:
    """Tell how much the loss of TASK depends on each head.

    MODEL was trained for the task. Take examples that it was trained on, or others that nothing is
    tested on.
    """
    from headroles.studies.removal import Importance
    from headroles.studies.removal import importance as find

    fill_resumably(
        out, Importance, output, resuming, "importance", find, model, task, options=options
    )
