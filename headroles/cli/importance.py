"""``headroles importance``: how the loss of a task depends on each head."""

from __future__ import annotations

from dataclasses import replace

from headroles.cli import console
from headroles.cli.app import app
from headroles.cli.arguments import ModelArgument, Out, TaskArgument
from headroles.cli.flags import FolderOptions, command
from headroles.studies.removal import ImportanceOptions


@command(app)
def importance(
    model: ModelArgument,
    task: TaskArgument,
    out: Out,
    options: ImportanceOptions,
    output: FolderOptions,
) -> None:
    """Tell how much the loss of TASK depends on each head.

    MODEL was trained for the task. Take examples that it was trained on, or others that nothing is
    tested on.
    """
    from headroles.results import new_folder, write_together
    from headroles.studies.removal import Importance
    from headroles.studies.removal import importance as find

    with new_folder(out, [Importance], output.overwrite) as folder:
        with console.progress_bar("importance") as on_progress:
            result = find(model, task, replace(options, on_progress=on_progress))
        write_together(folder, [result])
    console.finish(out, output.json, result.facts(), result.shown())
