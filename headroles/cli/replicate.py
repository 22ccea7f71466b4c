"""``headroles replicate``: in how many corpora, or checkpoints, a head has a role."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headroles.cli.app import app
from headroles.cli.arguments import Out
from headroles.cli.flags import ReportedOptions, command
from headroles.cli.keeping import fill
from headroles.studies.replication.options import ReplicateOptions

if TYPE_CHECKING:
    from headroles.results.result import Result


@command(app)
def replicate(
    scored: Annotated[
        list[Path],
        typer.Argument(metavar="DIR DIR", help="Folders that score or classify wrote."),
    ],
    out: Out,
    options: ReplicateOptions,
    output: ReportedOptions,
    names: Annotated[
        str | None,
        typer.Option(
            "--names",
            help="What to call the corpora, separated by commas; left out: as their folders.",
            rich_help_panel="Tests",
        ),
    ] = None,
) -> None:
    """Test in how many of several corpora heads have a role.

    Corpora may be languages that one multilingual model reads.
    """
    from headroles.options import split_names
    from headroles.scoring.scores import HeadScores
    from headroles.studies.replication.replicate import kind_of, replicate_roles

    def work() -> Result:
        sets = [HeadScores.load(one) for one in scored]
        called = names_of(scored) if names is None else split_names(names)
        return replicate_roles(sets, called, options)

    fill(out, kind_of(options), output, work)


def names_of(folders: list[Path]) -> list[str]:
    """Last parts of the paths, or whole paths where these are not different."""
    short = [folder.resolve().name for folder in folders]
    return short if len(set(short)) == len(short) else [str(folder) for folder in folders]
