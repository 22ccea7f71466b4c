"""``headroles prune``: a smaller model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headroles.cli import console
from headroles.cli.app import app
from headroles.cli.arguments import ModelArgument, OptionalTask, Out
from headroles.cli.flags import FolderOptions, ResumeOptions, command
from headroles.cli.keeping import resumable_folder
from headroles.studies.pruning.options import PruneOptions


@command(app)
def prune(
    model: ModelArgument,
    out: Out,
    options: PruneOptions,
    output: FolderOptions,
    resuming: ResumeOptions,
    task: OptionalTask = None,
    test: Annotated[
        Path | None,
        typer.Option("--test", help="Examples to measure on.", rich_help_panel="Task"),
    ] = None,
) -> None:
    """Remove heads from MODEL and write what is left.

    What is left may be fine-tuned before. The folder is a model for every command, in which heads
    keep their numbers.
    """
    from headroles.models.saved_models import PrunedModel
    from headroles.studies.pruning.pruning import prune as prune_heads

    opened = resumable_folder(
        out, [PrunedModel], output, resuming, options, "pruning", "steps", changed=model
    )
    with opened as (folder, asked):
        result = prune_heads(model, folder, asked, task, test)
    console.finish(out, output, result)
