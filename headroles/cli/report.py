"""``headroles report``: one HTML file about the results in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headroles.cli import console
from headroles.cli.app import app
from headroles.cli.flags import command
from headroles.studies.options import ReportOptions


@command(app)
def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of results.")],
    options: ReportOptions,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="HTML file; left out: report.html in DIR.",
            rich_help_panel="Output",
        ),
    ] = None,
) -> None:
    """Make one HTML file of results, to read and to send."""
    from headroles.report.pages import write_report

    with console.working("drawing"):
        file = write_report(folder, out, options.roles or (), options.model)
    console.say(f"written to {file}")
