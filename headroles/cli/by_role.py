"""``headroles by-role``: whether heads with a role matter more."""

from __future__ import annotations

from dataclasses import replace

from headroles.cli import console
from headroles.cli.app import app
from headroles.cli.arguments import ModelArgument, Out, TaskArgument
from headroles.cli.flags import FolderOptions, command
from headroles.studies.removal import RoleImportanceOptions


@command(app, without=["family", "clusters"])  # examples of a task have no documents
def by_role(
    model: ModelArgument,
    task: TaskArgument,
    out: Out,
    options: RoleImportanceOptions,
    output: FolderOptions,
) -> None:
    """Test whether heads with a role matter more.

    They are compared with other heads of their layers: by importance, by the loss without each, and
    by the loss without all of them against as many others.
    """
    from headroles.results import new_folder, write_together
    from headroles.studies.removal import RoleImportance
    from headroles.studies.removal import role_importance as compare

    with new_folder(out, [RoleImportance], output.overwrite) as folder:
        with console.progress_bar("roles") as on_progress:
            result = compare(model, task, replace(options, on_progress=on_progress))
        write_together(folder, [result])
    console.finish(out, output.json, result.facts(), result.shown())
