"""Sieves: for each query of a role, the keys that a head with it would look at.

For one example of n tokens and one head, ``A[i, j]`` is the attention from query i to key j. A role
names query tokens Q and, for each, a sieve of keys S_i, and scores the head by the mean over i in Q
of a value of row i. The ``bias`` score reads n / |S_i| times the mass of attention in S_i; all
scores are linear in that mass:

    mean over i in Q of (slope_i * sum of A[i, j] over j in S_i + offset_i) = sum_ij W_ij A_ij + c

W and c are fixed before the model runs, so scoring is a contraction of attention with them. There
are few kinds of sieves, each of which keeps W small in its own way, and all are exact: key sets
that many queries share (`headroles.roles.sets`), keys at fixed offsets
(`headroles.roles.offsets`), and pairs of words (`headroles.roles.links`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np

from headroles.arrays import BoolArray, Float32Array, IntArray
from headroles.roles.batch import PaddedBatch, Scope

Array: TypeAlias = Any
"""A NumPy array in a new readout, a tensor where the model runs."""


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
    def readout(self, alike: Sequence[Any], scope: Scope, key_sets: KeySetList) -> SieveReadout:
        """Make the readout of the scores of ``alike``, the sieves of this kind."""


class KeySetList:
    """Key sets of all sieves of a readout, each once, in the order in which sieves name them."""

    def __init__(self) -> None:
        self._places: dict[int, int] = {}
        self._key_sets: list[BoolArray] = []

    def __len__(self) -> int:
        return len(self._key_sets)

    def add(self, key_sets: Sequence[BoolArray]) -> None:
        """Add those of the key sets that are not in the list."""
        for keys in key_sets:
            if id(keys) not in self._places:  # ids stay valid: the list keeps the arrays alive
                self._places[id(keys)] = len(self._key_sets)
                self._key_sets.append(keys)

    def place(self, keys: BoolArray) -> int:
        """Return the place of ``keys``, found by identity."""
        return self._places[id(keys)]

    def stacked(self, batch: PaddedBatch) -> Float32Array:
        """Stack all sets as (B, N, K), 1 where a token belongs to a set."""
        if not self._key_sets:
            return np.zeros((batch.size, batch.width, 0), dtype=np.float32)
        return np.stack(self._key_sets, axis=-1).astype(np.float32)


class Layer(Protocol):
    """The attention of one layer over a batch, as readouts read it."""

    key_sets: Array
    """Array (B, N, K), 1 where a token belongs to a set."""

    @property
    def masses(self) -> Array:
        """(B, heads, N, K): attention of every row to each key set."""

    def masses_of(self, key_sets: Array) -> Array:
        """Return the attention (B, heads, N, k) of every row to other sets (B, N, k)."""

    @property
    def entropies(self) -> Array:
        """(B, heads, N): entropy of every row in nats."""

    @property
    def entropies_within(self) -> Array:
        """(B, heads, N, K): entropy of every row's attention within each key set, in nats."""

    @property
    def distances(self) -> Array:
        """(B, heads, N): mean distance of keys from every query, weighted by attention."""

    def largest(self, barred: Array) -> Array:
        """Return the largest attention (B, heads, N) of every row to keys not in ``barred``."""

    def at(self, pairs: Array) -> Array:
        """Return the attention (B, heads, P) at ``pairs`` (B, P) of query * N + key."""


@dataclass(frozen=True, kw_only=True)
class SieveReadout(ABC):
    """Readout of the scores of r roles with sieves of one kind, for a batch.

    ``constants`` (B, r) are added to the values read. ``counts`` (B, r) are numbers of tokens or
    arcs behind each score; a count of 0 means that there is no score. By reason, ``skipped`` counts
    arcs of words without pieces, and ``controls`` links with and without controls.

    It reads attention, or, if ``among`` names candidates, first choices: 1 at the choice and 0
    elsewhere. ``offset_shares`` (B, r, offsets) are the scores of always looking at a fixed offset,
    NaN without a score; None for roles that are not compared with fixed offsets.

    Scores lie between ``lows`` and ``highs`` (B, r) under any attention; NaN where unknown.
    """

    constants: Float32Array
    counts: IntArray
    lows: Float32Array
    highs: Float32Array
    among: str | None = None
    offset_shares: Float32Array | None = None
    skipped: Counter[str] = field(default_factory=Counter)
    controls: Counter[str] = field(default_factory=Counter)

    @abstractmethod
    def read(self, layer: Layer) -> Array:
        """Return scores less their constants (B, heads, r), undefined where counts are 0."""
