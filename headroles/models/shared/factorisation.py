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

import numpy as np

from headroles.arrays import FloatArray
from headroles.models.options import PER_HEAD, SHARED
from headroles.models.shared.als import fit_shared, head_singular
from headroles.models.shared.score_maps import Factors, ScoreMaps


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
    return basis.leave(fit_shared(fitted, rank, seed=seed, restarts=restarts))


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
