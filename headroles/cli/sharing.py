"""``headroles collaborate``: a model whose heads share queries and keys."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headroles.cli import console, flags
from headroles.cli.studies import fill_folder, text_beside, write_results
from headroles.corpus import CorpusOptions
from headroles.errors import UsageError
from headroles.passes.options import PassOptions
from headroles.studies.sharing.options import CollaborateOptions
from headroles.tasks.options import TaskOptions


def collaborate(
    model: flags.Model,
    reading: CorpusOptions,
    options: CollaborateOptions,
    output: flags.ReportedOptions,
    out: flags.Out,
    sample: Annotated[
        list[Path] | None,
        typer.Option(
            "--sample",
            metavar="FILE",
            help="Text to fit and to measure with; the bundled treebank if left out. Repeatable.",
            rich_help_panel="Corpus",
        ),
    ] = None,
    task: Annotated[
        Path | None,
        typer.Option(
            "--task",
            metavar="FILE",
            help="Examples of what the model was trained for, to measure it before and after; "
            "columns and header are then those of this file.",
            rich_help_panel="Task",
        ),
    ] = None,
) -> None:
    """Make a model whose heads share queries and keys. DIR can be used wherever MODEL can.

    By rank: headroles collaborate MODEL --rank 192 --out DIR

    By error: headroles collaborate MODEL --error 0.1 --out DIR

    With the cost for a task: headroles collaborate MODEL --rank 192 --task dev.tsv --out DIR
    """
    from headroles.corpus import open_corpus
    from headroles.studies.sharing.collaborate import (
        Collaboration,
        CollaborativeModel,
        collaborate_heads,
    )

    reading = text_beside(task, reading)
    of_others = {*flags.given(options, PassOptions), "--text-columns", "--header"}
    idle = ", ".join(one for one in flags.given(options, TaskOptions) if one not in of_others)
    if task is None and idle:
        raise UsageError(f"{idle} without a task: name its file with --task, or leave them out")
    if not sample and reading != CorpusOptions():
        raise UsageError("options of reading text are given without text; name it with --sample")
    texts = open_corpus(sample, reading) if sample else None
    kinds = [CollaborativeModel, Collaboration]
    filled = fill_folder(out, kinds, output, options, "collaborating", "steps", model=model)
    with filled as (folder, running):
        watched = console.watched(texts, running.on_progress)
        made, table = collaborate_heads(model, watched, task=task, options=running)
        write_results(folder, made, table)
    console.finish(out, output, table)
