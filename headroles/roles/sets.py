"""Sieves of keys that many queries share: separators, words of a segment, words of some kind.

Where queries are words, a word scores the mean over its pieces, an example the mean over its words.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from headroles.arrays import BoolArray, Float32Array, IntArray
from headroles.corpus import Sentence
from headroles.roles.batch import PaddedBatch, Scope, placed_sentences
from headroles.roles.first_choices import EVERY, WORDS, queries_among
from headroles.roles.role import RowValues, divide
from headroles.roles.sieve import Array, KeySets, Layer, Sieve, SieveReadout


class Shared(NamedTuple):
    """Queries (B, N) that look for the same keys (B, N)."""

    queries: BoolArray
    keys: BoolArray


FindShared: TypeAlias = Callable[[PaddedBatch], Sequence[Shared]]


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
        weights, limits, counts = (np.stack(one, axis=-1) for one in zip(*found, strict=True))
        return SieveReadout(
            function=self.read if counts.any() else _nothing,  # entropies are slow to compute
            arrays=(weights.reshape(len(weights), -1, len(alike)),),
            limits=limits,
            counts=counts,
            among=self.among,
        )

    @staticmethod
    def read(layer: Layer, weights: Array) -> Array:
        """Return sums of masses under ``weights`` (B, N * K, r)."""
        return layer.masses.flatten(2).bmm(weights)

    def row_values(self, scope: Scope, sizes: IntArray) -> RowValues:
        """Return the coefficients of all rows, from the ``sizes`` (B, N) of their sieves."""
        return scope.row_values(sizes)

    def row_weights(
        self, scope: Scope, key_sets: KeySets
    ) -> tuple[Float32Array, Float32Array, IntArray]:
        """Return weights under which the masses of all rows add up to scores, limits and counts.

        These are (B, N, K) for each row and key set; (3, B), the constant, the least and the
        greatest score; and (B,).
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
            rows = self.row_values(scope, sizes)
            shares: Any = queries & rows.scored
            if scope.score.of_first_choice:  # the choice of a word is stored at its first piece
                shares &= queries_among(batch, self.among)
            if of_words:  # attention from a word is the mean over its pieces
                shares &= batch.in_words
                shares = divide(shares.astype(np.float64), batch.count_in_words(shares))
            weights[:, :, list(key_sets).index(id(keys))] += rows.slopes * shares
            sums += (rows.limits * shares).sum(axis=-1)
            counts += np.round(shares.sum(axis=1)).astype(np.int64)
        # the mean over rows is taken here, once, so that a layer needs a product only
        means = divide(weights, counts[:, None, None]).astype(np.float32)
        return means, divide(sums, counts).astype(np.float32), counts

    def cells(self, batch: PaddedBatch) -> BoolArray:
        """Mark the keys of each query."""
        cells = super().cells(batch)
        for queries, keys in batch.of(self.find):
            cells |= queries[0][:, None] & keys[0]
        return cells

    def words(self, batch: PaddedBatch) -> tuple[set[int], list[tuple[int, int]]]:
        """Return the words among the keys."""
        found = batch.words[0][np.any(self.key_sets(batch), axis=0)[0]]
        return set(found[found >= 0].tolist()), []


def _nothing(layer: Layer, weights: Array) -> Array:
    """Return zeros for roles that no example has a score for."""
    return layer.masses.new_zeros(*layer.masses.shape[:2], weights.shape[-1])


@dataclass(frozen=True)
class RowWise(Sets):
    """Sieve of keys that many queries share, whose masses are summed row by row."""

    @property
    def kind(self) -> Hashable:
        """Kind of the sieve; each is read alone."""
        return self

    @staticmethod
    def read(layer: Layer, weights: Array) -> Array:
        """Return sums of masses under ``weights`` (B, N * K, 1)."""
        return _rows(layer.masses, weights).sum(dim=-1).sum(dim=-1, keepdim=True)


def _rows(of_sets: Array, weights: Array) -> Array:
    """Return values of rows and sets (B, heads, N, K) times ``weights`` (B, N * K, 1)."""
    return of_sets * weights.view(len(weights), 1, *of_sets.shape[2:])


@dataclass(frozen=True)
class TimesEntropy(RowWise):
    """Sieve of which the mass of each row is multiplied by the row's entropy in nats."""

    @staticmethod
    def read(layer: Layer, weights: Array) -> Array:
        """Return sums of masses under ``weights`` (B, N * K, 1), each row times its entropy."""
        rows = _rows(layer.masses, weights).sum(dim=-1)
        return (rows * layer.entropies).sum(dim=-1, keepdim=True)

    def row_values(self, scope: Scope, sizes: IntArray) -> RowValues:
        """Return coefficients; a row of n keys has at most the entropy of uniform attention."""
        return replace(scope.row_values(sizes), most=np.log(np.maximum(scope.row_lengths, 1)))


@dataclass(frozen=True)
class Evenness(RowWise):
    """Evenness of every row over its keys: the entropy within them / ln of their number.

    Rows with a single key are skipped, since attention to one key is always even.
    """

    @staticmethod
    def read(layer: Layer, weights: Array) -> Array:
        """Return sums of the entropies within each set under ``weights`` (B, N * K, 1)."""
        return _rows(layer.entropies_within, weights).sum((-2, -1))[..., None]

    def row_values(self, scope: Scope, sizes: IntArray) -> RowValues:
        """Return coefficients of the entropies within sets, instead of masses."""
        most = np.log(np.maximum(sizes, 1))
        return RowValues(divide(sizes > 1, most), np.zeros(sizes.shape), sizes > 1, most)


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
