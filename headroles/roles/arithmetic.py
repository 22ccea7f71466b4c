"""Array arithmetic that sieves share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headroles.arrays import FloatArray, IntArray


def divide(numerator: NDArray[np.generic], denominator: NDArray[np.generic]) -> FloatArray:
    """Return ``numerator / denominator``, 0 where the denominator is 0."""
    quotient = np.zeros(np.broadcast(numerator, denominator).shape)
    np.divide(numerator, denominator, out=quotient, where=np.asarray(denominator) != 0)
    return quotient


def expand(sizes: IntArray) -> tuple[IntArray, IntArray]:
    """Return, for sets of these sizes, the set of every member and its place within the set."""
    owner = np.repeat(np.arange(len(sizes)), sizes)
    return owner, np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def slots(owner: IntArray, n_owners: int) -> tuple[IntArray, int]:
    """Return the place of each entry among those of its owner, and the largest number of entries.

    Entries are ordered by owner.
    """
    sizes = np.bincount(owner, minlength=n_owners)
    return expand(sizes)[1], int(sizes.max(initial=0))
