"""Sieves of keys that many queries share: separators, words of a segment, words of some kind.

Where queries are words, a word scores the mean over its pieces, an example the mean over its words.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from headroles.arrays import BoolArray, Float32Array, FloatArray, IntArray
from headroles.corpus import Sentence
from headroles.roles.arithmetic import divide
from headroles.roles.batch import PaddedBatch, Scope, placed_sentences
from headroles.roles.first_choices import EVERY, WORDS, among_in, queries_among
from headroles.roles.sieve import Array, KeySetList, Layer, Sieve, SieveReadout


class Shared(NamedTuple):
    """Queries (B, N) that look for the same keys (B, N)."""

    queries: BoolArray
    keys: BoolArray


FindShared: TypeAlias = Callable[[PaddedBatch], Sequence[Shared]]


@dataclass(frozen=True)
class Sets(Sieve):
    """Base of sieves in which many queries share their keys, which ``find`` finds."""

    find: FindShared


@dataclass(frozen=True)
class TokenSets(Sets):
    """Base of sieves of tokens. First choices are looked for ``among`` some candidates."""

    among: str = EVERY

    @property
    def kind(self) -> Hashable:
        """Kind of the sieve; sieves with the same keys are read together."""
        return type(self), self.find, self.among

    def key_sets(self, batch: PaddedBatch) -> Sequence[BoolArray]:
        """Return the keys of all queries."""
        return [shared.keys for shared in batch.of(self.find)]

    def row_weights(self, scope: Scope, key_sets: KeySetList) -> RowWeights:
        """Return the weights under which the masses of all rows add up to an example's score."""
        batch = scope.batch
        weights = np.zeros((batch.size, batch.width, len(key_sets)))
        sums = np.zeros((4, batch.size))
        counts = np.zeros(batch.size, dtype=np.int64)
        # a row of n keys has at most the entropy of uniform attention, ln n
        most_entropy = np.log(np.maximum(scope.row_lengths, 1))
        for queries, keys in batch.of(self.find):
            rows = scope.row_values(scope.count(keys))
            scored = queries & rows.scored
            if scope.score.of_first_choice:  # the choice of a word is stored at its first piece
                scored &= queries_among(batch, self.among)
            weights[:, :, key_sets.place(keys)] += rows.slopes * scored
            of_rows = (rows.offsets, rows.lows, rows.highs, rows.highs * most_entropy)
            sums += [(values * scored).sum(axis=1) for values in of_rows]
            counts += scored.sum(axis=1)
        # the mean over rows is taken here, once, so that a layer needs a product only
        means = divide(sums, counts).astype(np.float32)
        return RowWeights(divide(weights, counts[:, None, None]).astype(np.float32), means, counts)


class RowWeights(NamedTuple):
    """``weights`` (B, N, K) of each row's mass on each key set, and counts (B,).

    ``means`` (4, B) are the constant, the least and the greatest score, and the greatest one if
    each row is multiplied by its entropy: a row of n keys has an entropy of at most ln n.
    """

    weights: Float32Array
    means: Float32Array
    counts: IntArray


@dataclass(frozen=True)
class KeySets(TokenSets):
    """Attention of every row to its keys, all sieves in one product."""

    @property
    def kind(self) -> Hashable:
        """Kind of the sieve; sieves with any keys are read together."""
        return type(self), self.among

    def readout(
        self, alike: Sequence[KeySets], scope: Scope, key_sets: KeySetList
    ) -> KeySetReadout:
        """Find the weights of each row's attention mass on each key set."""
        found = [sieve.row_weights(scope, key_sets) for sieve in alike]
        weights = np.stack([own.weights for own in found], axis=-1)
        constants, lows, highs, _ = np.stack([own.means for own in found], axis=-1)
        return KeySetReadout(
            weights=weights.reshape(scope.batch.size, -1, len(alike)),
            constants=constants,
            counts=np.stack([own.counts for own in found], axis=1),
            among=among_in(scope, self.among),
            lows=lows,
            highs=highs,
        )


@dataclass(frozen=True, kw_only=True)
class KeySetReadout(SieveReadout):
    """Readout with ``weights`` (B, N * K, r) of each row's attention mass on each key set."""

    weights: Float32Array

    def read(self, layer: Layer) -> Array:
        """Return weighted sums of masses."""
        return layer.masses.flatten(2).bmm(self.weights)


@dataclass(frozen=True)
class RowWise(TokenSets):
    """Attention of every row to its keys, summed row by row.

    ``times_entropy`` multiplies each row by its entropy in nats.
    """

    times_entropy: bool = False

    def readout(
        self, alike: Sequence[RowWise], scope: Scope, key_sets: KeySetList
    ) -> RowWiseReadout:
        """Find the weights of each row's attention mass on each key set."""
        rows = self.row_weights(scope, key_sets)
        constant, low, high, with_entropy = rows.means
        highs = [with_entropy if sieve.times_entropy else high for sieve in alike]
        return RowWiseReadout(
            weights=rows.weights,
            times_entropy=tuple(sieve.times_entropy for sieve in alike),
            is_empty=not rows.counts.any(),
            constants=np.repeat(constant[:, None], len(alike), axis=1),
            counts=np.repeat(rows.counts[:, None], len(alike), axis=1),
            among=among_in(scope, self.among),
            lows=np.repeat(low[:, None], len(alike), axis=1),
            highs=np.stack(highs, axis=1),
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
class Evenness(TokenSets):
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
        zeros = np.zeros((batch.size, 1), dtype=np.float32)
        return EvennessReadout(
            weights=divide(weights, counts[:, None, None]).astype(np.float32),
            is_empty=not counts.any(),
            constants=zeros,
            counts=counts[:, None],
            lows=zeros,
            highs=zeros + 1,
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
class WordSets(Sets):
    """Sieve of words that many words look for, with all of their pieces."""

    @property
    def kind(self) -> Hashable:
        """Kind of the sieve; all sieves of words are read together."""
        return type(self)

    def readout(
        self, alike: Sequence[WordSets], scope: Scope, key_sets: KeySetList
    ) -> WordSetReadout:
        """Find the weights of each row's attention mass on each set of words."""
        batch = scope.batch
        found = [(own, shared) for own, one in enumerate(alike) for shared in batch.of(one.find)]
        weights = np.zeros((batch.size, batch.width, len(found)))
        sums: FloatArray = np.zeros((3, batch.size, len(alike)))
        counts = np.zeros((batch.size, len(alike)), dtype=np.int64)
        for place, (own, shared) in enumerate(found):
            rows = scope.row_values(_sizes(scope, shared.keys))
            scored = shared.queries & rows.scored & batch.in_words
            if scope.score.of_first_choice:
                scored &= batch.first_pieces
            # attention from a word is the mean over its pieces, so each piece has a share
            shares = divide(scored.astype(np.float64), batch.count_in_words(scored))
            weights[:, :, place] = rows.slopes * shares
            for total, of_rows in zip(sums, (rows.offsets, rows.lows, rows.highs), strict=True):
                total[:, own] += (of_rows * shares).sum(axis=1)
            counts[:, own] += np.round(shares.sum(axis=1)).astype(np.int64)
        owners = np.array([own for own, _ in found], dtype=np.int64)
        constants, lows, highs = divide(sums, counts).astype(np.float32)
        return WordSetReadout(
            keys=np.stack([shared.keys for _, shared in found], axis=-1).astype(np.float32),
            weights=divide(weights, counts[:, None, owners]).astype(np.float32),
            of_roles=np.eye(len(alike), dtype=np.float32)[owners],
            constants=constants,
            lows=lows,
            highs=highs,
            counts=counts,
            among=among_in(scope, WORDS),
        )


def _sizes(scope: Scope, keys: BoolArray) -> IntArray:
    """Count the keys of each query (B, N); for first choices of words those of others.

    A word sees another if any piece of the one sees any piece of the other, as in `links`.
    """
    if not scope.score.of_first_choice:
        return scope.count(keys)
    own = scope.batch.n_pieces
    return scope.count(keys, np.maximum(own, 1)) - keys * own


@dataclass(frozen=True, kw_only=True)
class WordSetReadout(SieveReadout):
    """Readout with ``weights`` (B, N, k) of each row's mass on each of k ``keys`` (B, N, k).

    ``of_roles`` (k, r) is 1 where a set belongs to a role.
    """

    keys: Float32Array
    weights: Float32Array
    of_roles: Float32Array

    def read(self, layer: Layer) -> Array:
        """Return weighted sums of masses."""
        return (layer.masses_of(self.keys) * self.weights[:, None]).sum(-2) @ self.of_roles


def sets_of_sentences(
    batch: PaddedBatch, find: Callable[[Sentence], Collection[int]]
) -> list[Shared]:
    """Make each sentence's words look for the words whose places ``find`` returns for it."""
    queries, keys = np.zeros((2, 2, batch.size, batch.width), dtype=bool)
    for row, example in enumerate(batch.examples):
        for segment, (before, sentence) in enumerate(placed_sentences(example)):
            places = [before + place for place in find(sentence)]
            keys[segment, row] = np.isin(batch.words[row], places)
            queries[segment, row] = batch.segments[row] == segment
    return [Shared(queries[segment], keys[segment]) for segment in (0, 1)]
