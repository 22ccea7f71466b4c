"""``headroles figure``: a figure of results for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headroles.cli import console
from headroles.cli.app import app
from headroles.cli.flags import command
from headroles.drawing.figure_options import FigureOptions


@command(app)
def figure(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of results.")],
    options: FigureOptions,
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="FILE", help="File: .pdf, .svg or .png.", rich_help_panel="Output"
        ),
    ],
) -> None:
    """Draw a figure of results for a paper."""
    from headroles.report.figures import write_figure

    with console.working("drawing"):
        file = write_figure(folder, out, options)
    console.say(f"written to {file}")
