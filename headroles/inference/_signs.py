"""Sign flips of clusters, kept as bits: random ones, or all there are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headroles.inference._columns import FloatArray, Seed, check_resamples
from headroles.inference.ranks import p_of_draws

_NUMBERS_AT_ONCE = 2**20
"""Bounds a chunk of flips: arrays of 8 MiB, large enough for fast products."""


@dataclass(frozen=True)
class SignFlips:
    """``n_flips`` vectors of signs for ``n_clusters`` clusters, the same for every test.

    ``exact`` says that they are all the sign vectors there are, each once, the one that changes
    nothing among them.
    """

    bits: NDArray[np.uint8]
    n_flips: int
    n_clusters: int
    exact: bool

    def chunks(self, n_tests: int) -> Iterator[FloatArray]:
        """The signs, +1 and -1, as arrays (some flips, clusters), for work on ``n_tests``."""
        step = max(1, _NUMBERS_AT_ONCE // max(self.n_clusters, n_tests, 1))
        for start in range(0, self.n_flips, step):
            bits = np.unpackbits(self.bits[start : start + step], axis=1, count=self.n_clusters)
            yield np.asarray(1.0 - 2.0 * bits, dtype=np.float64)

    def p_values(self, reached: NDArray[np.int64]) -> FloatArray:
        """p-values from the number of flips that reached the observed statistic."""
        return p_of_draws(reached, self.n_flips, complete=self.exact)


def sign_flips(n_clusters: int, n_resamples: int, seed: Seed) -> SignFlips:
    """All sign vectors if they are no more than ``n_resamples``, else that many random ones."""
    check_resamples(n_resamples)
    width = -(-n_clusters // 8)
    if 2**n_clusters <= n_resamples:
        return all_sign_flips(n_clusters)
    bits = np.random.default_rng(seed).integers(0, 256, (n_resamples, width), dtype=np.uint8)
    return SignFlips(bits, n_resamples, n_clusters, exact=False)


def all_sign_flips(n_clusters: int) -> SignFlips:
    """All 2^n_clusters sign vectors."""
    numbers = np.arange(2**n_clusters)[:, None]
    bits = (numbers >> np.arange(n_clusters)) & 1
    packed = np.packbits(bits.astype(np.uint8), axis=1)
    return SignFlips(packed, 2**n_clusters, n_clusters, exact=True)
