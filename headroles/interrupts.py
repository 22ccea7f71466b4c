"""Signals that end a command: each raises KeyboardInterrupt in the main thread, which cleans up."""

from __future__ import annotations

import signal
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


def exit_code(stop: KeyboardInterrupt) -> int:
    """Return the exit code of a command that ``stop`` ended."""
    return TERMINATED if isinstance(stop, Terminated) else INTERRUPTED


def _kinds() -> list[signal.Signals]:
    """List the signals that end a process; those that it ignores, as nohup asks, it goes on to."""
    known = [getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP")]
    return [kind for kind in known if kind is not None and signal.getsignal(kind) != signal.SIG_IGN]


def _stop(number: int, frame: FrameType | None) -> None:
    end_at_once()
    raise KeyboardInterrupt if number == signal.SIGINT else Terminated
