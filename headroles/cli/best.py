"""``headroles best``: the best head of each relation, on unseen documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headroles.cli import console
from headroles.cli.app import app
from headroles.cli.arguments import ScoredArgument
from headroles.cli.flags import FolderOptions, command
from headroles.errors import UsageError
from headroles.testing import UnitOptions


@command(app)
def best(
    scored: ScoredArgument,
    options: UnitOptions,
    output: FolderOptions,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder to save the table in.", rich_help_panel="Output"),
    ] = None,
) -> None:
    """Tell which head finds each relation best, in unseen text."""
    from headroles.scoring import HeadScores
    from headroles.studies import best_heads

    if output.overwrite and out is None:
        raise UsageError("there is nothing to replace: name a folder for the table with --out")
    found = best_heads(HeadScores.load(scored), options)
    if out is not None:
        found.save(out, output.overwrite)
        console.finish(out, output.json, found.facts(), found.shown())
    elif output.json:
        console.print_json(found.facts())
    else:
        console.print_shown(found.shown())
