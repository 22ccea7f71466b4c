"""Output of the command line: progress, results, errors."""

from __future__ import annotations

import errno
import functools
import io
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import typer
from rich.console import Console

from headroles import storage
from headroles.errors import HeadRolesError
from headroles.interrupts import exit_code
from headroles.memory import lacks_memory
from headroles.wording import addressed, json_lines, printable, speaking_of_flags

if TYPE_CHECKING:
    from headroles.cli.flags import OutputOptions
    from headroles.results.shown import Shown, Summary

SECONDS_BETWEEN_LINES = 30.0
_SAY_BEYOND = 60.0
"""Seconds of work that are announced."""
_SETTLED = 3.0
"""Seconds of work that a forecast is made from: a single pass may be a fast one."""
READING = "reading"
_NO_MEMORY = (
    "memory ran out; use a device with more (`device='cpu'`), a smaller model or less text, "
    "or close other programs"
)
P = ParamSpec("P")
R = TypeVar("R")

# Names of relations and files are data: a bracket is no markup, and :cop: is no emoji.
out = Console(markup=False, emoji=False, highlight=False)
err = Console(stderr=True, markup=False, emoji=False, highlight=False)


def prepare_output() -> None:
    """Let standard output escape what its encoding lacks, as standard error does anyway.

    Ends the process with an error if standard output is closed (``>&-``).
    """
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - to the end of the process
    if sys.stdout is None:
        sys.stderr.write("error: standard output is closed; let it go to a file or /dev/null\n")
        os._exit(1)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def reports_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Turn errors that a user can cause into one line on standard error and an exit code."""

    @functools.wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        with speaking_of_flags(), _reported():
            return command(*args, **kwargs)

    return guarded


@contextmanager
def _reported() -> Iterator[None]:
    try:
        yield
    except HeadRolesError as error:
        err.print(f"error: {error}", style="red", soft_wrap=True)
        for note in getattr(error, "__notes__", ()):
            warn(note)
        raise typer.Exit(error.exit_code) from None
    except KeyboardInterrupt as stop:
        err.print(printable(f"interrupted: {stop}" if stop.args else "interrupted"), soft_wrap=True)
        raise typer.Exit(exit_code(stop)) from None
    except (MemoryError, RuntimeError, ImportError) as error:
        if not lacks_memory(error):
            raise
        sys.unraisablehook = lambda _: None  # what cleans up at the end may lack memory too
        err.print(f"error: {addressed(_NO_MEMORY)}", style="red", soft_wrap=True)
        raise typer.Exit(1) from None
    except BrokenPipeError:  # the reader of the output has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1) from None
    except OSError as error:  # of a file that nothing below names an error for
        err.print(f"error: {printable(_of_system(error))}", style="red", soft_wrap=True)
        raise typer.Exit(1) from None


def _of_system(error: OSError) -> str:
    if error.errno == errno.ENOSPC and error.filename is None:
        return (
            "no space is left: on the disk of the results, of standard output, or of temporary "
            f"files ({tempfile.gettempdir()}; set TMPDIR to have these elsewhere)"
        )
    place = f"{error.filename}: " if error.filename else ""
    return f"{place}{error.strerror or error}"


@contextmanager
def progress_bar(work: str, unit: str = "sentences") -> Iterator[Callable[[int, int], None]]:
    """Yield a callback (done, total) that draws a bar, or prints lines without a terminal.

    A total of 0 means that the corpus is being read, whose length is not known yet. A line
    announces work that takes more than a minute, once its first part is done.
    """
    if not err.is_terminal:
        yield _Progress(work, unit, has_bar=False)
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=err,
        transient=True,
    ) as progress:
        task = progress.add_task(work, total=None, rate="")
        announce = _Progress(work, unit, has_bar=True)

        def report(done: int, total: int) -> None:
            announce(done, total)
            speed = progress.tasks[0].speed
            rate = f"{speed:.0f} {unit}/s" if speed else ""
            doing = work if total else READING
            progress.update(task, completed=done, total=total or None, rate=rate, description=doing)

        yield report


class _Progress:
    """A callback (done, total) of work that may take several rounds, each of which starts at 0.

    A line announces each round that takes more than a minute, from its first seconds: the first
    batch has the longest examples, so this is an upper limit. Without a bar, a line at most every
    half minute says how far the work is.
    """

    def __init__(self, work: str, unit: str, has_bar: bool) -> None:
        self._work, self._unit, self._has_bar = work, unit, has_bar
        self._said = self._start = time.monotonic()
        self._first = self._done = self._total = 0
        self._is_announced = False

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if done < self._done or not self._total:
            self._start, self._first, self._is_announced = now, done, False
        self._done, self._total = done, total
        is_known = total and done > self._first and now >= self._start + _SETTLED
        if is_known and not self._is_announced:
            self._is_announced = True
            if (seconds := self._seconds(now, total - self._first)) > _SAY_BEYOND:
                note(f"{self._work}: takes about {ceil(seconds / 60)} minutes")
        if not self._has_bar and now >= self._said + SECONDS_BETWEEN_LINES:
            self._said = now
            doing = f"{self._work}: {done} of {total}" if total else f"{READING}: {done}"
            seconds = self._seconds(now, total - done)
            left = f", {seconds / 60:.0f} min left" if seconds >= 60 else ""
            err.print(f"{doing} {self._unit}{left}", soft_wrap=True)

    def _seconds(self, now: float, steps: int) -> float:
        """Return the seconds that so many steps take at the speed of this round."""
        done = self._done - self._first
        return (now - self._start) / done * steps if done else 0


def watched(subject: Any, on_progress: Callable[[int, int], None]) -> Any:
    """Return a corpus whose reading is reported too; anything else as it is."""
    from headroles.corpus import Corpus

    if not isinstance(subject, Corpus):
        return subject
    return subject.watched(lambda done: on_progress(done, 0))


@contextmanager
def working(work: str) -> Iterator[None]:
    """Show a spinner on a terminal during work of unknown length."""
    if not err.is_terminal:
        yield
        return
    with err.status(work):
        yield


def warn(message: str) -> None:
    """Print a line on standard error that does not end the command."""
    err.print(f"warning: {printable(addressed(message))}", style="yellow", soft_wrap=True)


def note(message: str) -> None:
    """Print a line on standard error about the progress of the command."""
    err.print(printable(addressed(message)), soft_wrap=True)


def print_json(content: Any) -> None:
    """Print one JSON document on standard output."""
    text = storage.encode_json(content).decode()
    sys.stdout.buffer.write(json_lines(text).encode())


def print_shown(shown: Iterable[Shown]) -> None:
    """Print parts of a summary; into a pipe, which has no width, grids at their full width."""
    from headroles.results.shown import WIDE, print_on

    if not out.is_terminal:
        out.width = WIDE
    print_on(out, shown)


def say(text: str) -> None:
    """Print a line on standard output, however long."""
    out.print(printable(addressed(text)), soft_wrap=True)


def finish(
    folder: Path, options: OutputOptions, result: Summary, roles: Sequence[str] = ()
) -> None:
    """Print results for people or for scripts, and their folder; write the page if asked for.

    ``roles`` are the user's own roles that the command named.
    """
    report = _report(folder, options, roles)
    if options.json:
        reported = {"report": str(report)} if report else {}
        print_json({"out": str(folder), **result.to_json(), **reported})
        return
    show(result, options)
    steps = [*result.next_steps(folder)]
    if hasattr(options, "report"):
        page = report or f"headroles report {folder}"
        steps[:1] = [f"See:     {page}  (all tables and pictures, in one HTML file)"]
    for line in (*steps, f"written to {folder}"):
        say(line)
    if not report and storage.has_old_report(folder):
        warn(
            f"{folder / storage.REPORT_FILE} is about earlier results; to make it anew: "
            f"headroles report {folder}"
        )


def show(result: Summary, options: OutputOptions) -> None:
    """Print results for people or for scripts; with ``full`` all of them."""
    from headroles.results.shown import brief

    if options.json:
        print_json(result.to_json())
        return
    print_shown(
        chain(result.summarize(), result.details()) if options.full else brief(result.summarize())
    )


def _report(folder: Path, options: OutputOptions, roles: Sequence[str]) -> Path | None:
    if not getattr(options, "report", False):
        return None
    from headroles.report.pages import write_report

    with working("drawing"):
        return write_report(folder, roles=roles)
