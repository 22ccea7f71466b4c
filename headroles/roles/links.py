"""Sieves between words: from the pieces of one end of a link to those of the other.

A link joins two words of an example, such as a dependent and its governor. Its value is the mean of
the values of its rows, one for each piece of the word that looks, with the pieces of the other word
as the sieve. A role scores an example by the mean over its links. First choices of words are stored
at first pieces, so that each link is one pair of pieces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from headroles.arrays import BoolArray, Float32Array, FloatArray, IntArray
from headroles.encoding import EncodedExample
from headroles.roles.arithmetic import divide, expand, slots
from headroles.roles.batch import PaddedBatch, Scope
from headroles.roles.first_choices import WORDS, among_in, find_offset_shares
from headroles.roles.sieve import Array, KeySetList, Layer, Sieve, SieveReadout

PIECELESS_ARCS = "arcs of words without pieces"
FORTH, BACK = DIRECTIONS = (0, 1)
"""Direction in which a link is followed: from its first word to its second, or back."""


@dataclass(frozen=True)
class LinkTable:
    """The L links of a batch between words with pieces, ordered by example.

    ``owners`` (L,) are the places of their examples in the batch. ``first`` and ``second`` (L, 2)
    hold the first piece and the number of pieces of each end. ``labels`` (L,) are numbers of
    labels, of which there are ``n_labels``. ``n_lost`` links had a word without pieces. ``in_tree``
    says that all links are arcs of the tree, so that words which no arc joins are not linked.
    ``beside`` are further links of the same words, if words that they join are no controls.
    """

    owners: IntArray
    first: IntArray
    second: IntArray
    labels: IntArray
    n_labels: int
    n_lost: int
    in_tree: bool = False
    beside: LinkTable | None = None

    def __len__(self) -> int:
        return len(self.owners)

    @classmethod
    def from_examples(
        cls, batch: PaddedBatch, find: Callable[[EncodedExample], IntArray], n_labels: int = 1
    ) -> LinkTable:
        """Make a table of the links that ``find`` returns of each example.

        These are (links, 3): the places of the first word and of the second, and the label.
        """
        tables = [find(example) for example in batch.examples]
        pieces = np.concatenate(
            [
                np.stack([example.starts[table[:, :2]], example.sizes[table[:, :2]]], axis=-1)
                for example, table in zip(batch.examples, tables, strict=True)
            ]
        )
        owners = np.repeat(np.arange(batch.size), [len(table) for table in tables])
        labels = np.concatenate([table[:, 2] for table in tables])
        whole = (pieces[..., 1] > 0).all(axis=1)
        first, second = pieces[whole, 0], pieces[whole, 1]
        n_lost = int((~whole).sum())
        return cls(owners[whole], first, second, labels[whole], n_labels, n_lost)


FindLinks: TypeAlias = Callable[[PaddedBatch], LinkTable]


@dataclass(frozen=True)
class Links(Sieve):
    """Sieve of the words that links with some ``labels`` join to the query word.

    First choices are looked for ``among`` words, or among the words that attend to the query word.
    """

    find: FindLinks
    labels: frozenset[int]
    direction: int = FORTH
    among: str = WORDS

    @property
    def kind(self) -> Hashable:
        """Kind of the sieve; sieves over the same links are read together."""
        return type(self), self.find, self.among

    def readout(self, alike: Sequence[Links], scope: Scope, key_sets: KeySetList) -> SieveReadout:
        """Find the weights of all pairs of pieces of all links."""
        table = scope.batch.of(self.find)
        pieces = scope.of(find_pieces, self.find)
        weights = find_link_weights(alike, table, pieces, pieces.is_scored, scope.batch.size)
        return LinkReadout(
            pairs=pieces.pairs(scope.batch),
            weights=weights.padded(pieces),
            constants=weights.constants,
            counts=weights.counts,
            lows=weights.lows,
            highs=weights.highs,
            skipped=+Counter({PIECELESS_ARCS: table.n_lost}),
            among=among_in(scope, self.among),
            offset_shares=weights.offset_shares(pieces, scope),
        )


@dataclass(frozen=True, kw_only=True)
class LinkReadout(SieveReadout):
    """Readout with ``pairs`` (B, P) as query * N + key and ``weights`` (B, P, r), padded with 0."""

    pairs: IntArray
    weights: Float32Array

    def read(self, layer: Layer) -> Array:
        """Return weighted sums over pairs."""
        return layer.at(self.pairs).bmm(self.weights)


@dataclass(frozen=True)
class Pieces:
    """All pairs of pieces of all links, in both directions, ordered by example.

    For each of the P pairs (P,): ``owners``, the place of its example; ``links`` and
    ``directions``; ``queries`` and ``keys``; its ``weights`` in the value of the link; and its
    ``places`` among the pairs of its example. No example has more than ``most`` pairs.

    For each link and direction (2, L): the ``constants`` of its value, its limits ``lows`` and
    ``highs``, and ``is_scored``, whether any of its pairs is within reach.
    """

    owners: IntArray
    links: IntArray
    directions: IntArray
    queries: IntArray
    keys: IntArray
    weights: FloatArray
    places: IntArray
    most: int
    constants: FloatArray
    lows: FloatArray
    highs: FloatArray
    is_scored: BoolArray

    def pairs(self, batch: PaddedBatch) -> IntArray:
        """Return the pairs as query * N + key (B, most), padded with 0."""
        pairs = np.zeros((batch.size, self.most), dtype=np.int64)
        pairs[self.owners, self.places] = self.queries * batch.width + self.keys
        return pairs


def find_pieces(scope: Scope, find: FindLinks) -> Pieces:
    """Find all pairs of pieces of links that are within reach."""
    table = scope.batch.of(find)
    # every link twice, forth and then back
    queries = np.concatenate([table.first, table.second])
    keys = np.concatenate([table.second, table.first])
    owners = np.tile(table.owners, len(DIRECTIONS))
    link, query, key = _pairs_in_reach(scope, queries, keys)
    # each query piece of a link is one of its rows: count the keys of rows and the rows of links
    width = scope.batch.width
    ids, row, n_keys = np.unique(link * width + query, return_inverse=True, return_counts=True)
    row_link, row_query = ids // width, ids % width
    values = scope.score.row_values(scope.row_lengths[owners[row_link], row_query], n_keys)
    n_rows = np.bincount(row_link, minlength=len(owners))
    constants, lows, highs = (
        divide(np.bincount(row_link, weights=of_rows, minlength=len(owners)), n_rows)
        for of_rows in (values.offsets, values.lows, values.highs)
    )
    # by example, so that its pairs fill one row of a padded array
    order = np.argsort(owners[link], kind="stable")
    places, most = slots(owners[link[order]], scope.batch.size)
    by_direction = (len(DIRECTIONS), len(table))
    directions, links = np.unravel_index(link[order], by_direction)
    return Pieces(
        owners=owners[link[order]],
        links=links,
        directions=directions,
        queries=query[order],
        keys=key[order],
        weights=(values.slopes[row] / n_rows[link])[order],
        places=places,
        most=most,
        constants=constants.reshape(by_direction),
        lows=lows.reshape(by_direction),
        highs=highs.reshape(by_direction),
        is_scored=(n_rows > 0).reshape(by_direction),
    )


def _pairs_in_reach(
    scope: Scope, queries: IntArray, keys: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the link, the query and the key of each pair of pieces within reach.

    The ends of links, ``queries`` and ``keys`` (L, 2), are first pieces and numbers of pieces.
    """
    (query_start, query_size), (key_start, key_size) = queries.T, keys.T
    if scope.score.of_first_choice:
        # choices are between words: the first pieces stand for them, and a word is in reach if
        # any of its pieces is
        gaps = np.maximum(key_start - query_start - query_size, query_start - key_start - key_size)
        link = np.flatnonzero(gaps < (scope.reach or scope.batch.width))
        return link, query_start[link], key_start[link]
    link, within = expand(query_size * key_size)
    query = query_start[link] + within // key_size[link]
    key = key_start[link] + within % key_size[link]
    if scope.reach is None:
        return link, query, key
    seen = np.abs(query - key) <= scope.reach
    return link[seen], query[seen], key[seen]


@dataclass(frozen=True)
class LinkWeights:
    """Weights of pairs in the scores of roles, one entry for each pair and role it counts for.

    ``pairs``, ``roles`` and ``weights`` are (entries,); ``constants``, ``lows``, ``highs`` and
    ``counts`` (B, r) belong to roles; ``counted`` (pairs, r) marks the entries.
    """

    pairs: IntArray
    roles: IntArray
    weights: FloatArray
    constants: Float32Array
    lows: Float32Array
    highs: Float32Array
    counts: IntArray
    counted: BoolArray

    def padded(self, pieces: Pieces) -> Float32Array:
        """Return the weights (B, P, r) of each example's pairs, in the order of `Pieces.pairs`."""
        n_examples, n_roles = self.counts.shape
        weights = np.zeros((n_examples, pieces.most, n_roles), dtype=np.float32)
        owners, places = pieces.owners[self.pairs], pieces.places[self.pairs]
        weights[owners, places, self.roles] = self.weights
        return weights

    def offset_shares(self, pieces: Pieces, scope: Scope) -> Float32Array | None:
        """Return the hits of fixed offsets; None unless first choices are scored."""
        if not scope.score.of_first_choice:
            return None
        return find_offset_shares(
            scope.batch, pieces.owners, pieces.queries, pieces.keys, self.counted
        )


def find_link_weights(
    sieves: Sequence[Links],
    table: LinkTable,
    pieces: Pieces,
    is_scored: BoolArray,
    n_examples: int,
) -> LinkWeights:
    """Return the weights under which pairs add up to scores, for links in ``is_scored`` (2, L)."""
    chosen = _chosen(sieves, table.n_labels)
    sums = np.zeros((3, n_examples, len(sieves)))
    counts = np.zeros((n_examples, len(sieves)), dtype=np.int64)
    for direction in DIRECTIONS:
        links = np.flatnonzero(is_scored[direction])
        link, role = np.nonzero(chosen[direction, table.labels[links]])
        scores = (table.owners[links[link]], role)
        # add.at, since several links of an example count for the same role
        np.add.at(counts, scores, 1)
        limits = (pieces.constants, pieces.lows, pieces.highs)
        for total, of_links in zip(sums, limits, strict=True):
            np.add.at(total, scores, of_links[direction, links[link]])
    counted = chosen[pieces.directions, table.labels[pieces.links]]
    counted &= is_scored[pieces.directions, pieces.links][:, None]
    pair, role = np.nonzero(counted)
    constants, lows, highs = divide(sums, counts).astype(np.float32)
    return LinkWeights(
        pairs=pair,
        roles=role,
        weights=pieces.weights[pair] / counts[pieces.owners[pair], role],
        constants=constants,
        lows=lows,
        highs=highs,
        counts=counts,
        counted=counted,
    )


def _chosen(sieves: Sequence[Links], n_labels: int) -> BoolArray:
    """Tell (2, labels, r) whether links of a label, in a direction, count for each role."""
    chosen = np.zeros((len(DIRECTIONS), n_labels, len(sieves)), dtype=bool)
    for role, sieve in enumerate(sieves):
        chosen[sieve.direction, sorted(sieve.labels), role] = True
    return chosen
