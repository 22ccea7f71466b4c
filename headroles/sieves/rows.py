"""How one row of attention is scored, and the array arithmetic that all sieves share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headroles.tokens import IntArray

FloatArray = NDArray[np.float32]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class RowValues:
    """The value of a row with attention mass m in its sieve is ``slopes * m + offsets``.

    Both are 0 for rows that are not ``scored``: they say nothing about the role.
    """

    slopes: NDArray[np.float64]
    offsets: NDArray[np.float64]
    scored: BoolArray


def row_values(score: str, lengths: IntArray, sizes: IntArray) -> RowValues:
    """Values of rows of so many keys, of which so many are in the sieve.

    ``"bias"`` is m over the mass e = size / length of uniform attention; a row needs a key in the
    sieve. ``"excess"`` is (m - e) / (1 - e); a row needs keys inside and outside.
    """
    inside, outside = np.broadcast_arrays(sizes, lengths - sizes)
    if score == "bias":
        slopes = divide(lengths, inside)
        return RowValues(slopes, np.zeros_like(slopes), inside > 0)
    scored = (inside > 0) & (outside > 0)
    return RowValues(
        slopes=divide(lengths, outside) * scored,
        offsets=-divide(inside, outside) * scored,
        scored=scored,
    )


def divide(numerator: NDArray[np.generic], denominator: NDArray[np.generic]) -> NDArray[np.float64]:
    """``numerator / denominator``, 0 where the denominator is 0."""
    quotient = np.zeros(np.broadcast(numerator, denominator).shape)
    np.divide(numerator, denominator, out=quotient, where=np.asarray(denominator) != 0)
    return quotient


def expand(sizes: IntArray) -> tuple[IntArray, IntArray]:
    """For groups of these sizes, the group of every member and its place within the group."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    return group, np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def slots(owner: IntArray, n_owners: int) -> tuple[IntArray, int]:
    """Place of each entry among those of its owner (owners in order), and the most that one has."""
    sizes = np.bincount(owner, minlength=n_owners)
    return expand(sizes)[1], int(sizes.max(initial=0))
