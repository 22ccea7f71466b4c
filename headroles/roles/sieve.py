"""Sieves: for each query of a role, the keys that a head with it would look at.

For one example of n tokens and one head, ``A[i, j]`` is the attention from query i to key j. A role
names query tokens Q and, for each, a sieve of keys S_i, and scores the head by the mean over i in Q
of a value of row i. The ``bias`` score reads n / |S_i| times the mass of attention in S_i; all
scores are linear in that mass:

    mean over i in Q of (slope_i * sum of A[i, j] over j in S_i + offset_i) = sum_ij W_ij A_ij + c

W and c are fixed before the model runs, so scoring is a contraction of attention with them. There
are two kinds of sieves, each of which keeps W small in its own way, and both are exact: key sets
that many queries share (`Sets`), and pairs of a query and a key with a weight
(`headroles.roles.pairs`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headroles.arrays import BoolArray, Float32Array, IntArray
from headroles.corpus import Sentence
from headroles.roles.batch import (
    EVERY,
    WORDS,
    PaddedBatch,
    Scope,
    placed_sentences,
)
from headroles.roles.score import RowValues, divide

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

    def cells(self, scope: Scope) -> BoolArray:
        """Mark (N, N) the cells in which query i looks for key j, for a batch of one example.

        Some may be beyond the reach of attention. A contrast has the cells of its role, without its
        controls; a quantity that only describes heads has no cells.
        """
        return np.zeros((scope.batch.width,) * 2, dtype=bool)

    def words(self, batch: PaddedBatch) -> tuple[set[int], list[tuple[int, int]]]:
        """Return the words in the sieves, and the pairs of words that look for each other.

        The batch holds one example. Words are numbered through the example. Both results are empty
        if the sieve consists of positions or special tokens.
        """
        return set(), []


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
    offset, NaN without a score, and ``class_hits`` (B, r, rules) the numbers of arcs that the
    nearest word of a class is right for; None for roles that are not compared with rules.
    """

    function: Callable[..., Array]
    arrays: tuple[Array, ...]
    limits: Float32Array
    counts: IntArray
    among: str | None = None
    offset_shares: Float32Array | None = None
    class_hits: NDArray[np.uint16] | None = None
    skipped: Counter[str] = field(default_factory=Counter)
    controls: Counter[str] = field(default_factory=Counter)


# Keys that many queries share: separators, words of a segment, words of some kind. Where queries
# are words, a word scores the mean over its pieces, an example the mean over its words.


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
        rows = [sieve.row_weights(scope, key_sets) for sieve in alike]
        weights, limits, counts = (np.stack(parts, axis=-1) for parts in zip(*rows, strict=True))
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
                sizes = scope.count(keys, np.maximum(n_pieces, 1))
                if not scope.reach.is_across:
                    sizes -= keys * n_pieces
            rows = self.row_values(scope, sizes)
            shares: Any = queries & rows.scored
            if scope.score.of_first_choice and self.among != EVERY:
                # the choice of a word is stored at its first piece
                shares &= batch.first_pieces if of_words else batch.in_words
            if of_words:  # attention from a word is the mean over its pieces
                shares &= batch.in_words
                shares = divide(shares.astype(np.float64), batch.count_in_words(shares))
            weights[:, :, list(key_sets).index(id(keys))] += rows.slopes * shares
            sums += (rows.limits * shares).sum(axis=-1)
            counts += np.round(shares.sum(axis=1)).astype(np.int64)
        # the mean over rows is taken here, once, so that a layer needs a product only
        means = divide(weights, counts[:, None, None]).astype(np.float32)
        return means, divide(sums, counts).astype(np.float32), counts

    def cells(self, scope: Scope) -> BoolArray:
        """Mark the keys of each query."""
        cells = super().cells(scope)
        for queries, keys in scope.batch.of(self.find):
            cells |= queries[0][:, None] & keys[0]
        return cells

    def words(self, batch: PaddedBatch) -> tuple[set[int], list[tuple[int, int]]]:
        """Return the words among the keys."""
        numbers = batch.words[0][np.any(self.key_sets(batch), axis=0)[0]]
        return set(numbers[numbers >= 0].tolist()), []


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
    """Make each sentence's words look for the words whose indices ``find`` returns."""
    queries, keys = np.zeros((2, 2, batch.size, batch.width), dtype=bool)
    for row, example in enumerate(batch.examples):
        for segment, (before, sentence) in enumerate(placed_sentences(example)):
            words = [before + word for word in find(sentence)]
            keys[segment, row] = np.isin(batch.words[row], words)
            queries[segment, row] = batch.segments[row] == segment
    return [Shared(queries[segment], keys[segment]) for segment in (0, 1)]
