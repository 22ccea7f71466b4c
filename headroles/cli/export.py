"""``headroles export``: a stored table in another format."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from headroles.cli.app import app
from headroles.cli.flags import command
from headroles.formats import FORMATS


@command(app)
def export(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder that holds a table of results.")
    ],
    fmt: Annotated[
        str,
        typer.Option("--format", metavar="|".join(FORMATS), help="Of the table."),
    ] = "csv",
    view: Annotated[
        str,
        typer.Option(
            "--view",
            help="Which of its tables: long has a row per test, and of roles wide one per head; "
            "any other word lists them all.",
        ),
    ] = "long",
    value: Annotated[
        str | None,
        typer.Option("--value", help="What a wide table shows: a column of the long one."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="File to write; standard output if left out.")
    ] = None,
) -> None:
    """Print the table of results in DIR. With --out it is written to a file instead."""
    from headroles import storage
    from headroles.studies.stored import load_table

    content = load_table(folder).export(fmt, view, value)
    if out is None:
        sys.stdout.buffer.write(content)
    else:
        storage.write_bytes(out, content)
