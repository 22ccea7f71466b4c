"""Sieves that many queries share, such as the separators or the words of a segment."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from headroles.arrays import BoolArray, Float32Array, IntArray
from headroles.roles.arithmetic import divide
from headroles.roles.batch import PaddedBatch, Scope
from headroles.roles.first_choices import EVERY, among_in, queries_among
from headroles.roles.sieve import Array, KeySetList, Layer, Sieve, SieveReadout


class Shared(NamedTuple):
    """Queries (B, N) that look for the same keys (B, N)."""

    queries: BoolArray
    keys: BoolArray


FindShared: TypeAlias = Callable[[PaddedBatch], Sequence[Shared]]


@dataclass(frozen=True)
class SharedSieve(Sieve):
    """Base of sieves in which many queries share their keys.

    First choices are looked for ``among`` some candidates.
    """

    find: FindShared
    among: str = EVERY

    @property
    def kind(self) -> Hashable:
        """Kind of the sieve; sieves with the same keys are read together."""
        return type(self), self.find, self.among

    def key_sets(self, batch: PaddedBatch) -> Sequence[BoolArray]:
        """Return the keys of all queries."""
        return [shared.keys for shared in batch.of(self.find)]


@dataclass(frozen=True)
class KeySets(SharedSieve):
    """Attention of every row to its keys, all sieves in one product."""

    @property
    def kind(self) -> Hashable:
        """Kind of the sieve; sieves with any keys are read together."""
        return type(self), self.among

    def readout(
        self, alike: Sequence[KeySets], scope: Scope, key_sets: KeySetList
    ) -> KeySetReadout:
        """Find the weights of each row's attention mass on each key set."""
        found = [find_row_weights(sieve, scope, key_sets) for sieve in alike]
        weights = np.stack([own.weights for own in found], axis=-1)
        return KeySetReadout(
            weights=weights.reshape(scope.batch.size, -1, len(alike)),
            constants=np.stack([own.constants for own in found], axis=1),
            counts=np.stack([own.counts for own in found], axis=1),
            among=among_in(scope, self.among),
            lows=np.stack([own.lows for own in found], axis=1),
            highs=np.stack([own.highs for own in found], axis=1),
        )


@dataclass(frozen=True, kw_only=True)
class KeySetReadout(SieveReadout):
    """Readout with ``weights`` (B, N * K, r) of each row's attention mass on each key set."""

    weights: Float32Array

    def read(self, layer: Layer) -> Array:
        """Return weighted sums of masses."""
        return layer.masses.flatten(2).bmm(self.weights)


@dataclass(frozen=True)
class RowWise(SharedSieve):
    """Attention of every row to its keys, summed row by row.

    ``times_entropy`` multiplies each row by its entropy in nats.
    """

    times_entropy: bool = False

    def readout(
        self, alike: Sequence[RowWise], scope: Scope, key_sets: KeySetList
    ) -> RowWiseReadout:
        """Find the weights of each row's attention mass on each key set."""
        rows = find_row_weights(self, scope, key_sets)
        return RowWiseReadout(
            weights=rows.weights,
            times_entropy=tuple(sieve.times_entropy for sieve in alike),
            is_empty=not rows.counts.any(),
            constants=np.repeat(rows.constants[:, None], len(alike), axis=1),
            counts=np.repeat(rows.counts[:, None], len(alike), axis=1),
            among=among_in(scope, self.among),
            lows=np.repeat(rows.lows[:, None], len(alike), axis=1),
            highs=np.stack(
                [
                    rows.highs_times_entropy if sieve.times_entropy else rows.highs
                    for sieve in alike
                ],
                axis=1,
            ),
        )


@dataclass(frozen=True, kw_only=True)
class RowWiseReadout(SieveReadout):
    """Readout with ``weights`` (B, N, K) as in `KeySetReadout`; r roles choose to use entropy."""

    weights: Float32Array
    times_entropy: tuple[bool, ...]
    is_empty: bool

    def read(self, layer: Layer) -> Array:
        """Return sums of rows. Entropies are slow to compute, so skip them if there are no rows."""
        masses = layer.masses
        if self.is_empty:
            return masses.new_zeros(*masses.shape[:2], len(self.times_entropy))
        rows = (masses * self.weights[:, None]).sum(dim=-1)
        scores = rows.new_empty(*rows.shape[:2], len(self.times_entropy))
        for place, times_entropy in enumerate(self.times_entropy):
            scores[..., place] = (rows * layer.entropies if times_entropy else rows).sum(dim=-1)
        return scores


@dataclass(frozen=True)
class Evenness(SharedSieve):
    """Evenness of every row over its keys: the entropy within them / ln of their number.

    Rows with a single key are skipped, since attention to one key is always even.
    """

    def readout(
        self, alike: Sequence[Evenness], scope: Scope, key_sets: KeySetList
    ) -> EvennessReadout:
        """Find the weights of entropies within sets: 1 / (rows * ln of the set's size)."""
        batch = scope.batch
        weights = np.zeros((batch.size, batch.width, len(key_sets)))
        counts = np.zeros(batch.size, dtype=np.int64)
        for queries, keys in batch.of(self.find):
            sizes = scope.count(keys)
            scored = queries & (sizes > 1)
            weights[:, :, key_sets.place(keys)] = divide(scored, np.log(np.maximum(sizes, 1)))
            counts += scored.sum(axis=1)
        return EvennessReadout(
            weights=divide(weights, counts[:, None, None]).astype(np.float32),
            is_empty=not counts.any(),
            constants=np.zeros((batch.size, 1), dtype=np.float32),
            counts=counts[:, None],
            lows=np.zeros((batch.size, 1), dtype=np.float32),
            highs=np.ones((batch.size, 1), dtype=np.float32),
        )


@dataclass(frozen=True, kw_only=True)
class EvennessReadout(SieveReadout):
    """Readout with ``weights`` (B, N, K) of each row's entropy within each key set."""

    weights: Float32Array
    is_empty: bool

    def read(self, layer: Layer) -> Array:
        """Return weighted sums of entropies, or zeros if there are no rows."""
        if self.is_empty:
            return layer.masses.new_zeros(*layer.masses.shape[:2], 1)
        entropies = layer.entropies_within * self.weights[:, None]
        return entropies.sum((-2, -1))[..., None]


@dataclass(frozen=True)
class RowWeights:
    """``weights`` (B, N, K) of each row's mass on each key set; constants and counts (B,).

    Scores lie between ``lows`` and ``highs`` (B,). If each row is multiplied by its entropy, the
    upper limit is ``highs_times_entropy``: a row of n keys has an entropy of at most ln n.
    """

    weights: Float32Array
    constants: Float32Array
    counts: IntArray
    lows: Float32Array
    highs: Float32Array
    highs_times_entropy: Float32Array


def find_row_weights(sieve: SharedSieve, scope: Scope, key_sets: KeySetList) -> RowWeights:
    """Return the weights under which the masses of all rows add up to an example's score."""
    batch = scope.batch
    weights = np.zeros((batch.size, batch.width, len(key_sets)))
    sums = np.zeros((4, batch.size))
    counts = np.zeros(batch.size, dtype=np.int64)
    # a row of n keys has at most the entropy of uniform attention, ln n
    most_entropy = np.log(np.maximum(scope.row_lengths, 1))
    for queries, keys in batch.of(sieve.find):
        rows = scope.row_values(scope.count(keys))
        scored = queries & rows.scored
        if scope.score.of_first_choice:  # the choice of a word is stored at its first piece
            scored &= queries_among(batch, sieve.among)
        weights[:, :, key_sets.place(keys)] += rows.slopes * scored
        of_rows = (rows.offsets, rows.lows, rows.highs, rows.highs * most_entropy)
        sums += [(values * scored).sum(axis=1) for values in of_rows]
        counts += scored.sum(axis=1)
    # the mean over rows is taken here, once, so that a layer needs a product only
    means = divide(sums, counts).astype(np.float32)
    constants, lows, highs, highs_times_entropy = means
    return RowWeights(
        weights=divide(weights, counts[:, None, None]).astype(np.float32),
        constants=constants,
        counts=counts,
        lows=lows,
        highs=highs,
        highs_times_entropy=highs_times_entropy,
    )
