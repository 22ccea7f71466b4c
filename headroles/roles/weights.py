"""Weights of pairs of a query and a key in the scores of roles.

A batch has many pairs and a table many roles, but each pair counts for few of them. So weights are
kept as entries, one for each pair and each role that it counts for. They are laid out in full only
for the product with attention.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headroles.arrays import BoolArray, Float32Array, FloatArray, IntArray
from headroles.roles.batch import PaddedBatch


def expand(sizes: IntArray) -> tuple[IntArray, IntArray]:
    """Return, for sets of these sizes, the set of every member and its index within the set."""
    owner = np.repeat(np.arange(len(sizes)), sizes)
    return owner, np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)


class Weights(NamedTuple):
    """Weights of pairs in the scores of ``n_roles``, as entries (K,) in the order of pairs.

    The pair of number ``pairs`` has the weight ``values`` in the score of the role of number
    ``roles``; all other weights are 0.
    """

    pairs: IntArray
    roles: IntArray
    values: NDArray[np.floating]
    n_roles: int

    @classmethod
    def for_one_role(cls, values: NDArray[np.floating]) -> Weights:
        """Return the weights (P,) of pairs in the score of a single role."""
        numbers = np.arange(len(values))
        return cls(numbers, 0 * numbers, values, 1)

    def chosen(self, where: BoolArray) -> Weights:
        """Return the weights of the pairs ``where`` (P,) is True; all others have none."""
        return self._replace(pairs=(np.cumsum(where) - 1)[self.pairs])

    def sums_by(self, groups: IntArray, n: int) -> FloatArray:
        """Sum the weights of the pairs of each of ``n`` groups, in their order, as (n, roles).

        ``groups`` (P,) are the numbers of the groups of all pairs.
        """
        sums = np.bincount(self._cells(groups), self.values, n * self.n_roles)
        return sums.astype(np.float64).reshape(n, self.n_roles)  # integers if it is empty

    def counts_by(self, groups: IntArray, n: int) -> FloatArray:
        """Count the pairs of each group with a weight in each score, as (n, roles)."""
        counts = np.bincount(self._cells(groups), minlength=n * self.n_roles)
        return counts.astype(np.float64).reshape(n, self.n_roles)

    def _cells(self, groups: IntArray) -> IntArray:
        cells: IntArray = groups[self.pairs] * self.n_roles + self.roles
        return cells


def spread(table: NDArray[np.generic], groups: IntArray, factors: NDArray[np.floating]) -> Weights:
    """Return as weights of pairs (P,) the row of ``table`` (groups, roles) of the group of each.

    Rows are multiplied by the pairs' ``factors``.
    """
    is_there = table != 0
    rows, roles = np.nonzero(is_there)
    sizes = is_there.sum(axis=1)
    starts = np.cumsum(sizes) - sizes
    pairs, index = expand(sizes[groups])
    entries = starts[groups[pairs]] + index
    values = table[rows, roles][entries] * factors[pairs]
    return Weights(pairs, roles[entries], values, table.shape[1])


class PairsOfExamples(NamedTuple):
    """Pairs of a query and a key (P,), each of the example of a batch that is among ``owners``."""

    owners: IntArray
    queries: IntArray
    keys: IntArray

    def chosen(self, where: BoolArray) -> PairsOfExamples:
        """Return the pairs ``where`` (P,) is True."""
        return PairsOfExamples(*(ends[where] for ends in self))

    def padded(self, batch: PaddedBatch, weights: Weights) -> tuple[IntArray, Float32Array]:
        """Return pairs (B, most) as query * N + key, and their weights (B, most, r), 0 beyond."""
        order = np.argsort(self.owners, kind="stable")
        owners, columns = expand(np.bincount(self.owners, minlength=batch.size))
        most = int(columns.max(initial=-1)) + 1
        places = np.empty(len(order), dtype=np.int64)
        places[order] = owners * most + columns
        pairs = np.zeros((batch.size, most), dtype=np.int64)
        pairs.reshape(-1)[places] = self.queries * batch.width + self.keys
        full = np.zeros((batch.size * most, weights.n_roles), dtype=np.float32)
        full[places[weights.pairs], weights.roles] = weights.values
        return pairs, full.reshape(*pairs.shape, weights.n_roles)
