"""Memory of a run: large arrays, rare collection of garbage, lack of memory, a quick end."""

from __future__ import annotations

import atexit
import gc
import math
import os
import sys
import tempfile
import threading
from typing import TYPE_CHECKING, Any

from headroles.errors import StorageError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

MOST_HELD = 2**28
"""Largest number of values of an array in memory: 1 GiB of scores."""
MOST_AT_ONCE = 2**26
"""Largest number of values in a computation of tests, which holds several such arrays."""
_NO_MEMORY = (
    *("out of memory", "allocate memory", "not enough memory", "alloc_failed", "map segment"),
    "could not create a primitive",  # of oneDNN, which says no more
    "start new thread",  # of Python, which has no memory for its stack
)
"""Parts of messages of PyTorch and its libraries about a lack of memory."""


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

    Batches differ in shape, so with small pages each leaves holes that the next does not quite fit:
    a tenth more memory over 20,000 sentences. A user's own setting is not changed.
    """
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")


def collect_rarely() -> None:
    """Collect cyclic garbage rarely; for commands only.

    A command imports hundreds of thousands of objects that live as long as it does. Scanning them
    repeatedly takes a fifth of the time of importing.
    """
    gc.set_threshold(100_000, 50, 50)


def leave(code: int) -> None:
    """End the process of a command without freeing its objects, which takes a second.

    Threads, functions registered with `atexit` and output are finished first. Return only if output
    cannot be written: Python reports that when it ends.
    """
    # As Python ends: pools of threads are told to finish before their threads are awaited.
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001 - there is no public way
    atexit._run_exitfuncs()  # noqa: SLF001
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except (OSError, ValueError):
        return
    os._exit(code)


def lacks_memory(error: BaseException) -> bool:
    """Tell whether an error means that memory ran out, of a device or of this machine."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    said = str(error).lower()
    return isinstance(error, RuntimeError | ImportError) and any(
        words in said for words in _NO_MEMORY
    )
