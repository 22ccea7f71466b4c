"""Sign flips of clusters, stored as bits: random ones, or all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headroles.inference._columns import FloatArray, Seed, check_resamples
from headroles.inference.ranks import p_of_draws

_NUMBERS_AT_ONCE = 2**20
"""Limit of a chunk of flips: arrays of 8 MiB, large enough for fast products."""


@dataclass(frozen=True)
class SignFlips:
    """``n_flips`` vectors of signs for ``n_clusters`` clusters, the same for every test.

    ``exact`` means that they are all possible sign vectors, each once, including the one that
    changes nothing.
    """

    bits: NDArray[np.uint8]
    n_flips: int
    n_clusters: int
    exact: bool

    def chunks(self, n_tests: int) -> Iterator[FloatArray]:
        """Yield the signs, +1 and -1, as arrays (some flips, clusters), for work on ``n_tests``."""
        step = max(1, _NUMBERS_AT_ONCE // max(self.n_clusters, n_tests, 1))
        for start in range(0, self.n_flips, step):
            bits = np.unpackbits(self.bits[start : start + step], axis=1, count=self.n_clusters)
            yield np.asarray(1.0 - 2.0 * bits, dtype=np.float64)

    def p_values(self, reached: NDArray[np.int64]) -> FloatArray:
        """Compute p-values from the number of flips that reached the observed statistic."""
        return p_of_draws(reached, self.n_flips, complete=self.exact)


def sign_flips(n_clusters: int, n_resamples: int, seed: Seed) -> SignFlips:
    """Return all sign vectors if they are at most ``n_resamples``, else that many random ones."""
    check_resamples(n_resamples)
    width = -(-n_clusters // 8)
    if 2**n_clusters <= n_resamples:
        return all_sign_flips(n_clusters)
    bits = np.random.default_rng(seed).integers(0, 256, (n_resamples, width), dtype=np.uint8)
    return SignFlips(bits, n_resamples, n_clusters, exact=False)


def all_sign_flips(n_clusters: int) -> SignFlips:
    """Return all 2^n_clusters sign vectors."""
    numbers = np.arange(2**n_clusters)[:, None]
    bits = (numbers >> np.arange(n_clusters)) & 1
    packed = np.packbits(bits.astype(np.uint8), axis=1)
    return SignFlips(packed, 2**n_clusters, n_clusters, exact=True)
