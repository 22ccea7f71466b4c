"""``headroles pruning-curves``: what is lost as more and more heads go, order by order."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headroles.cli.app import app
from headroles.cli.arguments import ModelArgument, OptionalTask, Out
from headroles.cli.flags import ReportedOptions, ResumeOptions, command
from headroles.cli.keeping import fill_resumably
from headroles.studies.pruning.curve_options import CurveOptions


@command(app)
def pruning_curves(
    model: ModelArgument,
    test: Annotated[
        Path,
        typer.Option("--test", help="Examples to measure on.", rich_help_panel="Task"),
    ],
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
