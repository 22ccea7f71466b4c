"""``headroles prune``: a smaller model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from headroles.cli import console
from headroles.cli.app import app
from headroles.cli.arguments import ModelArgument, OptionalTask, Out
from headroles.cli.flags import FolderOptions, command
from headroles.studies.removal import PruneOptions


@command(app)
def prune(
    model: ModelArgument,
    out: Out,
    options: PruneOptions,
    output: FolderOptions,
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
    from headroles.studies.removal import prune as prune_heads

    with console.progress_bar("fine-tuning") as on_progress:
        asked = replace(options, on_progress=on_progress)
        result = prune_heads(model, out, asked, task, test, output.overwrite)
    console.finish(out, output.json, result.facts(), iter(result.shown()))
