"""Sieves at fixed offsets from the query, such as a window or the previous token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headroles.arrays import Float32Array, IntArray
from headroles.roles.arithmetic import divide
from headroles.roles.batch import Scope
from headroles.roles.first_choices import TOKENS, among_in
from headroles.roles.sieve import Array, KeySetList, Layer, Sieve, SieveReadout


@dataclass(frozen=True)
class Offsets(Sieve):
    """Sieve of the tokens at some ``offsets`` from the query, in ascending order.

    ``published_edge`` takes the size of a window as in the released notebooks, which is one too
    large for the last tokens.
    """

    offsets: tuple[int, ...]
    published_edge: bool = False

    def readout(
        self, alike: Sequence[Offsets], scope: Scope, key_sets: KeySetList
    ) -> OffsetReadout:
        """Find the weights of the pairs of all tokens with the tokens at their offsets."""
        batch = scope.batch
        farthest = batch.width if scope.reach is None else scope.reach
        offsets = np.array([k for k in self.offsets if abs(k) <= farthest], dtype=np.int64)
        query = np.arange(batch.width)[:, None]
        key = query + offsets
        n = batch.lengths[:, None, None]
        inside = (key >= 0) & (key < n) & (query < n)
        if scope.score.of_first_choice:
            inside &= batch.in_words[:, :, None]
            inside &= batch.in_words[:, key.clip(0, batch.width - 1)]
        sizes = _published_sizes(offsets, n, query) if self.published_edge else inside.sum(axis=-1)
        rows = scope.row_values(sizes)
        queries = batch.real & rows.scored
        counts = queries.sum(axis=1)
        weights = divide(inside * (rows.slopes * queries)[..., None], counts[:, None, None])
        pairs = (query * batch.width + key.clip(0, batch.width - 1)).reshape(1, -1)
        constants, lows, highs = (
            divide((of_rows * queries).sum(axis=1), counts)[:, None].astype(np.float32)
            for of_rows in (rows.offsets, rows.lows, rows.highs)
        )
        return OffsetReadout(
            pairs=np.repeat(pairs, batch.size, axis=0),
            weights=weights.reshape(batch.size, -1, 1).astype(np.float32),
            constants=constants,
            counts=counts[:, None],
            among=among_in(scope, TOKENS),
            lows=lows,
            highs=highs,
        )


def _published_sizes(offsets: IntArray, n: IntArray, query: IntArray) -> IntArray:
    """Return the sizes of windows (B, N) as the released notebooks count them."""
    window = offsets.max()
    after = np.minimum(np.maximum(n - query, 0), window)[..., 0]
    sizes: IntArray = np.minimum(query[:, 0], window) + 1 + after
    return sizes


@dataclass(frozen=True, kw_only=True)
class OffsetReadout(SieveReadout):
    """Readout with ``pairs`` (B, P) as query * N + key and ``weights`` (B, P, 1), padded with 0."""

    pairs: IntArray
    weights: Float32Array

    def read(self, layer: Layer) -> Array:
        """Return weighted sums over pairs; a matrix product would lose digits."""
        return layer.at(self.pairs).mul_(self.weights.mT).sum(-1, keepdim=True)
