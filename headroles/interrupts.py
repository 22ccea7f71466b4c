"""Signals that end a run, handled within a second, with a line about the saved results.

A signal raises KeyboardInterrupt in the main thread, which cleans up and prints. If that takes too
long - inside a library that does not return, or that swallows the exception - a second thread ends
the process: stored data survive this as they survive SIGKILL.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

INTERRUPTED, TERMINATED = 130, 143
"""Exit codes of a command that was stopped from the keyboard, or by the system."""
NOTHING = "nothing was written"
_ENDING = ("SIGINT", "SIGTERM", "SIGHUP")
_GRACE = 0.6
"""Seconds that the main thread has to clean up."""


class Terminated(KeyboardInterrupt):
    """Interruption by the system, handled like one from the keyboard."""


_descriptions: list[Callable[[], str]] = []
_signals: list[int] = []
"""The signal that ends this process, once it has come."""
_printing = threading.Lock()
_completed: list[str] = []


@contextmanager
def described_when_interrupted(describe: Callable[[], str]) -> Iterator[None]:
    """Let ``describe`` list the saved results if the process has to end within the block.

    The message of an interrupted block stays, since cleaning up may take too long too.
    """
    _descriptions.append(describe)
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException:
        _descriptions.remove(describe)
        raise
    else:
        _descriptions.remove(describe)


def completed(message: str) -> None:
    """Let an interrupted command print ``message`` from now on, instead of "nothing was written".

    Within `described_when_interrupted` this has no effect: the whole is not complete there.
    """
    if not _descriptions:
        _completed[:] = [message]


def written_so_far() -> str:
    """Return the message about results outside any `described_when_interrupted` block."""
    return _completed[0] if _completed else NOTHING


@contextmanager
def signals_wait() -> Iterator[None]:
    """Delay signals that end a run until the block is over."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []
    before = {kind: signal.getsignal(kind) for kind in _kinds()}
    replaced = [kind for kind, handler in before.items() if handler is not None]
    for kind in replaced:
        signal.signal(kind, lambda number, frame: waiting.append(number))
    try:
        yield
    finally:
        for kind in replaced:
            signal.signal(kind, before[kind])
    for number in waiting:
        signal.raise_signal(number)


def handle_signals() -> None:
    """Let signals end this process as described above; only commands do."""
    wanted = [kind for kind in _kinds() if signal.getsignal(kind) is not signal.SIG_IGN]
    for kind in wanted:  # ignored signals stay ignored, as nohup asks
        signal.signal(kind, _stop)
    if not hasattr(os, "set_blocking") or os.name == "nt":
        return  # Windows wakes sockets only
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reading, frozenset(wanted)), daemon=True).start()


def end(message: str) -> NoReturn:
    """End the process with a line about the saved results, unless one was printed."""
    say_interrupted(message)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(INTERRUPTED if _signals[:1] == [signal.SIGINT] else TERMINATED)


def say_interrupted(message: str) -> None:
    """Print one line on standard error: the run ends, and these results are saved.

    After a signal, only the first thread prints it.
    """
    from headroles.wording import printable

    if _signals and not _printing.acquire(blocking=False):
        return
    with suppress(OSError, ValueError):  # perhaps nobody reads it
        sys.stderr.write(f"interrupted: {printable(message)}\n")
        sys.stderr.flush()


def has_signal() -> bool:
    """Tell whether a signal has come that ends this process."""
    return bool(_signals)


def _kinds() -> list[signal.Signals]:
    return [getattr(signal, name) for name in _ENDING if hasattr(signal, name)]


def _stop(number: int, frame: FrameType | None) -> None:
    if _signals:  # a second signal must not interrupt cleaning up
        return
    _signals.append(number)
    raise KeyboardInterrupt if number == signal.SIGINT else Terminated


def _watch(reading: int, wanted: frozenset[int]) -> None:
    """End the process if it has not ended soon after one of the signals ``wanted``."""
    while (number := os.read(reading, 1)[0]) not in wanted:
        pass
    time.sleep(_GRACE)
    if not _signals:  # the main thread has not seen the signal yet
        _signals.append(number)
    try:
        message = _descriptions[-1]() if _descriptions else written_so_far()
    except Exception:
        message = "run the same command with --resume to see the saved parts"
    end(message)
