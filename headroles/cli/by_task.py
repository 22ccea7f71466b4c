"""``headroles by-task``: which layers or heads matter for which task."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headroles.cli.app import app
from headroles.cli.arguments import Out
from headroles.cli.flags import ReportedOptions, command
from headroles.cli.keeping import fill
from headroles.cli.replicate import names_of
from headroles.studies.importance.options import TaskDropOptions


@command(app)
def by_task(
    ablated: Annotated[
        list[Path],
        typer.Argument(metavar="DIR DIR", help="Folders that ablate wrote, one for each task."),
    ],
    out: Out,
    options: TaskDropOptions,
    output: ReportedOptions,
    names: Annotated[
        str | None,
        typer.Option(
            "--names",
            help="Names of the tasks, separated by commas; left out: those of the folders.",
            rich_help_panel="Task",
        ),
    ] = None,
) -> None:
    """Compare what is lost without heads in several tasks.

    Tasks may be languages or genres, of one model or each of its own: the relative drop as a matrix
    of layers, thirds of the layers or heads by task.
    """
    from headroles.options import split_names
    from headroles.studies.importance.ablation import Ablations
    from headroles.studies.importance.by_task import TaskDrops, compare_tasks

    def work() -> TaskDrops:
        called = names_of(ablated) if names is None else split_names(names)
        return compare_tasks([Ablations.load(one) for one in ablated], called, options)

    fill(out, TaskDrops, output, work)
