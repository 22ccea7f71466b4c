"""How commands keep and show the result of a study."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from headroles.cli import console
from headroles.errors import UsageError

if TYPE_CHECKING:
    from headroles.cli.flags import FolderOptions, OutputOptions
    from headroles.results import Result
    from headroles.tasks import Parts

R = TypeVar("R")

OptionalOut = Annotated[
    Path | None,
    typer.Option(
        "--out", help="Folder to save the result in; left out: none.", rich_help_panel="Output"
    ),
]


def refuse_idle_overwrite(out: Path | None, output: FolderOptions, what: str) -> None:
    """Raise UsageError for ``--overwrite`` without a folder: to ask before the work."""
    if output.overwrite and out is None:
        raise UsageError(f"there is nothing to replace: name a folder for the {what} with --out")


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
    console.finish(out, output.json, result.facts(), result.shown())


def fill(out: Path, kind: type[Result], output: FolderOptions, work: Callable[[], Result]) -> None:
    """Do long work whose result, of this ``kind``, goes into a folder, and print it.

    The folder is claimed before the work begins.
    """
    from headroles.results import new_folder, write_together

    with new_folder(out, [kind], output.overwrite) as folder:
        result = work()
        write_together(folder, [result])
    console.finish(out, output.json, result.facts(), result.shown())


def fill_resumably(
    out: Path,
    kind: type[Result],
    output: FolderOptions,
    what: str,
    study: Callable[..., Result],
    *subjects: Any,
    options: Any,
) -> None:
    """`fill` with a study over batches, which goes on where it was interrupted.

    What it has computed stands in the folder until its result does. With ``--overwrite``, what
    another study left there is dropped.
    """
    from headroles.results import new_folder, write_together
    from headroles.storage import UNFINISHED
    from headroles.tasks import Parts

    with new_folder(out, [kind], output.overwrite) as folder:
        parts = Parts(folder.parent / UNFINISHED, output.overwrite)
        with _told_what_is_kept(parts, out):
            asked = replace(options, parts=parts)
            result = with_progress(what, study, *subjects, options=asked, unit="batches")
        write_together(folder, [result])
        parts.drop()
    console.finish(out, output.json, result.facts(), result.shown())


@contextmanager
def _told_what_is_kept(parts: Parts, out: Path) -> Iterator[None]:
    """Tell of batches that are taken up, and of those that are kept if it is interrupted."""
    if len(parts):
        console.note(f"{out} keeps {len(parts)} batches of a study that was interrupted")
    try:
        yield
    except KeyboardInterrupt as stop:
        if len(parts):
            stop.args = (
                f"no result was written; {out} keeps the {len(parts)} batches that are done, and "
                "the same command goes on from them",
            )
        raise
    finally:
        if not len(parts):  # there is nothing to go on from
            parts.drop()


def with_progress(
    what: str,
    study: Callable[..., R],
    *subjects: Any,
    options: Any,
    unit: str = "sentences",
) -> R:
    """What a study gives for its subjects and options, its progress shown on the way."""
    with console.progress_bar(what, unit) as on_progress:
        watched = (console.watched(one, on_progress) for one in subjects)
        return study(*watched, replace(options, on_progress=on_progress))
