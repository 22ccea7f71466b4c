"""What the command line shows: progress, results, errors."""

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
from headroles.interrupts import INTERRUPTED, TERMINATED, Terminated, tell, written_so_far
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
    "memory ran out; use a device with more (--device cpu), a smaller model or less text, or close "
    "other programs"
)
P = ParamSpec("P")
R = TypeVar("R")

# Names of relations and files are data: a bracket is no markup, and :cop: is no emoji.
out = Console(markup=False, emoji=False, highlight=False)
err = Console(stderr=True, markup=False, emoji=False, highlight=False)


def accept_any_text() -> None:
    """Let standard output escape what its encoding lacks, as standard error does anyway."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def reports_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Turn what a user can cause into one line on standard error and an exit code."""

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
        tell(stop.args[0] if stop.args else written_so_far())
        was_asked = isinstance(stop, Terminated)
        raise typer.Exit(TERMINATED if was_asked else INTERRUPTED) from None
    except (MemoryError, RuntimeError, ImportError) as error:
        if not lacks_memory(error):
            raise
        sys.unraisablehook = lambda _: None  # what cleans up at the end may lack memory too
        err.print(f"error: {_NO_MEMORY}", style="red", soft_wrap=True)
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
def progress_bar(what: str, unit: str = "sentences") -> Iterator[Callable[[int, int], None]]:
    """Yield a callback (done, total) that draws a bar; lines now and then where no terminal is.

    A total of 0 says that the corpus is being read, and that nobody knows yet how long it is. Work
    that will take more than a minute says so in a line once the first part of it is done.
    """
    forecast = _Forecast(what)
    if not err.is_terminal:
        yield _Lines(what, unit, forecast)
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
        task = progress.add_task(what, total=None, rate="")

        def report(done: int, total: int) -> None:
            forecast(done, total, time.monotonic())
            speed = progress.tasks[0].speed
            rate = f"{speed:.0f} {unit}/s" if speed else ""
            doing = what if total else READING
            progress.update(task, completed=done, total=total or None, rate=rate, description=doing)

        yield report


class _Forecast:
    """A callback (done, total, now): one line that says how long work takes, from its first part.

    The first batch has the longest examples, so the line gives an upper limit. Work may take
    several rounds, each of which starts at 0; each that takes more than a minute is announced.
    """

    def __init__(self, what: str) -> None:
        self._what, self._total, self._first, self._start = what, 0, 0, 0.0
        self._waits, self._done = True, 0

    def __call__(self, done: int, total: int, now: float) -> None:
        if done < self._done or not self._total:
            self._start, self._first, self._waits = now, done, True
        self._total, self._done = total, done
        if not self._waits or not total or done <= self._first or now < self._start + _SETTLED:
            return
        self._waits = False
        seconds = (now - self._start) / (done - self._first) * (total - self._first)
        if seconds > _SAY_BEYOND:
            note(f"{self._what}: takes about {ceil(seconds / 60)} minutes")


class _Lines:
    """A callback (done, total) for logs: a line at most every half minute, and how long it takes.

    Work may take several rounds, each of which starts at 0.
    """

    def __init__(self, what: str, unit: str, forecast: _Forecast) -> None:
        self._what, self._unit, self._forecast = what, unit, forecast
        self._said = self._start = time.monotonic()
        self._first = self._done = self._total = 0

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        self._forecast(done, total, now)
        if done < self._done or not self._total:
            self._start, self._first = now, done
        self._total, self._done = total, done
        if now - self._said >= SECONDS_BETWEEN_LINES:
            self._said = now
            doing = f"{self._what}: {done} of {total}" if total else f"{READING}: {done}"
            err.print(f"{doing} {self._unit}{self._left(now)}", soft_wrap=True)

    def _left(self, now: float) -> str:
        """Return the minutes that the round will take, if it is one or more."""
        done = self._done - self._first
        seconds = (now - self._start) / done * (self._total - self._done) if done else 0
        return f", {seconds / 60:.0f} min left" if seconds >= 60 else ""


def watched(subject: Any, on_progress: Callable[[int, int], None]) -> Any:
    """Return a corpus whose reading is reported too; anything else as it is."""
    from headroles.corpus import Corpus

    if not isinstance(subject, Corpus):
        return subject
    return subject.watched(lambda done: on_progress(done, 0))


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show something that turns on a terminal while work goes on whose end is not known."""
    if not err.is_terminal:
        yield
        return
    with err.status(what):
        yield


def warn(message: str) -> None:
    """Print a line on standard error that does not end the command."""
    err.print(f"warning: {printable(addressed(message))}", style="yellow", soft_wrap=True)


def note(message: str) -> None:
    """Print a line on standard error about how the command goes on."""
    err.print(printable(addressed(message)), soft_wrap=True)


def print_json(content: Any) -> None:
    """Print one JSON document on standard output."""
    text = storage.encode_json(content).decode()
    sys.stdout.buffer.write(json_lines(text).encode())


def print_shown(shown: Iterable[Shown]) -> None:
    """Print parts of a summary; a pipe has no width, so grids are as wide as they are."""
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
    """Print results for people or for scripts, and where they are; write the page if asked for.

    ``roles`` are the user's own roles that the command named.
    """
    report = _report(folder, options, roles)
    if options.json:
        reported = {"report": str(report)} if report else {}
        print_json({"out": str(folder), **result.facts(), **reported})
        return
    print_result(options, result)
    steps = [*result.next_steps(folder)]
    if hasattr(options, "report"):
        page = report or f"headroles report {folder}"
        steps[:1] = [f"See:     {page}  (pictures, in one HTML file)"]
    for line in (*steps, f"written to {folder}"):
        say(line)
    if not report and storage.has_old_report(folder):
        warn(
            f"{folder / storage.REPORT_FILE} is about earlier results; to make it anew: "
            f"headroles report {folder}"
        )


def print_result(options: OutputOptions, result: Summary) -> None:
    """Print the summary, or in full: with whole warnings, and the details."""
    from headroles.results.shown import brief

    print_shown(chain(result.shown(), result.details()) if options.full else brief(result.shown()))


def _report(folder: Path, options: OutputOptions, roles: Sequence[str]) -> Path | None:
    if not getattr(options, "report", False):
        return None
    from headroles.report.pages import write_report

    with working("drawing"):
        return write_report(folder, roles=roles)
