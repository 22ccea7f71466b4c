"""Arrays: names of their types, large ones, and the rounding error of their sums.

Processors add the terms of a sum in different orders, so two machines agree up to
`rounding_bound`, the only such bound in the package, and not to the bit. Smaller differences are
treated as 0.
"""

from __future__ import annotations

import math
import os
import tempfile
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from headroles.errors import StorageError

FloatArray: TypeAlias = NDArray[np.float64]
Float32Array: TypeAlias = NDArray[np.float32]
IntArray: TypeAlias = NDArray[np.int64]
IndexArray: TypeAlias = NDArray[np.intp]
"""Places of entries in another array."""
BoolArray: TypeAlias = NDArray[np.bool_]

EPSILON = float(np.finfo(np.float32).eps)
"""Distance from 1 to the next larger float32 number, 1.2e-7."""

MODEL_TERMS = 1024
"""Number of terms that a model adds up for each number it returns, an attention weight or a loss:
the width of its layers, which is 1024 in large encoders.
"""

_DEVIATIONS = 6.0
"""Number of deviations beyond which errors have a probability of at most 2 exp(-6^2 / 2) = 3e-8."""


def rounding_bound(size: ArrayLike, terms: ArrayLike, epsilon: float = EPSILON) -> FloatArray:
    """Bound the rounding error of sums, which are broadcast from ``size`` and ``terms``.

    An addition is off by at most half an ``epsilon`` of the sum so far, and so of ``size``. If the
    errors of n additions are independent and have mean 0, Hoeffding's inequality says that their
    sum exceeds t * sqrt(n) * epsilon / 2 * size with a probability of at most 2 exp(-t^2 / 2); here
    t is 6 (Higham and Mary 2019). The worst case, n * epsilon / 2 * size, never occurs with sums of
    thousands of terms, which are added in several parts.

    Args:
        size: What the absolute values of the terms add up to. For a difference of sums, give the
            sum of both: what cancels leaves its rounding behind.
        terms: How many numbers were added. If the terms are themselves sums, add the terms of one
            of these; `MODEL_TERMS` stands for those behind every number that a model returns.
        epsilon: The relative spacing of the numbers that were added.
    """
    spread = np.sqrt(np.asarray(terms, dtype=np.float64)) * epsilon / 2
    return np.asarray(_DEVIATIONS * spread * np.asarray(size, dtype=np.float64))


MOST_HELD = 2**28
"""Largest number of values of an array in memory: 1 GiB of scores."""
MOST_AT_ONCE = 2**26
"""Largest number of values in a computation of tests, which holds several such arrays."""


def new_array(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Create an empty array; a large one lies in a temporary file, by its last axis.

    The system reads such a file as it is needed and removes it with the array. Columns are
    adjacent in it, since tests read a few columns of all examples at a time. Raises StorageError if
    the disk has no room for it.
    """
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
