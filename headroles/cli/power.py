"""``headroles power``: how many examples it takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headroles.cli import console
from headroles.cli.app import app
from headroles.cli.arguments import ScoredArgument
from headroles.cli.flags import FolderOptions, command
from headroles.errors import UsageError
from headroles.studies import PlanOptions


@command(app)
def power(
    scored: ScoredArgument,
    options: PlanOptions,
    output: FolderOptions,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder to save the plan in.", rich_help_panel="Output"),
    ] = None,
) -> None:
    """Tell how many examples it takes to decide each role. The scores in DIR are the pilot."""
    from headroles.scoring import HeadScores
    from headroles.studies import plan

    if output.overwrite and out is None:
        raise UsageError("there is nothing to replace: name a folder for the plan with --out")
    planned = plan(HeadScores.load(scored), options)
    if out is not None:
        planned.save(out, output.overwrite)
        console.finish(out, output.json, planned.facts(), planned.shown())
    elif output.json:
        console.print_json(planned.facts())
    else:
        console.print_shown(planned.shown())
