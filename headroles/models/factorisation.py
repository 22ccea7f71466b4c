"""Attention scores of low rank: factors shared by all heads, or factors of each head. Arrays only.

Before its softmax, the attention of a layer is for head h and tokens i, j with inputs x of width D

    score_h(i, j) = (Q_h x_i + b_h) . K_h x_j,        Q_h, K_h (head size, D)

up to terms that do not depend on j and that the softmax cancels, such as the bias of the keys.
Shared factors (collaborative attention, Cordonnier et al. 2020) are a CP decomposition of rank R of
the tensor of all Q_h' K_h:

    score_h(i, j) = (m_h * (Q x_i) + c_h) . K x_j,    Q, K (R, D) of all heads, m_h, c_h (R,)

Factors of each head are the truncated singular value decompositions of [Q_h, b_h]' K_h.

The factors minimise the mean square error of the scores on real inputs, not of the tensor. With
query inputs of mean mu and covariance S, and keys of covariance C within their sequences (a common
shift of all keys only shifts a whole row of scores), and x = mu + z, that error is

    sum_h |S^(1/2) (Q_h' K_h - ^) C^(1/2)|^2 + |((Q_h mu + b_h)' K_h - ^) C^(1/2)|^2

so both terms are ordinary least squares after a change of coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from headroles.models.als import FloatArray, fit_shared, head_singular

Method: TypeAlias = Literal["shared", "per-head"]
SHARED: Method = "shared"
PER_HEAD: Method = "per-head"
METHODS = (SHARED, PER_HEAD)


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
class InputMoments:
    """Second moments of the inputs of a layer, of width D.

    ``mean`` (D,) and ``covariance`` (D, D) are of the inputs of queries, ``within`` (D, D) is the
    covariance of the inputs of keys within their sequences.
    """

    mean: FloatArray
    covariance: FloatArray
    within: FloatArray

    @classmethod
    def none(cls, width: int) -> InputMoments:
        """Return moments of unknown inputs, for which the error is that of the tensor itself."""
        return cls(np.zeros(width), np.eye(width), np.eye(width))


@dataclass(frozen=True)
class Factors:
    """Scores of low rank: (mixing_h * (query x_i) + bias_h) . key x_j.

    ``SHARED`` factors have ``query`` and ``key`` (R, D), ``mixing`` and ``bias`` (H, R). Factors
    ``PER_HEAD`` are (H, r, D) and (H, r), with ``mixing`` all ones. ``iterations`` is 0 for a
    direct solution.
    """

    query: FloatArray
    key: FloatArray
    mixing: FloatArray
    bias: FloatArray
    iterations: int = 0
    converged: bool = True

    @property
    def method(self) -> str:
        """Method of the factors, one of ``METHODS``."""
        return SHARED if self.query.ndim == 2 else PER_HEAD

    @property
    def rank(self) -> int:
        """Number of dimensions behind all queries of a token: R, or H * r."""
        return int(np.prod(self.query.shape[:-1]))

    def as_maps(self) -> ScoreMaps:
        """Return the same scores as maps of each head, of width R or r."""
        query = self.mixing[:, :, None] * self.query
        return ScoreMaps(query, np.broadcast_to(self.key, query.shape), self.bias)


def factorise(
    maps: ScoreMaps,
    moments: InputMoments,
    rank: int,
    method: str = SHARED,
    *,
    seed: int = 0,
    restarts: int = 1,
) -> Factors:
    """Find scores of ``rank`` with a low error on inputs of these moments.

    Shared factors are found by alternating least squares (`als.fit_shared`), the best of
    ``restarts`` starts; at full rank they are the maps themselves. With factors per head, each head
    gets rank / H dimensions, and the error is the least possible.
    """
    if method == SHARED and rank >= maps.full_rank:
        return _own_factors(maps)
    basis = _Basis.of(moments)
    fitted = basis.enter(maps)
    if method == PER_HEAD:
        return basis.leave(_truncated(fitted, rank // len(maps.query)))
    fit = fit_shared(fitted.query, fitted.key, fitted.bias, rank, seed=seed, restarts=restarts)
    return basis.leave(
        Factors(fit.query, fit.key, fit.mixing, fit.bias, fit.iterations, fit.converged)
    )


def score_error(maps: ScoreMaps, factors: Factors, moments: InputMoments) -> float:
    """Return the root mean square error of scores, relative to that of the scores themselves.

    The mean of each row of scores is subtracted. The inputs have the given ``moments``.
    """
    basis = _Basis.of(moments)
    exact, close = basis.enter(maps), basis.enter(factors.as_maps())
    both = ScoreMaps(
        np.concatenate([exact.query, -close.query], axis=1),
        np.concatenate([exact.key, close.key], axis=1),
        np.concatenate([exact.bias, -close.bias], axis=1),
    )
    return float(np.sqrt(max(both.energy, 0) / exact.energy)) if exact.energy else 0.0


def _own_factors(maps: ScoreMaps) -> Factors:
    """Return the maps as factors: every head mixes only its own dimensions."""
    heads, size, width = maps.query.shape
    own = np.repeat(np.eye(heads), size, axis=1)
    query, key = maps.query.reshape(-1, width), maps.key.reshape(-1, width)
    return Factors(query, key, own, own * maps.bias.reshape(-1))


def _truncated(maps: ScoreMaps, rank: int) -> Factors:
    """Return the ``rank`` largest singular dimensions of the map of each head, bias included."""
    query = np.concatenate([maps.query, maps.bias[:, :, None]], axis=2)
    left, strength, right = head_singular(query, maps.key)
    scaled = (left[:, :, :rank] * strength[:, None, :rank]).swapaxes(1, 2)
    key = right[:, :, :rank].swapaxes(1, 2)
    return Factors(scaled[..., :-1], key, np.ones(scaled.shape[:2]), scaled[..., -1])


@dataclass(frozen=True)
class _Basis:
    """Coordinates in which the error of scores is a sum of squares."""

    mean: FloatArray
    query: tuple[FloatArray, FloatArray]
    key: tuple[FloatArray, FloatArray]

    @classmethod
    def of(cls, moments: InputMoments) -> _Basis:
        return cls(moments.mean, _roots(moments.covariance), _roots(moments.within))

    def enter(self, maps: ScoreMaps) -> ScoreMaps:
        bias = maps.bias + maps.query @ self.mean
        return ScoreMaps(maps.query @ self.query[0], maps.key @ self.key[0], bias)

    def leave(self, factors: Factors) -> Factors:
        query = factors.query @ self.query[1]
        bias = factors.bias - factors.mixing * (query @ self.mean)
        return replace(factors, query=query, key=factors.key @ self.key[1], bias=bias)


def _roots(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the square root of a covariance and its inverse, bounded where inputs do not vary."""
    values, vectors = np.linalg.eigh(matrix)
    # other text may vary in directions in which the sample does not, so factors must fit there too
    values = np.sqrt(np.maximum(values, 1e-6 * values[-1]))
    return (vectors * values) @ vectors.T, (vectors / values) @ vectors.T
