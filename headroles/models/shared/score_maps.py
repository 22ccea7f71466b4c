"""Attention scores of one layer as maps, of full rank or of low rank. Arrays only."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from headroles.arrays import FloatArray
from headroles.models.options import PER_HEAD, SHARED, FactorMethod


@dataclass(frozen=True)
class ScoreMaps:
    """Maps that make the scores of one layer, of H heads of d numbers, for inputs of width D.

    ``query`` and ``key`` (H, d, D) are weights, ``bias`` (H, d) is that of the queries.
    """

    query: FloatArray
    key: FloatArray
    bias: FloatArray

    @property
    def full_rank(self) -> int:
        """Rank H * d: with as many shared dimensions the factors are the maps themselves."""
        return int(np.prod(self.query.shape[:2]))

    @cached_property
    def energy(self) -> float:
        """Sum of squares of the scores' maps, including the term without a query."""
        queries = self.query @ self.query.swapaxes(1, 2)
        queries += self.bias[:, :, None] * self.bias[:, None, :]
        return float((queries * (self.key @ self.key.swapaxes(1, 2))).sum())

    def scores(self, inputs: FloatArray) -> FloatArray:
        """Return the scores (H, n, n) of every head for ``inputs`` (n, D), queries first."""
        queries = self.query @ inputs.T + self.bias[:, :, None]
        return np.asarray(queries.swapaxes(1, 2) @ (self.key @ inputs.T))


@dataclass(frozen=True)
class Factors:
    """Scores of low rank: (mixing_h * (query x_i) + bias_h) . key x_j.

    ``SHARED`` factors have ``query`` and ``key`` (R, D), ``mixing`` and ``bias`` (H, R). Factors
    ``PER_HEAD`` are (H, r, D) and (H, r), with ``mixing`` all ones. ``errors`` are the roots of the
    share of squares that remains after each round of least squares; a direct solution has none.
    """

    query: FloatArray
    key: FloatArray
    mixing: FloatArray
    bias: FloatArray
    errors: tuple[float, ...] = ()
    converged: bool = True

    @property
    def iterations(self) -> int:
        """Number of rounds."""
        return len(self.errors)

    @property
    def method(self) -> FactorMethod:
        """Method of the factors, one of ``FACTOR_METHODS``."""
        return SHARED if self.query.ndim == 2 else PER_HEAD

    @property
    def rank(self) -> int:
        """Number of dimensions behind all queries of a token: R, or H * r."""
        return int(np.prod(self.query.shape[:-1]))

    def as_maps(self) -> ScoreMaps:
        """Return the same scores as maps of each head, of width R or r."""
        query = self.mixing[:, :, None] * self.query
        return ScoreMaps(query, np.broadcast_to(self.key, query.shape), self.bias)
