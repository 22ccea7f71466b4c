"""Commands of pruning: what is lost as heads are removed, and smaller models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headroles.cli import console
from headroles.cli.app import app
from headroles.cli.arguments import ModelArgument, OptionalTask, Out, TaskArgument
from headroles.cli.flags import FolderOptions, ReportedOptions, ResumeOptions, command
from headroles.cli.keeping import fill_resumably, resumable_folder
from headroles.studies.pruning.curve_options import CurveOptions
from headroles.studies.pruning.gate_options import GateOptions
from headroles.studies.pruning.options import PruneOptions

_TEST = typer.Option("--test", help="Examples to measure on.", rich_help_panel="Task")
TestFile = Annotated[Path, _TEST]
OptionalTestFile = Annotated[Path | None, _TEST]


@command(app)
def pruning_curves(
    model: ModelArgument,
    test: TestFile,
    out: Out,
    options: CurveOptions,
    output: ReportedOptions,
    resuming: ResumeOptions,
    task: OptionalTask = None,
) -> None:
    """Measure MODEL with more and more heads removed.

    Orders of removing heads are compared with one of them, at every share and over all. Models are
    not written; headroles prune writes the one that is wanted.
    """
    from headroles.studies.pruning.curves import PruningCurves, find_pruning_curves

    made = (PruningCurves, output, resuming, "pruning", find_pruning_curves)
    fill_resumably(out, *made, model, test, task, options=options)


@command(app)
def prune(
    model: ModelArgument,
    out: Out,
    options: PruneOptions,
    output: FolderOptions,
    resuming: ResumeOptions,
    task: OptionalTask = None,
    test: OptionalTestFile = None,
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


@command(app)
def gate(
    model: ModelArgument,
    task: TaskArgument,
    out: Out,
    options: GateOptions,
    output: FolderOptions,
    resuming: ResumeOptions,
    test: OptionalTestFile = None,
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
