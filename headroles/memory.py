"""Memory of a run: large arrays, large pages, release of freed memory, and a quick end."""

from __future__ import annotations

import atexit
import ctypes
import gc
import math
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headroles.errors import ModelError, StorageError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

MOST_HELD = 2**28
"""Largest number of values of an array in memory: 1 GiB of scores."""
MOST_AT_ONCE = 2**26
"""Largest number of values in a computation of tests, which holds several such arrays."""
_STATM = Path("/proc/self/statm")
_NO_MEMORY = (
    *("out of memory", "allocate memory", "not enough memory", "alloc_failed", "map segment"),
    "could not create a primitive",  # of oneDNN, which says no more
    "start new thread",  # of Python, which has no memory for its stack
)
"""Parts of messages of PyTorch and its libraries about a lack of memory."""
_LEAST = 1200 * 2**20
"""Address space for the libraries of models; with less, OpenBLAS may wait for it without end."""


def new_array(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Create an empty array; a large one lies in a temporary file, by its last axis.

    The system reads such a file as it is needed and removes it with the array. Columns are
    adjacent in it, since tests read a few columns of all examples at a time. Raises StorageError if
    the disk has no room for it.
    """
    import numpy as np

    if math.prod(shape) <= MOST_HELD:
        return np.empty(shape, dtype)
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    with tempfile.TemporaryFile(prefix="headroles-") as file:
        try:  # a mapped file that outgrows the disk would end the process
            os.posix_fallocate(file.fileno(), 0, n_bytes)
        except OSError as error:
            raise StorageError(
                f"so many scores take a temporary file of {n_bytes / 2**30:.1f} GiB, which cannot "
                f"be written ({error.strerror or error}); free space in {tempfile.gettempdir()}, "
                "or name another folder in the environment variable TMPDIR"
            ) from error
        except AttributeError:
            pass  # of systems without it
        return np.asarray(np.memmap(file, dtype, "w+", shape=shape[::-1])).T


def column_slices(n_rows: int, n_columns: int) -> list[slice]:
    """Divide the columns of a matrix into slices that are small enough to compute with at once."""
    step = max(1, MOST_AT_ONCE // max(1, n_rows))
    return [slice(first, first + step) for first in range(0, n_columns, step)] or [slice(0)]


def ask_for_large_pages() -> None:
    """Let PyTorch ask for large pages for its tensors (Linux); call before importing it.

    Large tensors come and go with every batch, and with small pages the system spends a twentieth
    of the time of a small model on allocating them. A user's own setting is not changed.
    """
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")


def collect_rarely() -> None:
    """Collect cyclic garbage rarely; for commands only.

    A command imports hundreds of thousands of objects that live as long as it does. Scanning them
    repeatedly takes a fifth of the time of importing.
    """
    gc.set_threshold(100_000, 50, 50)


def refuse_low_limit() -> None:
    """Raise ModelError if this process may not have the memory that libraries of models need."""
    try:
        import resource
    except ImportError:  # Windows
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < _LEAST:
        raise ModelError(
            f"memory of this process is limited to {limit >> 20} MiB, and the libraries of models "
            f"alone need {_LEAST >> 20}; raise the limit (ulimit -v)"
        )


def leave(code: int) -> None:
    """End the process of a command without freeing its objects, which takes a second.

    Threads, functions registered with `atexit` and output are finished first. Return only if output
    cannot be written: Python reports that when it ends.
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
    """Keeps freed memory from accumulating in a long run.

    Batches differ in shape, so each leaves holes in the heap that the next does not quite fit, and
    resident memory would grow to a multiple of the need of any batch. `release` returns the holes
    to the system whenever memory has grown by ``slack`` bytes since the last time. It does nothing
    if the system does not report memory, or the C library (not glibc) cannot return it.
    """

    def __init__(self, slack: int) -> None:
        self._slack = slack
        self._trim = _find_trim()
        self._base = resident_memory()

    def release(self) -> None:
        """Return freed memory to the system if there is much of it."""
        if self._trim is not None and resident_memory() > self._base + self._slack:
            self._trim(0)
            self._base = resident_memory()


def resident_memory() -> int:
    """Return the bytes of this process in physical memory; 0 if the system does not report them."""
    try:
        pages = int(_STATM.read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def lacks_memory(error: BaseException) -> bool:
    """Tell whether an error means that memory ran out, of a device or of this machine."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    said = str(error).lower()
    return isinstance(error, RuntimeError | ImportError) and any(
        words in said for words in _NO_MEMORY
    )


def _find_trim() -> Callable[[int], int] | None:
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    return trim
