"""The end of a command.

Signals raise KeyboardInterrupt in the main thread, which cleans up.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED, TERMINATED = 130, 143
"""Exit codes of a command that was stopped from the keyboard, or by the system."""


class Terminated(KeyboardInterrupt):
    """Interruption by the system, handled like one from the keyboard."""


def handle_signals() -> None:
    """Let the signals that end this process raise KeyboardInterrupt once; only commands do."""
    for number in _kinds():
        signal.signal(number, _stop)


def end_at_once() -> None:
    """Let a signal from now on end this process without a word: its work is done, or cleaned up."""
    for number in _kinds():
        signal.signal(number, signal.SIG_DFL)


@contextmanager
def signals_end_at_once() -> Iterator[None]:
    """Let a signal end this process while the block runs code that no signal interrupts."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in _kinds()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def exit_code(stop: KeyboardInterrupt) -> int:
    """Return the exit code of a command that ``stop`` ended."""
    return TERMINATED if isinstance(stop, Terminated) else INTERRUPTED


def leave(code: int) -> None:
    """End the process of a command without freeing its objects, which takes a second.

    Threads, functions registered with `atexit` and output are finished first. Return only if output
    cannot be written: Python reports that when it ends.
    """
    # Python does so when it ends: it tells pools of threads to finish, then awaits the threads.
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001 - there is no public way
    atexit._run_exitfuncs()  # noqa: SLF001
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except (OSError, ValueError):
        return
    os._exit(code)


def _kinds() -> list[signal.Signals]:
    """List the signals that end a process; those that it ignores, as nohup asks, it goes on to."""
    signals = [getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP")]
    return [
        kind for kind in signals if kind is not None and signal.getsignal(kind) != signal.SIG_IGN
    ]


def _stop(number: int, frame: FrameType | None) -> None:
    end_at_once()
    raise KeyboardInterrupt if number == signal.SIGINT else Terminated
