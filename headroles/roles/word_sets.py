"""Sieves of words that many words look for: punctuation, the rarest word of a sentence.

Queries are words: a word scores the mean over its pieces, an example the mean over its words.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from headroles.arrays import BoolArray, Float32Array, FloatArray, IntArray
from headroles.corpus import Sentence
from headroles.roles.arithmetic import divide
from headroles.roles.batch import PaddedBatch, Scope, placed_sentences
from headroles.roles.first_choices import WORDS, among_in
from headroles.roles.key_sets import FindShared, Shared
from headroles.roles.sieve import Array, KeySetList, Layer, Sieve, SieveReadout


@dataclass(frozen=True)
class WordSets(Sieve):
    """Sieve of words that many words look for, with all of their pieces."""

    find: FindShared

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
            shares = _shares_of_words(scope, scored)
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


def _sizes(scope: Scope, keys: BoolArray) -> IntArray:
    """Count the keys of each query (B, N); for first choices of words those of others.

    A word sees another if any piece of the one sees any piece of the other, as in `links`.
    """
    if not scope.score.of_first_choice:
        return scope.count(keys)
    own = scope.batch.n_pieces
    return scope.count(keys, np.maximum(own, 1)) - keys * own


def _shares_of_words(scope: Scope, scored: BoolArray) -> FloatArray:
    """Return 1 / (number of the word's scored pieces) for scored pieces (B, N), 0 elsewhere."""
    return divide(scored.astype(np.float64), scope.batch.count_in_words(scored))
