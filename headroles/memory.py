"""What a run takes from memory: large pages, no more than it needs, and little time to clean up."""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

_STATM = Path("/proc/self/statm")
_NO_MEMORY = (
    *("out of memory", "allocate memory", "not enough memory", "alloc_failed"),
    "could not create a primitive",  # of oneDNN, which says no more
)
"""What PyTorch and its libraries say where they have no error of their own for it."""


def ask_for_large_pages() -> None:
    """Let PyTorch ask for its tensors in large pages (Linux); to be called before it is imported.

    Large tensors come and go with every batch. In small pages the system spends a twentieth of
    the time of a small model on handing them out; a user's own setting is left alone.
    """
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")


def collect_rarely() -> None:
    """Look for cyclic garbage rarely; for commands only.

    A command imports hundreds of thousands of objects that live as long as it does. Looking
    through them again and again takes a fifth of the time of importing.
    """
    gc.set_threshold(100_000, 50, 50)


def leave(code: int) -> None:
    """End the process of a command without taking its objects apart, which takes a second.

    Threads, functions registered with `atexit` and output come to their end first. Return only if
    output cannot be written: Python tells that itself when it ends.
    """
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.current_thread():
            thread.join()
    atexit._run_exitfuncs()  # noqa: SLF001 - there is no public way
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except (OSError, ValueError):
        return
    os._exit(code)


class HeldMemory:
    """Keeps freed memory from piling up in a long run.

    Batches differ in shape, so each leaves holes in the heap that the next does not quite fit:
    left alone, resident memory creeps up to a multiple of what any batch needs. `release` gives
    the holes back whenever memory has grown by ``slack`` bytes since the last time. It does
    nothing where the system does not tell, or the C library (glibc) cannot.
    """

    def __init__(self, slack: int) -> None:
        self._slack = slack
        self._trim = _find_trim()
        self._base = resident_memory()

    def release(self) -> None:
        """Give freed memory back if there is much of it."""
        if self._trim is not None and resident_memory() > self._base + self._slack:
            self._trim(0)
            self._base = resident_memory()


def resident_memory() -> int:
    """Bytes of this process in physical memory; 0 where the system does not tell."""
    try:
        pages = int(_STATM.read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def lacks_memory(error: BaseException) -> bool:
    """Whether memory ran out: of a device or, as far as the system tells, of this machine."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    said = str(error).lower()
    return isinstance(error, RuntimeError) and any(words in said for words in _NO_MEMORY)


def _find_trim() -> Callable[[int], int] | None:
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    return trim
