"""Scores of rows: how attention mass in a sieve becomes a number."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headroles.arrays import BoolArray, FloatArray, IntArray

ScoreName: TypeAlias = Literal["bias", "excess", "hit"]


def divide(numerator: NDArray[np.generic], denominator: NDArray[np.generic]) -> FloatArray:
    """Return ``numerator / denominator``, 0 where the denominator is 0."""
    quotient = np.zeros(np.broadcast(numerator, denominator).shape)
    np.divide(numerator, denominator, out=quotient, where=np.asarray(denominator) != 0)
    return quotient


@dataclass(frozen=True)
class RowValues:
    """Coefficients of rows: attention mass m in the sieve gives ``slopes * m + offsets``.

    Both are 0 for rows that are not ``scored`` because the role does not apply to them. No row has
    more than the mass ``most``.
    """

    slopes: FloatArray
    offsets: FloatArray
    scored: BoolArray
    most: FloatArray | float = 1.0

    @property
    def limits(self) -> FloatArray:
        """(3, ...): constant, least and greatest value of each row under any attention."""
        signs = np.minimum(self.slopes, 0), np.maximum(self.slopes, 0) * self.most
        limits: FloatArray = self.offsets + np.stack([np.zeros_like(self.slopes), *signs])
        return limits


@dataclass(frozen=True)
class Score:
    """A kind of score.

    ``row_values`` takes the number of keys of each row and the number in its sieve. ``uniform`` is
    the score of uniform attention, ``threshold`` the mean that a head has to exceed to have a role,
    and ``margin`` the smallest difference of means that counts as relevant: a quarter of the way
    from uniform attention to the threshold. A score ``of_first_choice`` reads only the place of
    each row's maximum: see `headroles.roles.batch`.

    No row of any length has less than ``low`` or more than ``high``. If these are infinite, tests
    by betting downweight examples that could lie farther than ``cap`` from the threshold.
    """

    name: ScoreName
    uniform: float
    threshold: float
    row_values: Callable[[IntArray, IntArray], RowValues]
    of_first_choice: bool = False
    low: float = -math.inf
    high: float = math.inf
    cap: float = 1.0

    @property
    def margin(self) -> float:
        """Default margin of equivalence."""
        return (self.threshold - self.uniform) / 4


def _bias(lengths: IntArray, sizes: IntArray) -> RowValues:
    """Divide m by the mass e = size / length of uniform attention; rows need a key in the sieve."""
    inside = np.broadcast_arrays(sizes, lengths)[0]
    slopes = divide(lengths, inside)
    return RowValues(slopes, np.zeros_like(slopes), inside > 0)


def _excess(lengths: IntArray, sizes: IntArray) -> RowValues:
    """Compute (m - e) / (1 - e); a row needs keys inside and outside of the sieve."""
    inside, outside = np.broadcast_arrays(sizes, lengths - sizes)
    scored = (inside > 0) & (outside > 0)
    return RowValues(
        slopes=divide(lengths, outside) * scored,
        offsets=-divide(inside, outside),
        scored=scored,
    )


def _hit(lengths: IntArray, sizes: IntArray) -> RowValues:
    """Score 1 if the first choice is in the sieve, else 0, as the mass of an indicator row."""
    inside = np.broadcast_arrays(sizes, lengths)[0] > 0
    return RowValues(inside.astype(np.float64), np.zeros(inside.shape), inside)


BIAS = Score("bias", 1, 3, _bias, low=0, cap=20)
EXCESS = Score("excess", 0, 0.1, _excess, high=1, cap=1.2)
HIT = Score("hit", 0, 0.5, _hit, of_first_choice=True, low=0, high=1)
SCORES: dict[str, Score] = {score.name: score for score in (BIAS, EXCESS, HIT)}
"""All scores, by name."""
