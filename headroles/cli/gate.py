"""``headroles gate``: a smaller model, with the heads that learnt gates leave open."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headroles.cli import console
from headroles.cli.app import app
from headroles.cli.arguments import ModelArgument, Out, TaskArgument
from headroles.cli.flags import FolderOptions, ResumeOptions, command
from headroles.cli.keeping import resumable_folder
from headroles.studies.pruning.gate_options import GateOptions


@command(app)
def gate(
    model: ModelArgument,
    task: TaskArgument,
    out: Out,
    options: GateOptions,
    output: FolderOptions,
    resuming: ResumeOptions,
    test: Annotated[
        Path | None,
        typer.Option("--test", help="Examples to measure on.", rich_help_panel="Task"),
    ] = None,
) -> None:
    """Learn which heads of MODEL stay for TASK.

    Gates that are open at first close one after the other, until as many heads stay as were asked
    for; what is left is written, a model for every command. Gates are learnt with several seeds,
    which may come to other heads.
    """
    from headroles.models.saved_models import PrunedModel
    from headroles.studies.pruning.gating import gate as learn

    opened = resumable_folder(
        out, [PrunedModel], output, resuming, options, "gates", "steps", changed=model
    )
    with opened as (folder, asked):
        result = learn(model, task, folder, asked, test)
    console.finish(out, output, result)
