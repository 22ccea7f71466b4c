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
) -> Sieves:
    """Sieves of every role of ``role_ids`` for ``examples``, ``n_relations`` being scored.

    ``window`` is how far the sieve of ``local`` reaches to either side. ``published_edge`` takes
    the size of that sieve from the released notebooks, one too large for the last ``window``
    tokens.
    """
    lengths = np.array([len(example) for example in examples])
    segments = _padded_segments(examples, int(lengths.max()))
    key_sets = _key_sets(segments)
    set_weights, set_counts = _delimiter_weights(segments, key_sets, lengths)
    block_weights, block_counts = _block_weights(segments, key_sets, lengths)
    local = _local_pairs(lengths, segments.shape[1], window, published_edge)
    syntax = _syntactic_pairs(examples, lengths, segments.shape[1], n_relations)
    return Sieves(
        key_sets=key_sets.astype(np.float32),
        set_weights=set_weights.reshape(len(examples), -1, set_weights.shape[-1]),
        block_weights=block_weights,
        pairs=np.concatenate([local.pairs, syntax.pairs], axis=1),
        pair_weights=_block_diagonal(local.weights, syntax.weights),
        counts=np.column_stack([lengths, set_counts, block_counts, block_counts, syntax.counts]),
    )


def _padded_segments(examples: Sequence[EncodedExample], width: int) -> IntArray:
    segments = np.full((len(examples), width), _PADDING, dtype=np.int64)
    for row, example in zip(segments, examples, strict=True):
        row[: len(example)] = example.segments
    return segments


def _key_sets(segments: IntArray) -> BoolArray:
    """(B, N, K): the tokens of each key set."""
    special = segments == SPECIAL
    classifier = special.copy()
    classifier[:, 1:] = False
    return np.stack(
        [special, classifier, special & ~classifier, segments == 0, segments == 1], axis=-1
    )


def _delimiter_weights(
    segments: IntArray, key_sets: BoolArray, lengths: IntArray
) -> tuple[FloatArray, IntArray]:
    """(B, N, K, 3) weights and (B, 3) counts: every token looks for the tokens of one set."""
    sizes = key_sets.sum(axis=1)
    weights = np.zeros((*key_sets.shape, 3), dtype=np.float32)
    real = segments != _PADDING
    for role, key_set in enumerate((_DELIMITERS, _CLASSIFIER, _SEPARATORS)):
        # n / |S| for each of the |Q| = n rows of the mean: the lengths cancel
        weight = _divide(np.ones(len(lengths)), sizes[:, key_set])
        weights[:, :, key_set, role] = weight[:, None] * real
    counts = np.where(sizes[:, :3] > 0, lengths[:, None], 0)
    return weights, counts


def _block_weights(
    segments: IntArray, key_sets: BoolArray, lengths: IntArray
) -> tuple[FloatArray, IntArray]:
    """(B, N, K) weights and (B,) counts: every token looks for the words of its own segment.

    The first separator and all after it belong to the second segment, all before to the first.
    """
    separators = key_sets[:, :, _SEPARATORS]
    in_second = np.cumsum(separators, axis=1) > 0
    paired = key_sets[:, :, _WORDS_1].any(axis=1, keepdims=True)
    sizes = key_sets.sum(axis=1)
    weights = np.zeros(key_sets.shape, dtype=np.float32)
    real = segments != _PADDING
    counts = np.zeros(len(lengths), dtype=np.int64)
    for key_set, rows in ((_WORDS_0, ~in_second), (_WORDS_1, in_second)):
        queries = rows & real & paired & (sizes[:, key_set] > 0)[:, None]
        counts += queries.sum(axis=1)
        weights[:, :, key_set] = _divide(lengths, sizes[:, key_set])[:, None] * queries
    weights *= _divide(np.ones(len(lengths)), counts)[:, None, None]
    return weights, counts


@dataclass(frozen=True)
class _Pairs:
    """(B, P) pairs as query * N + key, (B, P, R) weights, (B, R) counts."""

    pairs: IntArray
    weights: FloatArray
    counts: IntArray


def _local_pairs(lengths: IntArray, width: int, window: int, published_edge: bool) -> _Pairs:
    query = np.arange(width)[:, None]
    key = query + np.arange(-window, window + 1)
    n = lengths[:, None, None]
    inside = (key >= 0) & (key < n) & (query < n)
    sizes = inside.sum(axis=-1, keepdims=True)
    if published_edge:
        sizes = np.minimum(query, window) + 1 + np.minimum(np.maximum(n - query, 0), window)
    weights = _divide(inside.astype(float), np.broadcast_to(sizes, inside.shape))
    pairs = query * width + key.clip(0, width - 1)
    return _Pairs(
        pairs=np.broadcast_to(pairs.reshape(1, -1), (len(lengths), pairs.size)),
        weights=weights.reshape(len(lengths), -1, 1).astype(np.float32),
        counts=lengths[:, None],
    )


def _syntactic_pairs(
    examples: Sequence[EncodedExample], lengths: IntArray, width: int, n_relations: int
) -> _Pairs:
    """The pairs of every arc in both directions.

    An arc from word x (pieces I) to word y (pieces J) scores n / (|I| |J|) times the sum of its
    pairs, and a role of an example scores the mean over its arcs.
    """
    n_examples = len(examples)
    if not n_relations:
        return _Pairs(
            np.zeros((n_examples, 0), np.int64),
            np.zeros((n_examples, 0, 0), np.float32),
            np.zeros((n_examples, 0), np.int64),
        )
    arcs = np.concatenate([example.arcs for example in examples])
    example = np.repeat(np.arange(n_examples), [len(example.arcs) for example in examples])
    dependent, dependent_size, governor, governor_size, relation = arcs.T
    by_relation = np.zeros((n_examples, n_relations), dtype=np.int64)
    np.add.at(by_relation, (example, relation), 1)
    pooled = by_relation.sum(axis=1)

    sizes = dependent_size * governor_size
    arc = np.repeat(np.arange(len(arcs)), sizes)  # the arc of every pair of pieces
    within = np.arange(len(arc)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    dependent_piece = dependent[arc] + within // governor_size[arc]
    governor_piece = governor[arc] + within % governor_size[arc]
    owner = example[arc]
    per_example = np.bincount(owner, minlength=n_examples)
    slot = np.arange(len(arc)) - np.repeat(np.cumsum(per_example) - per_example, per_example)
    half = int(per_example.max(initial=0))  # pairs to governors first, then those to dependents

    weight = lengths[owner] / sizes[arc]
    weight_pooled = weight / pooled[owner]
    weight_relation = weight / by_relation[owner, relation[arc]]
    pairs = np.zeros((n_examples, 2 * half), dtype=np.int64)
    weights = np.zeros((n_examples, 2 * half, 2 + 2 * n_relations), dtype=np.float32)
    for direction, query, key in (
        (0, dependent_piece, governor_piece),
        (1, governor_piece, dependent_piece),
    ):
        place = direction * half + slot
        pairs[owner, place] = query * width + key
        weights[owner, place, direction] = weight_pooled
        weights[owner, place, 2 + 2 * relation[arc] + direction] = weight_relation
    counts = np.repeat(np.column_stack([pooled, by_relation]), 2, axis=1)
    return _Pairs(pairs, weights, counts)


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
