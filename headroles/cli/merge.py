"""``headroles merge``: the scores of a corpus from those of all its parts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headroles.cli.app import app
from headroles.cli.arguments import Out
from headroles.cli.flags import FolderOptions, command
from headroles.cli.keeping import finish_scoring


@command(app)
def merge(
    parts: Annotated[
        list[Path],
        typer.Argument(metavar="DIR DIR", help="Folders that score --part wrote, all of them."),
    ],
    out: Out,
    output: FolderOptions,
) -> None:
    """Join parts of a corpus that were scored apart."""
    from headroles.results.stored import new_folder
    from headroles.scoring.merging import merge_scores
    from headroles.scoring.scores import HeadScores

    with new_folder(out, [HeadScores], output.overwrite) as folder:
        record = merge_scores(parts, folder)
    finish_scoring(out, output, record)
