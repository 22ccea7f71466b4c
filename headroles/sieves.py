"""Roles as sieves: for every query token of a role, the keys that a head with it would look at.

For one example of n tokens and one head, ``A[i, j]`` is the attention from query i to key j. A
role names query tokens Q and, for each, a sieve of keys S_i, and scores the head by

    mean over i in Q of  n / |S_i| * sum of A[i, j] over j in S_i   =   sum_ij W[i, j] * A[i, j]

W is fixed before the model runs, so scoring is a contraction of attention with it. Two kinds of
sieves keep W small, and both are exact:

* sieves that many queries share (all separators, the words of a segment) are *key sets*: the
  attention mass of each row on each set, then weights over the rows;
* sieves of a few keys of their own (a window, the pieces of the governor) are lists of *pairs*
  (query, key) with weights.

This module knows arrays only: no model, no corpus.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headroles.tokens import SPECIAL, EncodedExample, IntArray

POSITIONAL_ROLES = ("local", "delimiter", "delimiter:cls", "delimiter:sep", "block", "block:ratio")
TO_GOVERNOR = "to_governor"
TO_DEPENDENT = "to_dependent"
ENTROPY_ROLE = "block"

FloatArray = NDArray[np.float32]
BoolArray = NDArray[np.bool_]

_PADDING = -2  # beside the segments 0, 1 and SPECIAL
# The key sets, in the order of the last axis of `Sieves.key_sets`.
_DELIMITERS, _CLASSIFIER, _SEPARATORS, _WORDS_0, _WORDS_1 = range(5)
_N_KEY_SETS = 5


def role_ids(relations: Sequence[str]) -> tuple[str, ...]:
    """Ids of all roles in the order of every table: positional, pooled syntax, each relation.

    >>> role_ids(["amod"])[-2:]
    ('syntactic:amod:to_governor', 'syntactic:amod:to_dependent')
    """
    if not relations:
        return POSITIONAL_ROLES
    by_relation = [
        f"syntactic:{relation}:{direction}"
        for relation in relations
        for direction in (TO_GOVERNOR, TO_DEPENDENT)
    ]
    return (*POSITIONAL_ROLES, "syntactic", f"syntactic:{TO_DEPENDENT}", *by_relation)


@dataclass(frozen=True)
class Sieves:
    """The sieves of all roles for a batch of B examples, padded to N tokens.

    ``key_sets`` (B, N, K) is 1 where a token belongs to a set; ``set_weights`` (B, N*K, 3) holds
    the weight of each row's mass on each set for the three delimiter roles, and ``block_weights``
    (B, N, K) for the two block roles. ``pairs`` (B, P) holds query * N + key, and
    ``pair_weights`` (B, P, R) the weight of each pair for ``local`` and the syntactic roles.
    Weights of padding are 0.

    ``counts`` (B, roles) is the number of query tokens (syntactic roles: of arcs) behind a
    score; where it is 0 the example has no score for the role.
    """

    key_sets: FloatArray
    set_weights: FloatArray
    block_weights: FloatArray
    pairs: IntArray
    pair_weights: FloatArray
    counts: IntArray

    @property
    def has_blocks(self) -> bool:
        """Whether any example has two segments."""
        return bool(self.block_weights.any())


def build_sieves(
    examples: Sequence[EncodedExample],
    n_relations: int,
    window: int = 2,
    published_edge: bool = False,
    reach: int | None = None,
) -> Sieves:
    """Sieves of every role of ``role_ids`` for ``examples``, ``n_relations`` being scored.

    ``window`` is how far the sieve of ``local`` reaches to either side. ``published_edge`` takes
    the size of that sieve from the released notebooks, one too large for the last ``window``
    tokens. ``reach`` is how far the attention of the layer can reach to either side: keys beyond
    it are no part of any row or sieve.
    """
    batch = _Batch.of(examples, reach)
    set_weights, set_counts = _delimiter_weights(batch)
    block_weights, block_counts = _block_weights(batch)
    local = _local_pairs(batch, window, published_edge)
    syntax = _syntactic_pairs(batch, examples, n_relations)
    return Sieves(
        key_sets=batch.key_sets.astype(np.float32),
        set_weights=set_weights.reshape(len(examples), -1, set_weights.shape[-1]),
        block_weights=block_weights,
        pairs=np.concatenate([local.pairs, syntax.pairs], axis=1),
        pair_weights=_block_diagonal(local.weights, syntax.weights),
        counts=np.column_stack(
            [local.counts, set_counts, block_counts, block_counts, syntax.counts]
        ),
    )


@dataclass(frozen=True)
class _Batch:
    """B examples padded to N tokens.

    ``real`` (B, N) tells tokens from padding; ``row_lengths`` (B, N) is the number of keys that
    each query can attend to, and ``set_sizes`` (B, N, K) how many of these are in each key set.
    """

    real: BoolArray
    key_sets: BoolArray
    row_lengths: IntArray
    set_sizes: IntArray
    reach: int | None

    @classmethod
    def of(cls, examples: Sequence[EncodedExample], reach: int | None) -> _Batch:
        width = max(len(example) for example in examples)
        segments = np.full((len(examples), width), _PADDING, dtype=np.int64)
        for row, example in zip(segments, examples, strict=True):
            row[: len(example)] = example.segments
        real = segments != _PADDING
        key_sets = _key_sets(segments)
        in_reach = _sums_in_reach(np.concatenate([real[..., None], key_sets], axis=-1), reach)
        return cls(real, key_sets, in_reach[..., 0], in_reach[..., 1:], reach)

    @property
    def width(self) -> int:
        return int(self.real.shape[1])


def _key_sets(segments: IntArray) -> BoolArray:
    """(B, N, K): the tokens of each key set."""
    special = segments == SPECIAL
    classifier = special.copy()
    classifier[:, 1:] = False
    return np.stack(
        [special, classifier, special & ~classifier, segments == 0, segments == 1], axis=-1
    )


def _sums_in_reach(members: BoolArray, reach: int | None) -> IntArray:
    """(B, N, K): for every query, how many members (B, N, K) lie within its reach."""
    totals = np.cumsum(members, axis=1)
    if reach is None:
        return np.broadcast_to(totals[:, -1:], totals.shape)
    width = members.shape[1]
    padded = np.concatenate([np.zeros_like(totals[:, :1]), totals], axis=1)
    query = np.arange(width)
    after = padded[:, np.minimum(query + reach + 1, width)]
    before = padded[:, np.maximum(query - reach, 0)]
    sums: IntArray = after - before
    return sums


def _row_weights(batch: _Batch, key_set: int, rows: BoolArray) -> tuple[FloatArray, IntArray]:
    """(B, N) row length / size of the sieve where ``rows`` has a key of the set; how many have."""
    sizes = batch.set_sizes[:, :, key_set]
    queries = rows & (sizes > 0)
    ratios = _divide(batch.row_lengths, sizes) * queries
    return ratios.astype(np.float32), queries.sum(axis=1)


def _delimiter_weights(batch: _Batch) -> tuple[FloatArray, IntArray]:
    """(B, N, K, 3) weights and (B, 3) counts: every token looks for the tokens of one set."""
    weights = np.zeros((*batch.key_sets.shape, 3), dtype=np.float32)
    counts = np.zeros((len(weights), 3), dtype=np.int64)
    for role, key_set in enumerate((_DELIMITERS, _CLASSIFIER, _SEPARATORS)):
        ratios, counts[:, role] = _row_weights(batch, key_set, batch.real)
        weights[:, :, key_set, role] = _divide(ratios, counts[:, role, None])
    return weights, counts


def _block_weights(batch: _Batch) -> tuple[FloatArray, IntArray]:
    """(B, N, K) weights and (B,) counts: every token looks for the words of its own segment.

    The first separator and all after it belong to the second segment, all before to the first.
    """
    in_second = np.cumsum(batch.key_sets[:, :, _SEPARATORS], axis=1) > 0
    second_words = batch.key_sets[:, :, _WORDS_1]
    # without a separator between them there are no two segments to stay in
    paired = second_words.any(axis=1, keepdims=True)
    paired &= ~(second_words & ~in_second).any(axis=1, keepdims=True)
    weights = np.zeros(batch.key_sets.shape, dtype=np.float32)
    first, n_first = _row_weights(batch, _WORDS_0, batch.real & paired & ~in_second)
    second, n_second = _row_weights(batch, _WORDS_1, batch.real & paired & in_second)
    counts = n_first + n_second
    weights[:, :, _WORDS_0] = _divide(first, counts[:, None])
    weights[:, :, _WORDS_1] = _divide(second, counts[:, None])
    return weights, counts


@dataclass(frozen=True)
class _Pairs:
    """(B, P) pairs as query * N + key, (B, P, R) weights, (B, R) counts."""

    pairs: IntArray
    weights: FloatArray
    counts: IntArray


def _local_pairs(batch: _Batch, window: int, published_edge: bool) -> _Pairs:
    width, lengths = batch.width, batch.real.sum(axis=1)
    window = min(window, width if batch.reach is None else batch.reach)
    query = np.arange(width)[:, None]
    key = query + np.arange(-window, window + 1)
    n = lengths[:, None, None]
    inside = (key >= 0) & (key < n) & (query < n)
    sizes = inside.sum(axis=-1, keepdims=True)
    if published_edge:
        sizes = np.minimum(query, window) + 1 + np.minimum(np.maximum(n - query, 0), window)
    weights = _divide(inside * batch.row_lengths[:, :, None], sizes * n)
    pairs = (query * width + key.clip(0, width - 1)).reshape(1, -1)
    return _Pairs(
        pairs=np.broadcast_to(pairs, (len(lengths), pairs.size)),
        weights=weights.reshape(len(lengths), -1, 1).astype(np.float32),
        counts=lengths[:, None],
    )


def _syntactic_pairs(batch: _Batch, examples: Sequence[EncodedExample], n_relations: int) -> _Pairs:
    """The pairs of every arc in both directions: pooled, then by relation.

    An arc from word x (pieces I) to word y (pieces J) scores the mean over I of row length / |J|
    times the attention to J; a role of an example scores the mean over its arcs.
    """
    n_examples = len(examples)
    arcs = np.concatenate([example.arcs for example in examples])
    owner = np.repeat(np.arange(n_examples), [len(example.arcs) for example in examples])
    dependents, governors, relation = arcs[:, 0:2], arcs[:, 2:4], arcs[:, 4]
    n_roles = 2 + 2 * n_relations if n_relations else 0
    halves = []
    for direction, ends in enumerate(((dependents, governors), (governors, dependents))):
        directed = _directed_pairs(batch, *ends, owner)
        by_relation = np.zeros((n_examples, n_relations), dtype=np.int64)
        np.add.at(by_relation, (owner, relation), directed.is_scored)
        pooled = by_relation.sum(axis=1)
        example, role = owner[directed.arc], relation[directed.arc]
        slots, width = _slots(example, n_examples)
        pairs = np.zeros((n_examples, width), dtype=np.int64)
        weights = np.zeros((n_examples, width, n_roles), dtype=np.float32)
        pairs[example, slots] = directed.pairs
        if n_relations:
            weights[example, slots, direction] = directed.weights / pooled[example]
            weights[example, slots, 2 + 2 * role + direction] = (
                directed.weights / by_relation[example, role]
            )
        halves.append(_Pairs(pairs, weights, np.column_stack([pooled, by_relation])))
    to_governor, to_dependent = halves
    counts = np.stack([to_governor.counts, to_dependent.counts], axis=-1)
    return _Pairs(
        pairs=np.concatenate([to_governor.pairs, to_dependent.pairs], axis=1),
        weights=np.concatenate([to_governor.weights, to_dependent.weights], axis=1),
        counts=counts.reshape(n_examples, -1)[:, :n_roles],
    )


@dataclass(frozen=True)
class _DirectedPairs:
    """All pairs of pieces of the arcs in one direction.

    For each pair its ``arc``, query * N + key (``pairs``), and its weight in the score of the
    arc; for each arc whether any of its pairs is within reach (``is_scored``).
    """

    arc: IntArray
    pairs: IntArray
    weights: NDArray[np.float64]
    is_scored: BoolArray


def _directed_pairs(
    batch: _Batch, queries: IntArray, keys: IntArray, owner: IntArray
) -> _DirectedPairs:
    """``queries`` and ``keys`` (arcs, 2) hold the first piece and the number of pieces."""
    (query_start, query_size), (key_start, key_size) = queries.T, keys.T
    arc, within = _expand(query_size * key_size)
    query = query_start[arc] + within // key_size[arc]
    key = key_start[arc] + within % key_size[arc]
    if batch.reach is not None:
        seen = np.abs(query - key) <= batch.reach
        arc, query, key = arc[seen], query[seen], key[seen]
    # a row of an arc is one of its query pieces; count the keys of each row, the rows of each arc
    rows, row, n_keys = np.unique(
        arc * batch.width + query, return_inverse=True, return_counts=True
    )
    n_rows = np.bincount(rows // batch.width, minlength=len(owner))
    weights = batch.row_lengths[owner[arc], query] / (n_keys[row] * n_rows[arc])
    return _DirectedPairs(arc, query * batch.width + key, weights, n_rows > 0)


def _expand(sizes: IntArray) -> tuple[IntArray, IntArray]:
    """For groups of these sizes, the group of every member and its place within the group."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    return group, np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _slots(owner: IntArray, n_owners: int) -> tuple[IntArray, int]:
    """Place of each entry among those of its owner (owners in order), and the most that one has."""
    sizes = np.bincount(owner, minlength=n_owners)
    return _expand(sizes)[1], int(sizes.max(initial=0))


def _block_diagonal(first: FloatArray, second: FloatArray) -> FloatArray:
    """Two stacks of (B, P, R) as one whose pairs and roles stand side by side."""
    batch, p1, r1 = first.shape
    _, p2, r2 = second.shape
    joined = np.zeros((batch, p1 + p2, r1 + r2), dtype=np.float32)
    joined[:, :p1, :r1] = first
    joined[:, p1:, r1:] = second
    return joined


def _divide(
    numerator: NDArray[np.generic], denominator: NDArray[np.generic]
) -> NDArray[np.float64]:
    """``numerator / denominator``, 0 where the denominator is 0."""
    quotient = np.zeros(np.broadcast(numerator, denominator).shape)
    np.divide(numerator, denominator, out=quotient, where=np.asarray(denominator) != 0)
    return quotient
