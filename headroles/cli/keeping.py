"""How commands keep and show the result of a study."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from headroles.cli import console
from headroles.cli.flags import ReportedOptions
from headroles.errors import UsageError

if TYPE_CHECKING:
    from headroles.cli.flags import FolderOptions, OutputOptions
    from headroles.results import Result

R = TypeVar("R")

OptionalOut = Annotated[
    Path | None,
    typer.Option(
        "--out", help="Folder to save the result in; left out: none.", rich_help_panel="Output"
    ),
]


def refuse_idle_overwrite(out: Path | None, output: FolderOptions, what: str) -> None:
    """Raise UsageError for what only a folder can have, without one: to ask before the work."""
    if out is not None:
        return
    if output.overwrite:
        raise UsageError(f"there is nothing to replace: name a folder for the {what} with --out")
    if isinstance(output, ReportedOptions) and output.report:
        raise UsageError(f"the page stands beside its {what}: name a folder for it with --out")


def show(result: Result, output: OutputOptions) -> None:
    """Print a result that is kept nowhere, for people or for scripts."""
    if output.json:
        console.print_json(result.facts())
    else:
        console.print_shown(result.shown())


def keep_or_show(result: Result, out: Path | None, output: FolderOptions) -> None:
    """Save a result if there is a folder for it, and print it."""
    if out is None:
        show(result, output)
        return
    result.save(out, output.overwrite)
    _finish(result, out, output)


def fill(out: Path, kind: type[Result], output: FolderOptions, work: Callable[[], Result]) -> None:
    """Do long work whose result, of this ``kind``, goes into a folder, and print it.

    The folder is claimed before the work begins.
    """
    from headroles.results import new_folder, write_together

    with new_folder(out, [kind], output.overwrite) as folder:
        result = work()
        write_together(folder, [result])
    _finish(result, out, output)


def _finish(result: Result, out: Path, output: FolderOptions) -> None:
    """Print what was done, and write the page about it where that can be asked for."""
    if isinstance(output, ReportedOptions):
        console.finish_with_report(out, output, result.facts(), result.shown())
    else:
        console.finish(out, output.json, result.facts(), result.shown())


def with_progress(what: str, study: Callable[..., R], *subjects: Any, options: Any) -> R:
    """What a study gives for its subjects and options, its progress shown on the way."""
    with console.progress_bar(what) as on_progress:
        watched = (console.watched(one, on_progress) for one in subjects)
        return study(*watched, replace(options, on_progress=on_progress))
