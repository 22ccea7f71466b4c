"""Output of the command line: progress, results, errors."""

from __future__ import annotations

import errno
import io
import os
import shlex
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, chdir, contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from headroles import storage
from headroles.errors import HeadRolesError, lacks_memory
from headroles.interrupts import exit_code
from headroles.wording import (
    addressed,
    as_given,
    json_lines,
    numbered,
    printable,
    speaking_of_flags,
)

if TYPE_CHECKING:
    from headroles.cli.flags import OutputOptions
    from headroles.corpus import Corpus
    from headroles.results.showing import Showing
    from headroles.results.shown import Shown

SECONDS_BETWEEN_LINES = 30.0
SECONDS_TO_ESTIMATE, LEAST_LEFT = 20.0, 60.0
"""When the time that is left is estimated, and the shortest one that people are told."""
_NO_MEMORY = (
    "memory ran out; use a device with more (`device='cpu'`), a smaller model or less text, "
    "or close other programs"
)
_NO_NUMBER = ("invalid literal for int()", "could not convert string to float")
"""Beginnings of Python's messages for a text that should be a number."""

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


@contextmanager
def reported_errors() -> Iterator[None]:
    """Turn errors that a user can cause into one line on standard error and an exit code.

    Messages name flags, not arguments of Python.
    """
    with speaking_of_flags():
        try:
            yield
        except KeyboardInterrupt as stop:
            reason = f": {stop}" if stop.args else ""
            err.print(printable(f"interrupted{reason}"), soft_wrap=True)
            raise typer.Exit(exit_code(stop)) from None
        except BrokenPipeError:  # the reader of the output has ended
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except Exception as error:
            if isinstance(message := getattr(error, "message", None), str):  # of typer
                error.message = printable(message)  # type: ignore[attr-defined]
            if (text := _message_of(error)) is None:
                raise
            err.print(f"error: {text}", style="red", soft_wrap=True)
            for note in getattr(error, "__notes__", ()):
                warn(note)
            raise typer.Exit(getattr(error, "exit_code", 1)) from None


def _message_of(error: Exception) -> str | None:
    """Return the message of an error that a user can cause; None for others."""
    if isinstance(error, HeadRolesError):
        return str(error)
    if lacks_memory(error):
        sys.unraisablehook = lambda _: None  # what cleans up at the end may lack memory too
        return addressed(_NO_MEMORY)
    if isinstance(error, ValueError):
        return _about_environment(str(error))
    if not isinstance(error, OSError):
        return None
    if error.errno == errno.ENOSPC and error.filename is None:
        return (
            "no space is left: on the disk of the results, of standard output, or of temporary "
            f"files ({tempfile.gettempdir()}; set TMPDIR to have these elsewhere)"
        )
    place = f"{error.filename}: " if error.filename else ""
    return printable(f"{place}{error.strerror or error}")


def _about_environment(reason: str) -> str | None:
    """Describe an error of a library about a setting in the environment; None for other errors."""
    if sys.flags.optimize > 1 and "docstring" in reason:
        return (
            "Python removes docstrings (PYTHONOPTIMIZE=2, or python -OO), and transformers cannot "
            "be imported without them; unset PYTHONOPTIMIZE, or set it to 1"
        )
    if not reason.startswith(_NO_NUMBER):
        return None
    for name, value in os.environ.items():
        if reason.endswith(f": {value!r}"):
            return printable(
                f"the environment variable {name} is {as_given(value)}, and a library needs a "
                "number there; correct it, or unset it"
            )
    return None


@contextmanager
def progress_bar(
    work: str, unit: str = "sentences", cheaper: str = ""
) -> Iterator[Callable[[int, int], None]]:
    """Yield a callback (done, total) that draws a bar; without a terminal, a line now and then.

    A total of 0 means that the corpus is being read, whose length is not known yet. Work may take
    several rounds, each of which starts at 0. After 20 seconds a line estimates what is left if it
    is more than a minute, and says what makes the work ``cheaper``.
    """
    from rich import progress as rich

    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TextColumn("{task.fields[rate]}"),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        bar.add_task(work, total=None, rate="")
        (task,) = bar.tasks
        said = time.monotonic()
        estimate = Estimate(unit, cheaper)

        def report(done: int, total: int) -> None:
            nonlocal said
            if line := estimate.line(done, total):
                bar.console.print(line, soft_wrap=True)
            doing = work if total else "reading"
            if done < task.completed:
                bar.reset(task.id)
            rate = f"{task.speed:.0f} {unit}/s" if task.speed else ""
            bar.update(task.id, completed=done, total=total or None, description=doing, rate=rate)
            if not err.is_terminal and time.monotonic() >= said + SECONDS_BETWEEN_LINES:
                said = time.monotonic()
                left = f", {task.time_remaining / 60:.0f} min left" if task.time_remaining else ""
                count = f"{done} of {total}" if total else done
                err.print(f"{doing}: {count} {unit}{left}", soft_wrap=True)

        yield report


class Estimate:
    """How long work takes, from its first batches: one line, where that is worth saying."""

    def __init__(self, unit: str, cheaper: str = "") -> None:
        self._unit, self._cheaper, self._is_over = unit, cheaper, False
        self._began: tuple[float, int] | None = None

    def line(self, done: int, total: int) -> str:
        """Return the line when it is due, once; else nothing.

        Work that a resumed run finds done does not count as work of this run.
        """
        if self._is_over or not total:
            return ""
        now = time.monotonic()
        if self._began is None or done < self._began[1]:
            self._began = (now, done)
        began, first = self._began
        if now < began + SECONDS_TO_ESTIMATE or done == first:
            return ""
        self._is_over = True
        seconds_left = (now - began) * (total - done) / (done - first)
        if seconds_left < LEAST_LEFT:
            return ""
        about = numbered(round(seconds_left / 60), "minute")
        if seconds_left >= 5400:
            about = f"{seconds_left / 3600:.1f} hours"
        less = f"; for less time: {self._cheaper}" if self._cheaper else ""
        return addressed(f"about {about} left ({done} of {total} {self._unit} done){less}")


def watched(corpus: Corpus, on_progress: Callable[[int, int], None]) -> Corpus:
    """Return a corpus whose reading is reported too."""
    return corpus.watched(lambda done: on_progress(done, 0))


def working(work: str) -> AbstractContextManager[Any]:
    """Show a spinner on a terminal during work of unknown length."""
    return err.status(work) if err.is_terminal else nullcontext()


@contextmanager
def drawing() -> Iterator[None]:
    """Show a spinner while figures are drawn with the settings of the matplotlib package alone.

    matplotlib would read ``matplotlibrc`` in the current folder, which may be from someone else:
    settings run TeX, and name modules to import. The folder of the package has its own.
    """
    with working("drawing"):
        if "matplotlib" not in sys.modules and (spec := find_spec("matplotlib")) and spec.origin:
            os.environ.pop("MPLBACKEND", None)
            with chdir(Path(spec.origin).parent / "mpl-data"):
                import matplotlib  # noqa: F401
        yield


def warn(message: str) -> None:
    """Print a line on standard error that does not end the command."""
    err.print(f"warning: {printable(addressed(message))}", style="yellow", soft_wrap=True)


@contextmanager
def shown_warnings() -> Iterator[None]:
    """Print warnings of Python as those of headroles."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        warn(str(warning.message))


def print_json(content: Any) -> None:
    """Print one JSON document on standard output."""
    text = storage.encode_json(content).decode()
    sys.stdout.buffer.write(json_lines(text).encode())


def say(text: str) -> None:
    """Print a line on standard output, however long."""
    out.print(printable(addressed(text)), soft_wrap=True)


def print_shown(shown: Iterable[Shown]) -> None:
    """Print parts of a summary; into a pipe, which has no width, grids at their full width."""
    from headroles.results.shown import WIDE, print_on

    if not out.is_terminal:
        out.width = WIDE
    print_on(out, shown)


def finish(
    result: Showing,
    output: OutputOptions,
    folder: Path | None = None,
    roles: Sequence[str] = (),
) -> None:
    """Print results for people or for scripts, and the folder that they are in, if any.

    Write the page of the folder if asked for; it may import the user's own ``roles``.
    """
    from headroles.results.shown import brief

    page = None
    if folder is not None and getattr(output, "report", False):
        from headroles.report.pages import write_report

        with drawing():
            page = write_report(folder, roles=roles)
    if output.json:
        written_to = {"out": folder, "report": page}
        written = {name: str(place) for name, place in written_to.items() if place}
        print_json({**written, **result.to_json()})
        return
    print_shown(result.whole() if output.full else brief(result.shown))
    if folder is None:
        return
    quoted = shlex.quote(str(folder))
    for line in (*result.next_steps(quoted), f"written to {folder}"):
        say(line.replace(f"headroles report {quoted} ", f"{page} ") if page else line)
    report, run = folder / storage.REPORT_FILE, folder / storage.RUN_FILE
    if not page and report.is_file() and report.stat().st_mtime < run.stat().st_mtime:
        warn(f"{report} is about earlier results; to make it anew: headroles report {folder}")
