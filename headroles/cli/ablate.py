"""``headroles ablate``: what is lost without heads, tested."""

from __future__ import annotations

from dataclasses import replace

from headroles.cli import console
from headroles.cli.app import app
from headroles.cli.arguments import ModelArgument, Out, TaskArgument
from headroles.cli.flags import FolderOptions, command
from headroles.studies.removal import AblateOptions


@command(app, without=["family", "clusters"])  # examples of a task have no documents
def ablate(
    model: ModelArgument,
    task: TaskArgument,
    out: Out,
    options: AblateOptions,
    output: FolderOptions,
) -> None:
    """Test what MODEL loses in TASK without heads.

    Without single heads, all heads of a layer but one, whole layers, or all heads with a role.
    """
    from headroles.results import new_folder, write_together
    from headroles.studies.removal import Ablations
    from headroles.studies.removal import ablate as ablate_heads

    with new_folder(out, [Ablations], output.overwrite) as folder:
        with console.progress_bar("ablation") as on_progress:
            result = ablate_heads(model, task, replace(options, on_progress=on_progress))
        write_together(folder, [result])
    console.finish(out, output.json, result.facts(), result.shown())
