"""Roles whose sieves many queries share: delimiters, and the words of a segment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headroles.sieves.batch import (
    CLASSIFIER,
    DELIMITERS,
    SEPARATORS,
    WORDS_0,
    WORDS_1,
    Batch,
)
from headroles.sieves.rows import BoolArray, FloatArray, divide
from headroles.tokens import IntArray


@dataclass(frozen=True)
class SetRoles:
    """Weights of each row's mass on each key set: (B, N, K, R), or (B, N, K) for a single role.

    ``constants`` and ``counts`` are (B, R), as in `Sieves`.
    """

    weights: FloatArray
    constants: FloatArray
    counts: IntArray


def delimiter_roles(batch: Batch) -> SetRoles:
    """Every token looks for the tokens of one set."""
    weights = np.zeros((*batch.key_sets.shape, 3), dtype=np.float32)
    constants = np.zeros((batch.size, 3), dtype=np.float32)
    counts = np.zeros((batch.size, 3), dtype=np.int64)
    for role, key_set in enumerate((DELIMITERS, CLASSIFIER, SEPARATORS)):
        rows = batch.row_values(batch.set_sizes[:, :, key_set])
        queries = batch.real & rows.scored
        counts[:, role] = n = queries.sum(axis=1)
        weights[:, :, key_set, role] = divide(rows.slopes * queries, n[:, None])
        constants[:, role] = divide((rows.offsets * queries).sum(axis=1), n)
    return SetRoles(weights, constants, counts)


def block_role(batch: Batch) -> SetRoles:
    """Every token looks for the words of its own segment.

    The first separator and all after it belong to the second segment, all before to the first.
    """
    weights = np.zeros(batch.key_sets.shape)
    constants, n = np.zeros(batch.size), np.zeros(batch.size, dtype=np.int64)
    for key_set, queries in _segments(batch):
        rows = batch.row_values(batch.set_sizes[:, :, key_set])
        scored = queries & rows.scored
        weights[:, :, key_set] = rows.slopes * scored
        constants += (rows.offsets * scored).sum(axis=1)
        n += scored.sum(axis=1)
    return SetRoles(
        weights=divide(weights, n[:, None, None]).astype(np.float32),
        constants=divide(constants, n)[:, None].astype(np.float32),
        counts=n[:, None],
    )


def evenness_role(batch: Batch) -> SetRoles:
    """The weights 1 / (rows * ln of the segment's size) of every token's own segment.

    A segment of one word can only be attended to evenly: its rows say nothing.
    """
    weights = np.zeros(batch.key_sets.shape)
    n = np.zeros(batch.size, dtype=np.int64)
    for key_set, queries in _segments(batch):
        sizes = batch.set_sizes[:, :, key_set]
        scored = queries & (sizes > 1)
        weights[:, :, key_set] = divide(scored, np.log(np.maximum(sizes, 1)))
        n += scored.sum(axis=1)
    weights = divide(weights, n[:, None, None])
    return SetRoles(weights.astype(np.float32), np.zeros((batch.size, 1), np.float32), n[:, None])


def _segments(batch: Batch) -> tuple[tuple[int, BoolArray], tuple[int, BoolArray]]:
    """The words of each segment as a key set, and the tokens (B, N) that belong to it."""
    in_second = np.cumsum(batch.key_sets[:, :, SEPARATORS], axis=1) > 0
    second_words = batch.key_sets[:, :, WORDS_1]
    # without a separator between them there are no two segments to stay in
    paired = second_words.any(axis=1, keepdims=True)
    paired &= ~(second_words & ~in_second).any(axis=1, keepdims=True)
    queries = batch.real & paired
    return (WORDS_0, queries & ~in_second), (WORDS_1, queries & in_second)
