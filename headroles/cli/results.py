"""Commands that read results: summaries, pages, figures, tables."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from headroles import storage
from headroles.cli import console, flags
from headroles.drawing.saving import check_figure_file, save_figure
from headroles.errors import StorageError, UsageError
from headroles.options import Convert, Options, split_names
from headroles.report.pages import FigureOptions, draw_figure, write_report
from headroles.results.formats import ENDINGS, FORMATS
from headroles.studies.inspection.origin import ReportOptions
from headroles.wording import printable_lines

Results = Annotated[Path, flags.argument("DIR", "Folder of results.")]


def show(folder: Results, output: flags.OutputOptions) -> None:
    """Print the summary of results again."""
    console.finish(_load(folder), output)


def _load(folder: Path) -> Any:
    """Load the table in a folder, or its scores if there is no other."""
    from headroles.results.result import load
    from headroles.scoring.scores import HeadScores

    if storage.kinds_in(folder) == (HeadScores.kind,):
        return HeadScores.load(folder)
    return load(folder)


def report(
    folder: Results,
    options: ReportOptions,
    out: Annotated[
        Path | None,
        flags.option("--out", "File to write; left out: report.html in DIR.", metavar="FILE"),
    ] = None,
) -> None:
    """Make one HTML file of results, to read and to send."""
    with console.drawing():
        file = write_report(folder, out, options=options)
    console.say(f"written to {file}")


def figure(
    folder: Results,
    options: FigureOptions,
    out: Annotated[Path, flags.option("--out", "File: .pdf, .svg or .png.", metavar="FILE")],
) -> None:
    """Draw a figure of results for a paper."""
    check_figure_file(out)
    with console.drawing(), console.shown_warnings():
        drawn = draw_figure(folder, options)
        file = save_figure(drawn, out)
    titles = [title for ax in drawn.axes if (title := ax.get_title())]
    if options.role is not None and len(titles) == 1:  # it may name several roles
        console.say(f"drawn: {' '.join(titles[0].split())}")
    console.say(f"written to {file}")


@dataclass(frozen=True, kw_only=True)
class ExportOptions(Options):
    """Options of the export of a table."""

    title: ClassVar[str] = "Output"

    format: Literal["csv", "parquet", "json", "markdown", "latex", "html"] | None = None
    """Of the table; left out: as the file of --out ends, or csv (json of the view heads)."""
    view: str = "long"
    """Which of its tables: long has a row per test, and of roles wide one per head, and heads is
    {role: [[layer, head], ...]}; any other word lists them all."""
    value: str | None = None
    """What a wide table shows: a column of the long one."""
    columns: Annotated[tuple[str, ...] | None, Convert(split_names)] = None
    """Only these columns of the table, separated by commas, in this order."""
    role: Annotated[tuple[str, ...] | None, Convert(split_names)] = None
    """Only these roles (ids, words, or relations in both directions), separated by commas; * stands
    for anything, as in 'syntactic*'."""
    layer: Annotated[tuple[str, ...] | None, Convert(split_names)] = None
    """Only these layers, separated by commas."""
    only_assigned: bool = False
    """Only heads that have the role."""
    beyond: Literal["distance", "class", "attractors"] | None = None
    """Only heads that have the role with evidence up to this step."""
    caption: str | None = None
    """Caption of a LaTeX table."""
    label: str | None = None
    """Label of a LaTeX table, for references to it."""


def export(
    folder: Results,
    options: ExportOptions,
    out: Annotated[
        Path | None, flags.option("--out", "File to write; left out: standard output.")
    ] = None,
) -> None:
    """Print the table of results in DIR, or write it to a file."""
    fmt = _format(options.format, out, "json" if options.view == "heads" else FORMATS[0])
    if out is not None and out.resolve().name in storage.result_files(out.resolve().parent):
        raise StorageError(
            f"{out} is a file of the results in {out.resolve().parent}, which it would replace; "
            "name another file"
        )
    whole = _load(folder)
    is_chosen = options.only_assigned or options.beyond is not None
    table = whole.where(options.role, options.layer, options.only_assigned, options.beyond)
    is_empty = not len(table.view(options.view, options.value))
    if is_empty and not is_chosen and len(whole.view(options.view, options.value)):
        raise UsageError(f"the view {options.view} has no rows of this role and layer")
    words = {"caption": options.caption, "label": options.label}
    content = table.export(fmt, options.view, options.value, options.columns, **words)
    if out is not None:
        storage.write_bytes(out, content)
        return
    if sys.stdout.isatty():
        if fmt == "parquet":
            raise UsageError("Parquet is no text for a terminal; name a file with --out")
        content = printable_lines(content.decode()).encode()
    sys.stdout.buffer.write(content)


def _format(wanted: str | None, out: Path | None, usual: str) -> str:
    """Return the format: the one asked for, or that of the file extension, or the usual one."""
    if out is None or storage.is_special(out):
        return wanted or usual
    ending = ENDINGS.get(out.suffix.lower())
    if wanted and ending and wanted != ending:
        raise UsageError(f"{out} ends as {ending} does, and --format says {wanted}; leave one out")
    if chosen := wanted or ending:
        return chosen
    endings = ", ".join(ENDINGS)
    raise UsageError(f"{out} has no known file extension ({endings}); name it with --format")
