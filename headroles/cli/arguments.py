"""Arguments of several commands: models, corpora, folders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ModelArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help="Hub id or folder of an encoder.")
]
CorpusArgument = Annotated[
    list[Path], typer.Argument(metavar="CORPUS", help="CoNLL-U files or folders, or text.")
]
TaskArgument = Annotated[
    Path,
    typer.Argument(
        metavar="TASK", help="Tab-separated labelled text, or plain text for a masked LM."
    ),
]
OptionalTask = Annotated[
    Path | None,
    typer.Argument(metavar="[TASK]", help="Examples that orders of importance are found with."),
]
ScoredArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="Folder that score or classify wrote.")
]
Out = Annotated[
    Path, typer.Option("--out", help="Folder for the results.", rich_help_panel="Output")
]
OptionalOut = Annotated[
    Path | None,
    typer.Option(
        "--out", help="Folder to save the result in; left out: none.", rich_help_panel="Output"
    ),
]
