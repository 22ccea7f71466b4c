"""Sieves of keys that many queries share: separators, words of a segment, words of some kind.

Where queries are words, a word scores the mean over its pieces, an example the mean over its words.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from headroles.arrays import BoolArray, Float32Array, FloatArray, IntArray
from headroles.corpus import Sentence
from headroles.roles.batch import PaddedBatch, Scope, placed_sentences
from headroles.roles.first_choices import EVERY, WORDS, queries_among
from headroles.roles.scores import divide
from headroles.roles.sieve import Array, KeySets, Layer, Sieve, SieveReadout


class Shared(NamedTuple):
    """Queries (B, N) that look for the same keys (B, N)."""

    queries: BoolArray
    keys: BoolArray


FindShared: TypeAlias = Callable[[PaddedBatch], Sequence[Shared]]


class RowWeights(NamedTuple):
    """Weights (B, N, K) of each row's mass on each key set, and counts (B,).

    ``limits`` (3, B) are the constant, the least and the greatest score.
    """

    weights: Float32Array
    limits: Float32Array
    counts: IntArray


@dataclass(frozen=True)
class Sets(Sieve):
    """Sieve of keys that many queries share; the attention to all sets is read in one product.

    ``find`` finds queries and keys. First choices are looked for ``among`` some candidates.
    """

    find: FindShared
    among: str = EVERY

    @property
    def kind(self) -> Hashable:
        """Kind of the sieve; sieves with any keys are read together."""
        return type(self), self.among

    def key_sets(self, batch: PaddedBatch) -> Sequence[BoolArray]:
        """Return the keys of all queries."""
        return [shared.keys for shared in batch.of(self.find)]

    def readout(self, alike: Sequence[Sets], scope: Scope, key_sets: KeySets) -> SieveReadout:
        """Find the weights of each row's attention mass on each key set."""
        found = [sieve.row_weights(scope, key_sets) for sieve in alike]
        weights = np.stack([own.weights for own in found], axis=-1)
        weights = weights.reshape(scope.batch.size, -1, len(alike))
        return SieveReadout(function=_in_one_product, arrays=(weights,), **self.facts(found))

    def facts(self, found: Sequence[RowWeights]) -> dict[str, Any]:
        """Return what the readout of sieves with these weights knows beside its arrays."""
        limits = np.stack([rows.limits for rows in found], axis=-1)
        counts = np.stack([rows.counts for rows in found], axis=1)
        return {"limits": limits, "counts": counts, "among": self.among}

    def row_weights(
        self, scope: Scope, key_sets: KeySets, most: FloatArray | int = 1
    ) -> RowWeights:
        """Return the weights under which the masses of all rows add up to an example's score.

        The value of each row is multiplied by a number that is at ``most`` (B, N).
        """
        batch, of_words = scope.batch, self.among == WORDS
        weights = np.zeros((batch.size, batch.width, len(key_sets)))
        sums = np.zeros((3, batch.size))
        counts = np.zeros(batch.size, dtype=np.int64)
        for queries, keys in batch.of(self.find):
            sizes = scope.count(keys)
            if of_words and scope.score.of_first_choice:
                # words other than the query's; one sees another if any of their pieces do
                n_pieces = batch.n_pieces
                sizes = scope.count(keys, np.maximum(n_pieces, 1)) - keys * n_pieces
            rows = scope.row_values(sizes)
            shares: Any = queries & rows.scored
            if scope.score.of_first_choice:  # the choice of a word is stored at its first piece
                shares &= queries_among(batch, self.among)
            if of_words:  # attention from a word is the mean over its pieces
                shares &= batch.in_words
                shares = divide(shares.astype(np.float64), batch.count_in_words(shares))
            weights[:, :, list(key_sets).index(id(keys))] += rows.slopes * shares
            limits = rows.limits
            limits[2] *= most
            sums += (limits * shares).sum(axis=-1)
            counts += np.round(shares.sum(axis=1)).astype(np.int64)
        # the mean over rows is taken here, once, so that a layer needs a product only
        means = divide(weights, counts[:, None, None]).astype(np.float32)
        return RowWeights(means, divide(sums, counts).astype(np.float32), counts)


def _in_one_product(layer: Layer, weights: Array) -> Array:
    """Return sums of masses under ``weights`` (B, N * K, r)."""
    return layer.masses.flatten(2).bmm(weights)


@dataclass(frozen=True)
class RowWise(Sets):
    """Attention of every row to its keys, summed row by row.

    ``times_entropy`` multiplies each row by its entropy in nats.
    """

    times_entropy: bool = False

    @property
    def kind(self) -> Hashable:
        """Kind of the sieve; each is read alone."""
        return self

    def readout(self, alike: Sequence[Sets], scope: Scope, key_sets: KeySets) -> SieveReadout:
        """Find the weights of each row's attention mass on each key set."""
        # a row of n keys has at most the entropy of uniform attention, ln n
        most = np.log(np.maximum(scope.row_lengths, 1)) if self.times_entropy else 1
        rows = self.row_weights(scope, key_sets, most)
        function = _times_entropy if self.times_entropy else _by_rows
        return SieveReadout(
            function=function if rows.counts.any() else _nothing,
            arrays=(rows.weights,),
            **self.facts([rows]),
        )


def _by_rows(layer: Layer, weights: Array) -> Array:
    """Return sums of masses under ``weights`` (B, N, K)."""
    return (layer.masses * weights[:, None]).sum(dim=-1).sum(dim=-1, keepdim=True)


def _times_entropy(layer: Layer, weights: Array) -> Array:
    """Return sums of masses under ``weights`` (B, N, K), each row times its entropy."""
    rows = (layer.masses * weights[:, None]).sum(dim=-1)
    return (rows * layer.entropies).sum(dim=-1, keepdim=True)


def _nothing(layer: Layer, weights: Array) -> Array:
    """Return zeros, where there are no rows: entropies are slow to compute."""
    return layer.masses.new_zeros(*layer.masses.shape[:2], 1)


@dataclass(frozen=True)
class Evenness(RowWise):
    """Evenness of every row over its keys: the entropy within them / ln of their number.

    Rows with a single key are skipped, since attention to one key is always even.
    """

    def readout(self, alike: Sequence[Sets], scope: Scope, key_sets: KeySets) -> SieveReadout:
        """Find the weights of entropies within sets: 1 / (rows * ln of the set's size)."""
        batch = scope.batch
        weights = np.zeros((batch.size, batch.width, len(key_sets)))
        counts = np.zeros(batch.size, dtype=np.int64)
        for queries, keys in batch.of(self.find):
            sizes = scope.count(keys)
            scored = queries & (sizes > 1)
            place = list(key_sets).index(id(keys))
            weights[:, :, place] = divide(scored, np.log(np.maximum(sizes, 1)))
            counts += scored.sum(axis=1)
        limits = np.repeat(np.array([0, 0, 1], dtype=np.float32), batch.size)
        return SieveReadout(
            function=_evenness if counts.any() else _nothing,
            arrays=(divide(weights, counts[:, None, None]).astype(np.float32),),
            limits=limits.reshape(3, -1, 1),
            counts=counts[:, None],
        )


def _evenness(layer: Layer, weights: Array) -> Array:
    """Return sums of the entropies within each set under ``weights`` (B, N, K)."""
    return (layer.entropies_within * weights[:, None]).sum((-2, -1))[..., None]


@dataclass(frozen=True)
class WordSets(Sets):
    """Sieve of words that many words look for, with all of their pieces."""

    among: str = WORDS

    def key_sets(self, batch: PaddedBatch) -> Sequence[BoolArray]:
        """Return none: words have key sets of their own."""
        return ()

    def readout(self, alike: Sequence[Sets], scope: Scope, key_sets: KeySets) -> SieveReadout:
        """Find the weights of each row's attention mass on each set of words."""
        sets = [scope.batch.of(sieve.find) for sieve in alike]
        found = [
            sieve.row_weights(scope, {id(keys): keys for _, keys in shared})
            for sieve, shared in zip(alike, sets, strict=True)
        ]
        keys = np.stack([keys for shared in sets for _, keys in shared], axis=-1)
        weights = np.concatenate([rows.weights for rows in found], axis=-1)
        of_roles = np.eye(len(alike), dtype=np.float32).repeat(list(map(len, sets)), axis=0)
        return SieveReadout(
            function=_of_words,
            arrays=(keys.astype(np.float32), weights, of_roles),
            **self.facts(found),
        )


def _of_words(layer: Layer, keys: Array, weights: Array, of_roles: Array) -> Array:
    """Return sums of masses on ``keys`` (B, N, k) under ``weights`` (B, N, k).

    ``of_roles`` (k, r) is 1 where a set belongs to a role.
    """
    return (layer.masses_of(keys) * weights[:, None]).sum(-2) @ of_roles


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
