"""Sieves: for each query of a role, the keys that a head with it would look at.

For one example of n tokens and one head, ``A[i, j]`` is the attention from query i to key j. A
role names query tokens Q and, for each, a sieve of keys S_i, and scores the head by the mean over
i in Q of what is read from row i. The ``bias`` score reads n / |S_i| times the mass of attention in
S_i; all scores are linear in that mass:

    mean over i in Q of (slope_i * sum of A[i, j] over j in S_i + offset_i) = sum_ij W_ij A_ij + c

W and c are fixed before the model runs, so scoring is a contraction of attention with them. There
are few kinds of sieves, each with a way of its own to keep W small, and all are exact: key sets
that many queries share (`headroles.roles.key_sets`), keys at fixed offsets
(`headroles.roles.offsets`), and pairs of words (`headroles.roles.links`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from headroles.encoding import IntArray
from headroles.roles.batch import Batch, Scope
from headroles.roles.rows import BoolArray, FloatArray

Array: TypeAlias = Any
"""A NumPy array when planned, a tensor where the model runs."""


class Sieve(ABC):
    """How the sieve of a role is found."""

    @property
    def kind(self) -> Hashable:
        """Sieves of one kind are planned together; each by itself unless it says otherwise."""
        return self

    def key_sets(self, batch: Batch) -> Sequence[BoolArray]:
        """Sets of keys (B, N) whose attention mass is to be read for every row."""
        return ()

    @abstractmethod
    def plan(self, alike: Sequence[Any], scope: Scope, key_sets: KeySetList) -> Part:
        """How the scores of ``alike``, the sieves of this kind, are read from attention."""


class KeySetList(Protocol):
    """The key sets of all sieves of a plan, in an order of their own."""

    def place(self, keys: BoolArray) -> int:
        """Where these very ``keys`` stand."""

    def __len__(self) -> int: ...


class Layer(Protocol):
    """The attention of one layer over a batch, as parts of a plan read it."""

    key_sets: Array
    """(B, N, K), 1 where a token belongs to a set."""

    @property
    def masses(self) -> Array:
        """(B, heads, N, K): the attention of every row to each key set."""

    def masses_of(self, key_sets: Array) -> Array:
        """(B, heads, N, k): the same for other sets (B, N, k)."""

    @property
    def entropies(self) -> Array:
        """(B, heads, N): the entropy of every row in nats."""

    @property
    def entropies_within(self) -> Array:
        """(B, heads, N, K): the entropy of every row's attention within each key set, in nats."""

    @property
    def distances(self) -> Array:
        """(B, heads, N): the mean distance of keys from every query, by attention."""

    def largest(self, barred: Array) -> Array:
        """(B, heads, N): the largest attention of every row among keys not ``barred`` (B, N)."""

    def at(self, pairs: Array) -> Array:
        """(B, heads, P): the attention at ``pairs`` (B, P) of query * N + key."""


@dataclass(frozen=True, kw_only=True)
class Part(ABC):
    """The scores of r roles with sieves of one kind, planned for a batch.

    ``constants`` (B, r) are to be added to what is read. ``counts`` (B, r) is how many tokens or
    arcs are behind a score; where it is 0 there is none. ``skipped`` counts what was left out for
    want of pieces, ``controls`` what contrasts could be made of, by reason.

    What is read is attention, or first choices ``among`` some candidates in its place: 1 where the
    choice is and 0 elsewhere. ``offset_shares`` (B, r, offsets) is what looking at a fixed offset
    would score, NaN where there is no score; None for roles that have nothing to do with it.

    ``lows`` and ``highs`` (B, r) are what scores lie between whatever the attention, None where
    nothing is known.
    """

    constants: FloatArray
    counts: IntArray
    among: str | None = None
    offset_shares: FloatArray | None = None
    lows: FloatArray | None = None
    highs: FloatArray | None = None
    skipped: Counter[str] = field(default_factory=Counter)
    controls: Counter[str] = field(default_factory=Counter)

    @abstractmethod
    def read(self, layer: Layer) -> Array:
        """(B, heads, r): scores less their constants; meaningless where counts are 0."""
