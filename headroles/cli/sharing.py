"""``headroles collaborate`` and ``redundancy``: queries and keys that heads share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headroles.cli import console
from headroles.cli.flags import ModelArgument, OptionalOut, Out, ReportedOptions, given_flags
from headroles.cli.running import fill
from headroles.corpus import CorpusOptions
from headroles.errors import UsageError
from headroles.passes.options import PassOptions
from headroles.studies.sharing.options import CollaborateOptions, RedundancyOptions
from headroles.tasks.options import TaskOptions

if TYPE_CHECKING:
    from headroles.corpus import Corpus

Sample = Annotated[
    list[Path] | None,
    typer.Option(
        "--sample",
        metavar="FILE",
        help="Text to fit and to measure with; the bundled treebank if left out. Repeatable.",
        rich_help_panel="Corpus",
    ),
]
TaskFile = Annotated[
    Path | None,
    typer.Option(
        "--task",
        metavar="FILE",
        help="Examples of what the model was trained for, to measure it before and after; columns "
        "and header are then those of this file.",
        rich_help_panel="Task",
    ),
]


def collaborate(
    context: typer.Context,
    model: ModelArgument,
    reading: CorpusOptions,
    options: CollaborateOptions,
    output: ReportedOptions,
    out: Out,
    sample: Sample = None,
    task: TaskFile = None,
) -> None:
    """Make a model whose heads share queries and keys. DIR can be used wherever MODEL can.

    By rank: headroles collaborate MODEL --rank 192 --out DIR

    By error: headroles collaborate MODEL --error 0.1 --out DIR

    With the cost for a task: headroles collaborate MODEL --rank 192 --task dev.tsv --out DIR
    """
    read = _of_sample(context, reading, task)
    if task is None:
        _refuse_idle_task(context)
    from headroles.models.loading.saved_models import model_folder
    from headroles.results.stored import write_together
    from headroles.studies.sharing.collaborate import (
        Collaboration,
        CollaborativeModel,
        collaborate_heads,
    )

    kinds = (CollaborativeModel, Collaboration)
    with (
        model_folder(out, model, kinds, output.overwrite) as folder,
        console.progress_bar("collaborating", "steps") as on_progress,
    ):
        watched = console.watched(_open(sample, read), on_progress)
        shown = replace(options, on_progress=on_progress)
        made, table = collaborate_heads(model, watched, task=task, options=shown)
        write_together(folder, [made, table])
    console.finish(out, output, table)


def redundancy(
    model: ModelArgument,
    options: RedundancyOptions,
    output: ReportedOptions,
    out: OptionalOut = None,
) -> None:
    """Tell how much the queries and keys of MODEL's heads have in common. Reads no text."""
    from headroles.studies.sharing.redundancy import Redundancy, find_redundancy

    fill(out, Redundancy, output, lambda: find_redundancy(model, options))


def _of_sample(context: typer.Context, reading: CorpusOptions, task: Path | None) -> CorpusOptions:
    """Return the options that read the sample: with a task, columns and header are the task's."""
    if task is not None:
        return replace(reading, text_columns=None, header=None)
    header = reading.header if "--header" in given_flags(context, CorpusOptions) else None
    return replace(reading, header=header)


def _refuse_idle_task(context: typer.Context) -> None:
    """Raise UsageError for options of a task without one."""
    others = (*given_flags(context, PassOptions), *given_flags(context, CorpusOptions))
    given = [flag for flag in given_flags(context, TaskOptions) if flag not in others]
    if given:
        raise UsageError(
            f"{', '.join(given)} without a task: name its file with --task, or leave them out"
        )


def _open(sample: list[Path] | None, reading: CorpusOptions) -> Corpus | None:
    """Return the sample; None for the bundled one."""
    from headroles.corpus import open_corpus

    if not sample:
        if reading != CorpusOptions():
            raise UsageError(
                "options of reading text are given without text; name it with --sample"
            )
        return None
    return open_corpus(sample, reading)
