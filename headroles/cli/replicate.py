"""``headroles replicate``: in how many corpora, or checkpoints, a head has a role."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headroles.cli import console
from headroles.cli.app import app
from headroles.cli.arguments import Out
from headroles.cli.flags import FolderOptions, command
from headroles.studies import ReplicateOptions


@command(app)
def replicate(
    scored: Annotated[
        list[Path],
        typer.Argument(metavar="DIR DIR", help="Folders that score or classify wrote."),
    ],
    out: Out,
    options: ReplicateOptions,
    output: FolderOptions,
) -> None:
    """Test in how many of several corpora heads have a role."""
    from headroles.results import new_folder, write_together
    from headroles.scoring import HeadScores
    from headroles.studies import kind_of
    from headroles.studies import replicate as replicate_roles

    with new_folder(out, [kind_of(options)], output.overwrite) as folder:
        sets = [HeadScores.load(one) for one in scored]
        result = replicate_roles(sets, names_of(scored), options)
        write_together(folder, [result])
    console.finish(out, output.json, result.facts(), result.shown())


def names_of(folders: list[Path]) -> list[str]:
    """Last parts of the paths, or whole paths where these are not different."""
    short = [folder.resolve().name for folder in folders]
    return short if len(set(short)) == len(short) else [str(folder) for folder in folders]
