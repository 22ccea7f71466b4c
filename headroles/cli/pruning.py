"""Commands of pruning: losses as heads are removed, and smaller models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headroles.cli import console
from headroles.cli.flags import (
    ModelArgument,
    OptionalTask,
    Out,
    ReportedOptions,
    ResumeOptions,
    TaskArgument,
)
from headroles.cli.running import resumable
from headroles.studies.pruning.gate import GateOptions, Gating, gate_heads
from headroles.studies.pruning.prune import PruneOptions, Pruning, prune_heads
from headroles.studies.pruning.pruning_curves import (
    CurveOptions,
    PruningCurves,
    find_pruning_curves,
)

_TEST = typer.Option("--test", help="Examples to measure on.", rich_help_panel="Task")
TestFile = Annotated[Path, _TEST]
OptionalTestFile = Annotated[Path | None, _TEST]


def pruning_curves(
    model: ModelArgument,
    test_file: TestFile,
    out: Out,
    options: CurveOptions,
    output: ReportedOptions,
    resuming: ResumeOptions,
    task: OptionalTask = None,
) -> None:
    """Measure MODEL with more and more heads removed.

    Orders of removing heads are compared with one of them, at every share and over all. No model is
    written; write one with headroles prune.
    """
    from headroles.results.stored import new_folder, write_together

    opened = new_folder(out, [PruningCurves], output.overwrite, resuming.resume)
    with resumable(opened, options, "pruning") as (folder, resumed):
        curves = find_pruning_curves(model, test_file, task, resumed)
        write_together(folder, [curves])
    console.finish(out, output, curves)


def prune(
    model: ModelArgument,
    out: Out,
    options: PruneOptions,
    output: ReportedOptions,
    resuming: ResumeOptions,
    task: OptionalTask = None,
    test_file: OptionalTestFile = None,
) -> None:
    """Remove heads from MODEL and write the smaller model.

    It may be fine-tuned before. The folder is a model for every command, in which heads keep their
    numbers.
    """
    from headroles.models.loading.saved_models import PrunedModel, model_folder

    opened = model_folder(out, model, [PrunedModel, Pruning], output.overwrite, resuming.resume)
    with resumable(opened, options, "pruning", "steps") as (folder, resumed):
        result = prune_heads(model, out, task=task, test=test_file, options=resumed, folder=folder)
    console.finish(out, output, result)


def gate(
    model: ModelArgument,
    task: TaskArgument,
    out: Out,
    options: GateOptions,
    output: ReportedOptions,
    resuming: ResumeOptions,
    test_file: OptionalTestFile = None,
) -> None:
    """Learn which heads of MODEL stay for TASK.

    All gates are open at first. They close one after the other, until as many heads stay as were
    asked for. The folder is a model for every command, with these heads alone. Gates are learnt
    with several seeds, which may keep different heads.
    """
    from headroles.models.loading.saved_models import PrunedModel, model_folder

    opened = model_folder(out, model, [PrunedModel, Gating], output.overwrite, resuming.resume)
    with resumable(opened, options, "gates", "steps") as (folder, resumed):
        result = gate_heads(model, task, out, test=test_file, options=resumed, folder=folder)
    console.finish(out, output, result)
