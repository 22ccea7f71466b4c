"""Sieves of pairs of a query and a key, each with a weight: fixed offsets, links between words.

A link joins two words of an example, such as a dependent and its governor. Its value is the mean of
the values of its rows, one for each piece of the word that looks, with the pieces of the other word
as the sieve. A role scores an example by the mean over its links. First choices of words are stored
at first pieces, so that each link is one pair of pieces.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from headroles.arrays import BoolArray, Float32Array, FloatArray, IntArray
from headroles.corpus import Sentence
from headroles.encoding import EncodedExample
from headroles.roles.batch import (
    ATTENDING,
    TOKENS_OF_WORDS,
    WORDS,
    PaddedBatch,
    Scope,
    placed_sentences,
)
from headroles.roles.rules import NO_RULES, ClassRules, find_class_hits, find_offset_shares
from headroles.roles.score import divide
from headroles.roles.sieve import Array, KeySets, Layer, Sieve, SieveReadout
from headroles.roles.weights import PairsOfExamples, Weights, expand, spread

PIECELESS_ARCS = "arcs of words without pieces"
FORTH, BACK = DIRECTIONS = (0, 1)
"""Direction in which a link is followed: from its first word to its second, or back."""
EARLIER = 2
"""Direction of links that lead from the later of their words to the earlier one."""
_WIDEST = 4096
"""Farthest offset that is looked at in shorter batches: wider windows would not fit memory."""

Link: TypeAlias = tuple[int, int, int]
"""Indices of the first word and of the second, and the number of the label."""


@dataclass(frozen=True)
class Offsets(Sieve):
    """Sieve of the tokens at the offsets from ``first`` to ``last`` from the query.

    ``published_edge`` takes the size of a window as in the released notebooks, which is one too
    large for the last tokens.
    """

    first: int
    last: int
    published_edge: bool = False

    def readout(self, alike: Sequence[Offsets], scope: Scope, key_sets: KeySets) -> SieveReadout:
        """Find the weights of the pairs of all tokens with the tokens at their offsets."""
        batch = scope.batch
        query = np.arange(batch.width)[:, None]
        longest = max(batch.width, _WIDEST)
        offsets = np.arange(max(self.first, -longest), min(self.last, longest) + 1)
        key = scope.home[..., None] + offsets
        example = np.arange(batch.size)[:, None, None]
        inside = scope.sees(example, query, key) & batch.real[:, :, None]
        key = key.clip(0, batch.width - 1)
        if scope.score.of_first_choice:
            inside &= batch.in_words[:, :, None]
            inside &= batch.in_words[example, key]
        sizes = inside.sum(axis=-1)
        if self.published_edge:
            window = self.last
            after = np.minimum(np.maximum(batch.lengths[:, None] - query[:, 0], 0), window)
            sizes = np.minimum(query[:, 0], window) + 1 + after
        rows = scope.row_values(sizes)
        queries = batch.real & rows.scored
        counts = queries.sum(axis=1)
        weights = divide(inside * (rows.slopes * queries)[..., None], counts[:, None, None])
        weights = weights.reshape(batch.size, -1, 1)
        pairs = (query * batch.width + key).reshape(batch.size, -1)
        limits = divide((rows.limits * queries).sum(axis=-1), counts)[..., None]
        return SieveReadout(
            function=by_sum,
            arrays=(pairs, weights.astype(np.float32)),
            limits=limits.astype(np.float32),
            counts=counts[:, None],
            among=TOKENS_OF_WORDS,
        )

    def cells(self, scope: Scope) -> BoolArray:
        """Mark the tokens at the offsets."""
        offsets: IntArray = np.arange(scope.batch.width) - scope.home[0][:, None]
        return (offsets >= self.first) & (offsets <= self.last)


def by_sum(layer: Layer, pairs: Array, weights: Array) -> Array:
    """Return sums over ``pairs`` (B, P) under ``weights`` (B, P, 1).

    A matrix product would lose digits.
    """
    return layer.at(pairs).mul_(weights.mT).sum(-1, keepdim=True)


class LinkTable(NamedTuple):
    """The L links of a batch between words with pieces, ordered by example.

    ``owners`` (L,) are the indices of their examples in the batch. ``first`` and ``second`` (L, 2)
    hold the first piece and the number of pieces of each end. ``labels`` (L,) are numbers of
    labels. ``n_lost`` links had a word without pieces.
    """

    owners: IntArray
    first: IntArray
    second: IntArray
    labels: IntArray
    n_lost: int


class FindLinks(ABC):
    """Finder of links."""

    is_control: ClassVar[bool] = False
    """Whether its links control others, whose pieces and controls are counted already."""

    @property
    def is_across(self) -> bool:
        """Whether links join words of the two sentences of an example."""
        return False

    @property
    def labels_by_class(self) -> frozenset[int]:
        """Labels of links that are divided by the class of their first word, open or closed."""
        return frozenset()

    @abstractmethod
    def of_sentence(self, sentence: Sentence) -> Sequence[Link]:
        """Return the links of a sentence."""

    def of_pair(self, first: Sentence, second: Sentence) -> Sequence[Link]:
        """Return the links from words of one sentence to words of the next, by indices in each."""
        return ()

    def joined_in(self, sentence: Sentence) -> Set[frozenset[int]]:
        """Return the pairs of related words of a sentence, which are no controls."""
        return {frozenset(link[:2]) for link in self.of_sentence(sentence)}

    def joined_across(self, first: Sentence, second: Sentence) -> set[tuple[int, int]]:
        """Return such pairs with one word in each sentence."""
        return {link[:2] for link in self.of_pair(first, second)}

    def joined_words(self, batch: PaddedBatch) -> BoolArray:
        """Mark (B, W + 1, W + 1) related words, in either direction; the last is no word."""
        width = 1 + max(len(example.starts) for example in batch.examples)
        joined = np.zeros((batch.size, width, width), dtype=bool)
        related: list[tuple[int, int, int]] = []
        for owner, example in enumerate(batch.examples):
            for before, sentence in placed_sentences(example):
                for first, second in self.joined_in(sentence):
                    related.append((owner, before + first, before + second))
            if len(example.sentences) > 1:
                before = len(example.sentences[0].words)
                for first, second in self.joined_across(*example.sentences):
                    related.append((owner, first, before + second))
        joined[tuple(np.array(related, dtype=np.int64).reshape(-1, 3).T)] = True
        return joined | joined.mT

    def joined(self, batch: PaddedBatch) -> BoolArray:
        """Mark (B, N, N) the pieces of related words, in either direction."""
        words = np.where(batch.in_words, batch.words, -1)
        example = np.arange(batch.size)[:, None, None]
        return batch.of(self.joined_words)[example, words[:, :, None], words[:, None]]

    def of_example(self, example: EncodedExample) -> IntArray:
        """Return the links of an example (links, 3)."""
        links = [
            (before + first, before + second, label)
            for before, sentence in placed_sentences(example)
            for first, second, label in self.of_sentence(sentence)
        ]
        if len(example.sentences) > 1:
            before, across = len(example.sentences[0].words), self.of_pair(*example.sentences)
            links += [(first, before + second, label) for first, second, label in across]
        return np.array(links, dtype=np.int64).reshape(-1, 3)

    def __call__(self, batch: PaddedBatch) -> LinkTable:
        """Find the links of all examples of a batch."""
        tables = [self.of_example(example) for example in batch.examples]
        table = np.concatenate(tables)
        owners = np.repeat(np.arange(batch.size), [len(of_example) for of_example in tables])
        n_words = [len(example.starts) for example in batch.examples]
        words = table[:, :2] + (np.cumsum(n_words) - n_words)[owners, None]
        starts = np.concatenate([example.starts for example in batch.examples])
        sizes = np.concatenate([example.sizes for example in batch.examples])
        pieces = np.stack([starts[words], sizes[words]], axis=-1)
        labels = table[:, 2]
        whole = (pieces[..., 1] > 0).all(axis=1)
        first, second = pieces[whole, 0], pieces[whole, 1]
        n_lost = 0 if self.is_control else int((~whole).sum())
        return LinkTable(owners[whole], first, second, labels[whole], n_lost)


@dataclass(frozen=True)
class Pairs(Sieve):
    """Sieve of the words that links with some ``labels`` join to the query word.

    First choices are looked for ``among`` words, or among the words that attend to the query word,
    and compared with the ``rules``.
    """

    find: FindLinks
    labels: frozenset[int]
    direction: int = FORTH
    among: str = WORDS
    rules: ClassRules = NO_RULES

    @property
    def kind(self) -> Hashable:
        """Kind of the sieve; sieves over the same links are read together."""
        return type(self), self.find, self.among

    def readout(self, alike: Sequence[Pairs], scope: Scope, key_sets: KeySets) -> SieveReadout:
        """Find the weights of all pairs of pieces of all links."""
        pieces = scope.of(find_pieces, self.find)
        weights, limits, counts = find_weights(alike, scope, pieces, pieces.is_scored)
        readout = SieveReadout(
            function=in_product,
            arrays=pieces.at.padded(scope.batch, weights),
            limits=limits,
            counts=counts,
            skipped=+Counter({PIECELESS_ARCS: scope.batch.of(self.find).n_lost}),
            among=self.among,
        )
        if not scope.score.of_first_choice:
            return readout
        words, (owners, queries, keys) = scope.batch.words, pieces.at
        ends = owners, words[owners, queries], words[owners, keys]
        return replace(
            readout,
            offset_shares=find_offset_shares(scope, ends, weights, counts),
            class_hits=find_class_hits(scope, ends, weights, [sieve.rules for sieve in alike]),
        )

    def _ends(self, batch: PaddedBatch) -> tuple[IntArray, IntArray]:
        """Return first piece and number of pieces (L, 2) of words that attend, then of the others.

        Read by columns, these are the words looked for.
        """
        table = batch.of(self.find)
        chosen = np.isin(table.labels, list(self.labels))
        first, second = table.first[chosen], table.second[chosen]
        is_forth: Any = (self.direction == FORTH) != (self.among == ATTENDING)
        if self.direction == EARLIER:
            is_forth = first[:, :1] > second[:, :1]
        return np.where(is_forth, first, second), np.where(is_forth, second, first)

    def cells(self, scope: Scope) -> BoolArray:
        """Mark the pairs of pieces of all links; a contrast has the cells of its role."""
        cells = super().cells(scope)
        for query, key in zip(*self._ends(scope.batch), strict=True):
            cells[slice(query[0], query.sum()), slice(key[0], key.sum())] = True
        return cells

    def words(self, batch: PaddedBatch) -> tuple[set[int], list[tuple[int, int]]]:
        """Return the words that others look for, and the pairs of words."""
        queries, keys = (batch.words[0][ends[:, 0]].tolist() for ends in self._ends(batch))
        return set(keys), list(zip(queries, keys, strict=True))


def in_product(layer: Layer, pairs: Array, weights: Array) -> Array:
    """Return sums over ``pairs`` (B, P) under ``weights`` (B, P, r)."""
    return layer.at(pairs).bmm(weights)


class Pieces(NamedTuple):
    """All pairs of pieces of all links that are within reach.

    A batch of L links has 2 L of these: forth, and after them back. The pairs ``at`` (P,) belong
    to ``links`` and have ``weights`` in the values of these.

    For each link (2 L,): the ``limits`` (3, 2 L) of its value, which are its constant, its least
    and its greatest value, and ``is_scored``, whether any of its pairs is within reach.
    """

    at: PairsOfExamples
    links: IntArray
    weights: FloatArray
    limits: FloatArray
    is_scored: BoolArray


def find_pieces(scope: Scope, find: FindLinks) -> Pieces:
    """Find all pairs of pieces of links that are within reach."""
    batch = scope.batch
    table, width = batch.of(find), batch.width
    ends = np.concatenate([table.first, table.second]), np.concatenate([table.second, table.first])
    owners = np.tile(table.owners, len(DIRECTIONS))
    link, query, key = pairs_in_reach(scope, owners, *ends)
    # each query piece of a link is one of its rows: count the keys of rows and the rows of links
    ids, row, n_keys = np.unique(link * width + query, return_inverse=True, return_counts=True)
    row_link, row_query = ids // width, ids % width
    values = scope.score.row_values(scope.row_lengths[owners[row_link], row_query], n_keys)
    n_rows = np.bincount(row_link, minlength=len(owners))
    limits = [
        divide(np.bincount(row_link, weights=of_rows, minlength=len(owners)), n_rows)
        for of_rows in values.limits
    ]
    return Pieces(
        at=PairsOfExamples(owners[link], query, key),
        links=link,
        weights=values.slopes[row] / n_rows[link],
        limits=np.array(limits),
        is_scored=n_rows > 0,
    )


def pairs_in_reach(
    scope: Scope, owners: IntArray, queries: IntArray, keys: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the link, the query and the key of each pair of pieces within reach.

    ``owners`` (L,) are the examples of links. The ends of links, ``queries`` and ``keys`` (L, 2),
    are first pieces and numbers of pieces.
    """
    (query_start, query_size), (key_start, key_size) = queries.T, keys.T
    if scope.score.of_first_choice:
        # choices are between words: the first pieces stand for them, and a word is in reach if
        # any of its pieces is
        link = np.flatnonzero(scope.sees_words(owners, queries, keys))
        return link, query_start[link], key_start[link]
    link, within = expand(query_size * key_size)
    query = query_start[link] + within // key_size[link]
    key = key_start[link] + within % key_size[link]
    seen = scope.sees(owners[link], query, key)
    return link[seen], query[seen], key[seen]


def find_weights(
    sieves: Sequence[Pairs], scope: Scope, pieces: Pieces, is_scored: BoolArray
) -> tuple[Weights, Float32Array, IntArray]:
    """Return the weights under which pairs add up to the scores of r roles.

    These are, for links in ``is_scored`` (2 L,): the weights of pairs, constants, least and
    greatest scores (3, B, r), and numbers of links (B, r).
    """
    batch, table = scope.batch, scope.batch.of(sieves[0].find)
    # whether links in a direction, to an earlier word or not, with a label count for each role
    n_labels = 1 + max(table.labels.max(initial=0), *(max(sieve.labels) for sieve in sieves))
    chosen = np.zeros((len(DIRECTIONS), 2, n_labels, len(sieves)), dtype=bool)
    for column, sieve in enumerate(sieves):
        labels = sorted(sieve.labels)
        if sieve.direction == EARLIER:
            chosen[:, 1, labels, column] = True
        else:
            chosen[sieve.direction, :, labels, column] = True
    is_back = table.second[:, 0] > table.first[:, 0]
    is_to_earlier = np.stack([~is_back, is_back])
    kinds = (np.array(DIRECTIONS)[:, None] * 2 + is_to_earlier) * n_labels + table.labels
    of_kinds = chosen.reshape(-1, len(sieves))
    # sums by kind of link first, since there are fewer kinds than links
    owners, n_kinds = np.tile(table.owners, len(DIRECTIONS)), len(of_kinds)
    cells = owners * n_kinds + kinds.ravel()
    sums = [
        np.bincount(cells, of_links * is_scored, batch.size * n_kinds)
        for of_links in (is_scored, *pieces.limits)
    ]
    counts, *limits = np.array(sums).reshape(len(sums), batch.size, n_kinds) @ of_kinds
    # links that are not scored are of a kind that counts for no role
    of_kinds = np.concatenate([of_kinds, np.zeros((1, len(sieves)), dtype=bool)])
    groups = np.where(is_scored, kinds.ravel(), n_kinds)[pieces.links]
    weights = spread(of_kinds, groups, pieces.weights)
    values = weights.values / counts[pieces.at.owners[weights.pairs], weights.roles]
    return (
        weights._replace(values=values),
        divide(np.array(limits), counts).astype("f4"),
        counts.astype(np.int64),
    )
