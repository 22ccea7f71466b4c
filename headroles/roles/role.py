"""What a role is, and a score: how the attention mass in a role's sieve becomes a number."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from headroles.arrays import BoolArray, FloatArray, IntArray
from headroles.record import RecordedRole
from headroles.role_names import is_contrast, is_other_trees
from headroles.storage import plain

if TYPE_CHECKING:
    from headroles.corpus import Sentence
    from headroles.roles.sieve import Sieve

# Scores


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

    name: str
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
SCORES = {score.name: score for score in (BIAS, EXCESS, HIT)}
"""All scores, by name."""


# Roles

TOKENS, ARCS = "tokens", "arcs"
PAIRS = "pairs of sentences of one document that follow one another"


@dataclass(frozen=True)
class Context:
    """Setting that roles are made for: the scored relations, a score, and the corpus.

    ``sentences`` can be iterated any number of times.
    """

    relations: tuple[str, ...]
    score: Score
    sentences: Iterable[Sentence] = ()


@dataclass(frozen=True)
class Role:
    """A job that a head may have: for each query, a sieve of keys to look at.

    Args:
        id: the name in tables, such as ``syntactic:nsubj:to_governor``.
        unit: the unit of counts behind scores, ``TOKENS`` or ``ARCS``.
        thresholds: by score, the mean that a head has to exceed, if it is not the score's own.
        baseline: the value that a mean is compared with instead of any threshold; None if there is
            none.
        meaning: further facts that define the role, such as the width of a window. Roles with one
            id but different meanings are different roles.
        measure_of: the id of the role that this measure describes; a measure is never tested.
        is_described: whether it is a quantity that describes heads: estimated, never tested.
        in_window: how the role changes in a layer that sees only a window, as the end of a
            sentence.
        needs: the property that an example needs to have a score, in words: ``PAIRS``, or another
            that some corpora lack.
        sieve: how the sieve is found; None for a role that was read from a file.

    >>> Role("syntactic:nsubj:to_governor", ARCS).is_tested
    True
    """

    id: str
    unit: str = TOKENS
    thresholds: Mapping[str, float] = field(default_factory=dict, hash=False)
    baseline: float | None = None
    meaning: Mapping[str, Any] = field(default_factory=dict, hash=False)
    measure_of: str = ""
    is_described: bool = False
    in_window: str = field(default="", compare=False)
    needs: str = field(default="", compare=False)
    sieve: Sieve | None = field(default=None, compare=False, repr=False)

    @property
    def is_tested(self) -> bool:
        """Whether this is a role, and no measure, contrast or control of one, and no quantity."""
        of_another = self.measure_of or is_contrast(self.id) or is_other_trees(self.id)
        return not (of_another or self.is_described)

    def threshold(self, score: Score, asked: float | None = None) -> float:
        """Return the number that a head's mean is compared with; ``asked`` is the user's."""
        if self.baseline is not None:
            return self.baseline
        return self.thresholds.get(score.name, score.threshold) if asked is None else asked

    def to_record(self) -> RecordedRole:
        """Return the role as a record has it, without its sieve."""
        known = {name: getattr(self, name) for name in RecordedRole.__struct_fields__}
        return RecordedRole(**plain(known))

    @classmethod
    def from_record(cls, record: RecordedRole) -> Role:
        """Rebuild a role from `to_record`, without its sieve."""
        return cls(**structs.asdict(record))
