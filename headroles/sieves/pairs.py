"""Roles whose sieves are a few keys of their own for every query: a window, the ends of arcs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headroles.sieves.batch import Batch
from headroles.sieves.rows import BoolArray, FloatArray, divide, expand, row_values, slots
from headroles.tokens import EncodedExample, IntArray


@dataclass(frozen=True)
class PairRoles:
    """(B, P) pairs as query * N + key and (B, P, R) weights; constants and counts (B, R)."""

    pairs: IntArray
    weights: FloatArray
    constants: FloatArray
    counts: IntArray


def local_role(batch: Batch, window: int, published_edge: bool) -> PairRoles:
    """Every token looks for those at most ``window`` away, itself included."""
    width, lengths = batch.width, batch.real.sum(axis=1)
    window = min(window, width if batch.reach is None else batch.reach)
    query = np.arange(width)[:, None]
    key = query + np.arange(-window, window + 1)
    n = lengths[:, None, None]
    inside = (key >= 0) & (key < n) & (query < n)
    sizes = inside.sum(axis=-1)
    if published_edge:
        after = np.minimum(np.maximum(n - query, 0), window)[..., 0]
        sizes = np.minimum(query[:, 0], window) + 1 + after
    rows = batch.row_values(sizes)
    queries = batch.real & rows.scored
    counts = queries.sum(axis=1)
    weights = divide(inside * (rows.slopes * queries)[..., None], counts[:, None, None])
    pairs = (query * width + key.clip(0, width - 1)).reshape(1, -1)
    return PairRoles(
        pairs=np.broadcast_to(pairs, (batch.size, pairs.size)),
        weights=weights.reshape(batch.size, -1, 1).astype(np.float32),
        constants=divide((rows.offsets * queries).sum(axis=1), counts)[:, None].astype(np.float32),
        counts=counts[:, None],
    )


@dataclass(frozen=True)
class ArcPairs:
    """Every pair of pieces of every arc, in both directions, ordered by example.

    ``example``, ``query`` and ``key`` are (pairs,). Each pair counts for two of the R syntactic
    roles, the pooled one and that of its relation: ``roles`` and ``weights`` are (pairs, 2).
    ``constants`` and ``counts`` (B, R) are those of the roles.
    """

    example: IntArray
    query: IntArray
    key: IntArray
    roles: IntArray
    weights: NDArray[np.float64]
    constants: FloatArray
    counts: IntArray

    def as_roles(self, width: int) -> PairRoles:
        """The same as roles of examples padded to ``width`` tokens."""
        n_examples, n_roles = self.counts.shape
        place, most = slots(self.example, n_examples)
        pairs = np.zeros((n_examples, most), dtype=np.int64)
        pairs[self.example, place] = self.query * width + self.key
        weights = np.zeros((n_examples, most, n_roles), dtype=np.float32)
        weights[self.example[:, None], place[:, None], self.roles] = self.weights
        return PairRoles(pairs, weights, self.constants, self.counts)


def arc_pairs(batch: Batch, examples: Sequence[EncodedExample], n_relations: int) -> ArcPairs:
    """The pairs of all arcs: dependents looking for governors, and the other way round.

    An arc from word x (pieces I) to word y (pieces J) scores the mean over I of the values of its
    rows, with J for a sieve; a role of an example scores the mean over its arcs.
    """
    arcs = np.concatenate([example.arcs for example in examples])
    owner = np.repeat(np.arange(batch.size), [len(example.arcs) for example in examples])
    dependents, governors, relation = arcs[:, 0:2], arcs[:, 2:4], arcs[:, 4]
    n_roles = 2 + 2 * n_relations if n_relations else 0
    constants = np.zeros((batch.size, n_roles))
    counts = np.zeros((batch.size, n_roles), dtype=np.int64)
    parts = []
    for direction, ends in enumerate(((dependents, governors), (governors, dependents))):
        found = _directed_pairs(batch, *ends, owner)
        roles = np.column_stack([np.full_like(relation, direction), 2 + 2 * relation + direction])
        scored = np.flatnonzero(found.is_scored)
        places = (owner[scored, None], roles[scored])
        np.add.at(counts, places, 1)
        np.add.at(constants, places, found.constants[scored, None])
        parts.append((owner[found.arc], found.query, found.key, roles[found.arc], found.weights))
    example, query, key, role, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(example, kind="stable")
    example, role = example[order], role[order]
    return ArcPairs(
        example=example,
        query=query[order],
        key=key[order],
        roles=role,
        weights=weights[order, None] / counts[example[:, None], role],
        constants=divide(constants, counts).astype(np.float32),
        counts=counts,
    )


@dataclass(frozen=True)
class _DirectedPairs:
    """All pairs of pieces of the arcs in one direction.

    For each pair its ``arc``, query, key and weight in the value of the arc; for each arc its
    constant, and whether any of its pairs is within reach (``is_scored``).
    """

    arc: IntArray
    query: IntArray
    key: IntArray
    weights: NDArray[np.float64]
    constants: NDArray[np.float64]
    is_scored: BoolArray


def _directed_pairs(
    batch: Batch, queries: IntArray, keys: IntArray, owner: IntArray
) -> _DirectedPairs:
    """``queries`` and ``keys`` (arcs, 2) hold the first piece and the number of pieces."""
    (query_start, query_size), (key_start, key_size) = queries.T, keys.T
    arc, within = expand(query_size * key_size)
    query = query_start[arc] + within // key_size[arc]
    key = key_start[arc] + within % key_size[arc]
    if batch.reach is not None:
        seen = np.abs(query - key) <= batch.reach
        arc, query, key = arc[seen], query[seen], key[seen]
    # a row of an arc is one of its query pieces; count the keys of each row, the rows of each arc
    ids, row, n_keys = np.unique(arc * batch.width + query, return_inverse=True, return_counts=True)
    row_arc, row_query = ids // batch.width, ids % batch.width
    n_rows = np.bincount(row_arc, minlength=len(owner))
    values = row_values(batch.score, batch.row_lengths[owner[row_arc], row_query], n_keys)
    offsets = np.bincount(row_arc, weights=values.offsets, minlength=len(owner))
    return _DirectedPairs(
        arc=arc,
        query=query,
        key=key,
        weights=values.slopes[row] / n_rows[arc],
        constants=divide(offsets, n_rows),
        is_scored=n_rows > 0,
    )
