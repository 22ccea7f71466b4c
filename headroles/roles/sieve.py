"""Sieves: for each query of a role, the keys that a head with it would look at.

For one example of n tokens and one head, ``A[i, j]`` is the attention from query i to key j. A role
names query tokens Q and, for each, a sieve of keys S_i, and scores the head by the mean over i in Q
of a value of row i. The ``bias`` score reads n / |S_i| times the mass of attention in S_i; all
scores are linear in that mass:

    mean over i in Q of (slope_i * sum of A[i, j] over j in S_i + offset_i) = sum_ij W_ij A_ij + c

W and c are fixed before the model runs, so scoring is a contraction of attention with them. There
are two kinds of sieves, each of which keeps W small in its own way, and both are exact: key sets
that many queries share (`headroles.roles.sets`), and pairs of a query and a key with a weight
(`headroles.roles.pairs`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from headroles.arrays import BoolArray, Float32Array, IntArray
from headroles.roles.batch import PaddedBatch, Scope

Array: TypeAlias = Any
"""A NumPy array in a new readout, a tensor where the model runs."""
Layer: TypeAlias = Any
"""Attention of one layer over a batch: an `AttentionLayer` or `ChoiceLayer` of
`headroles.scoring.layer`.
"""
KeySets: TypeAlias = dict[int, BoolArray]
"""The key sets (B, N) of all sieves of a readout in order, each once, by `id`."""


class Sieve(ABC):
    """Rule that finds the sieve of a role."""

    @property
    def kind(self) -> Hashable:
        """Key of the sieves that are read together; by default each sieve is read alone."""
        return self

    def key_sets(self, batch: PaddedBatch) -> Sequence[BoolArray]:
        """Return the sets of keys (B, N) whose attention mass is read for every row."""
        return ()

    @abstractmethod
    def readout(self, alike: Sequence[Any], scope: Scope, key_sets: KeySets) -> SieveReadout:
        """Make the readout of the scores of ``alike``, the sieves of this kind."""


@dataclass(frozen=True, kw_only=True)
class SieveReadout:
    """Readout of the scores of r roles with sieves of one kind, for a batch.

    ``function`` reads scores less their constants (B, heads, r) from a layer and the ``arrays``;
    they are undefined where counts are 0. ``limits`` (3, B, r) are these constants, and the least
    and the greatest score under any attention, NaN where unknown. ``counts`` (B, r) are numbers of
    tokens or arcs behind each score; a count of 0 means that there is no score. By reason,
    ``skipped`` counts arcs of words without pieces, and ``controls`` links with and without
    controls.

    It reads attention; for scores of first choices, if ``among`` names candidates, 1 at the choice
    and 0 elsewhere. ``offset_shares`` (B, r, offsets) are the scores of always looking at a fixed
    offset, NaN without a score; None for roles that are not compared with fixed offsets.
    """

    function: Callable[..., Array]
    arrays: tuple[Array, ...]
    limits: Float32Array
    counts: IntArray
    among: str | None = None
    offset_shares: Float32Array | None = None
    skipped: Counter[str] = field(default_factory=Counter)
    controls: Counter[str] = field(default_factory=Counter)

    def read(self, layer: Layer) -> Array:
        """Return scores less their constants (B, heads, r), undefined where counts are 0."""
        return self.function(layer, *self.arrays)
