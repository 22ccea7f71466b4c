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

The tensor T (query input, head, key input) = sum_c query[h, c] x key[h, c] has D * H * D entries
and is never built: alternating least squares need only products of its maps with the factors, and
Gram matrices (R, R). One round takes five products of (H * d, D) with (D, R). The scores have a
term without a query, bias_h' key_h (H, D). It is fitted together with the rest, by separate
coefficients in the shared key dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from headroles.arrays import FloatArray, IndexArray
from headroles.models.options import PER_HEAD, SHARED, FactorMethod

MOST_ROUNDS = 200
TOLERANCE = 3e-4
"""Share of the error by which a round must lower it for rounds to continue."""
_NOISE = 0.1
_RIDGE = 1e-10


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

    @cached_property
    def content(self) -> FloatArray:
        """Part of the scores (H, D) that does not depend on the query."""
        return np.asarray(np.einsum("hc,hcd->hd", self.bias, self.key))

    @cached_property
    def total(self) -> float:
        """Sum of squares of the scores' maps, with the term without a query apart."""
        grams = (self.query @ self.query.swapaxes(1, 2)) * (self.key @ self.key.swapaxes(1, 2))
        return float(grams.sum() + (self.content**2).sum())

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

    Shared factors are found by alternating least squares (`fit_shared`), the best of
    ``restarts`` starts; at full rank they are the maps themselves. With factors per head, each head
    gets rank / H dimensions, and the error is the least possible.
    """
    heads, size, width = maps.query.shape
    if method == SHARED and rank >= maps.full_rank:  # every head mixes only its own dimensions
        mixing = np.repeat(np.eye(heads), size, axis=1)
        query, key = maps.query.reshape(-1, width), maps.key.reshape(-1, width)
        return Factors(query, key, mixing, mixing * maps.bias.reshape(-1))
    basis = _Basis.from_moments(moments)
    fitted = basis.enter(maps)
    if method == SHARED:
        return basis.leave(fit_shared(fitted, rank, seed=seed, restarts=restarts))
    with_bias = np.concatenate([fitted.query, fitted.bias[:, :, None]], axis=2)
    left, strength, right = head_singular(with_bias, fitted.key)
    most = rank // heads  # singular dimensions of each head
    scaled = (left[:, :, :most] * strength[:, None, :most]).swapaxes(1, 2)
    key = right[:, :, :most].swapaxes(1, 2)
    ones = np.ones(scaled.shape[:2])
    return basis.leave(Factors(scaled[..., :-1], key, ones, scaled[..., -1]))


def score_error(maps: ScoreMaps, factors: Factors, moments: InputMoments) -> float:
    """Return the root mean square error of scores, relative to that of the scores themselves.

    The mean of each row of scores is subtracted. The inputs have the given ``moments``: exact for
    one sequence, for several an approximation, as if each had the moments of all.
    """
    basis = _Basis.from_moments(moments)
    exact, close = basis.enter(maps), basis.enter(factors.as_maps())
    both = ScoreMaps(
        np.concatenate([exact.query, -close.query], axis=1),
        np.concatenate([exact.key, close.key], axis=1),
        np.concatenate([exact.bias, -close.bias], axis=1),
    )
    return float(np.sqrt(max(both.energy, 0) / exact.energy)) if exact.energy else 0.0


@dataclass(frozen=True)
class _Basis:
    """Coordinates in which the error of scores is a sum of squares."""

    mean: FloatArray
    query: tuple[FloatArray, FloatArray]
    key: tuple[FloatArray, FloatArray]

    @classmethod
    def from_moments(cls, moments: InputMoments) -> _Basis:
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


def fit_shared(
    maps: ScoreMaps,
    rank: int,
    *,
    seed: int = 0,
    restarts: int = 1,
    most_rounds: int = MOST_ROUNDS,
    tolerance: float = TOLERANCE,
) -> Factors:
    """Find factors of ``rank`` that heads share, the best of ``restarts`` starts.

    Every start takes the ``rank`` strongest singular dimensions of single heads, each mixed by its
    own head alone, and adds noise of ``seed`` to the mixing: from there least squares reach a lower
    error than from random factors, in fewer rounds. A start ends unconverged after ``most_rounds``.
    """
    rng = np.random.default_rng(seed)
    query, key, owners = _strongest(maps, rank)
    keys, in_key = key.T @ key, maps.key @ key
    bias = _solve(keys, maps.content @ key)
    fits: list[Factors] = []
    for _ in range(restarts):
        mixing = _NOISE * rng.standard_normal((len(maps.query), rank))
        mixing[owners, np.arange(len(owners))] += 1
        state, errors = _State(query, key, mixing, bias, keys, in_key), list[float]()
        converged = False
        while not converged and len(errors) < most_rounds:
            errors.append(_round(maps, state))
            converged = len(errors) > 1 and errors[-2] - errors[-1] <= tolerance * errors[-2]
        factors = state.query.T, state.key.T, state.mixing, state.bias
        fits.append(Factors(*factors, tuple(errors), converged))
    return min(fits, key=lambda fit: fit.errors[-1])


def head_singular(query: FloatArray, key: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Compute the singular value decomposition of every query_h' key_h, from two small ones.

    ``query`` (H, d, Q) and ``key`` (H, d, K) give (H, Q, d), (H, d) and (H, K, d).
    """
    q, in_q = np.linalg.qr(query.swapaxes(1, 2))
    k, in_k = np.linalg.qr(key.swapaxes(1, 2))
    left, strength, right = np.linalg.svd(in_q @ in_k.swapaxes(1, 2))
    return q @ left, strength, k @ right.swapaxes(1, 2)


@dataclass
class _State:
    query: FloatArray  # (D, R), as is key
    key: FloatArray
    mixing: FloatArray  # (H, R), as is bias
    bias: FloatArray
    keys: FloatArray  # (R, R): products of the dimensions of keys
    in_key: FloatArray  # (H, d, R): key dimensions in the maps


def _strongest(maps: ScoreMaps, rank: int) -> tuple[FloatArray, FloatArray, IndexArray]:
    """Return query and key (D, R) of the strongest singular dimensions, and their heads (R,)."""
    left, strength, right = head_singular(maps.query, maps.key)
    heads, dimensions = np.unravel_index(np.argsort(-strength, axis=None)[:rank], strength.shape)
    scale = np.sqrt(strength[heads, dimensions])
    return left[heads, :, dimensions].T * scale, right[heads, :, dimensions].T * scale, heads


def _round(maps: ScoreMaps, state: _State) -> float:
    """Make one least-squares step for each factor, in place; return the error after it."""
    mixed, keys, in_key = state.mixing.T @ state.mixing, state.keys, state.in_key
    state.query = _solve(mixed * keys, _along(maps.query, state.mixing, in_key))
    queries, in_query = state.query.T @ state.query, maps.query @ state.query
    state.mixing = _solve(queries * keys, (in_query * in_key).sum(axis=1))
    mixed = state.mixing.T @ state.mixing
    target = _along(maps.key, state.mixing, in_query) + maps.content.T @ state.bias
    state.key = _solve(queries * mixed + state.bias.T @ state.bias, target)
    keys, in_key = state.keys, state.in_key = state.key.T @ state.key, maps.key @ state.key
    without_query = maps.content @ state.key
    state.bias = _solve(keys, without_query)
    explained = 2 * float(((in_query * in_key).sum(axis=1) * state.mixing).sum())
    explained += float((without_query * state.bias).sum())  # of the best coefficients, once
    left = maps.total - explained + float((queries * mixed * keys).sum())
    return float(np.sqrt(max(left, 0) / maps.total)) if maps.total else 0.0


def _along(maps: FloatArray, mixing: FloatArray, other: FloatArray) -> FloatArray:
    """Return the tensor times two factors: (H, R), and one given in the maps as (H, d, R)."""
    mixed = other * mixing[:, None]
    # heads and their dimensions side by side: one large product instead of one for each head
    return np.asarray(maps.reshape(-1, maps.shape[2]).T @ mixed.reshape(-1, mixed.shape[2]))


def _solve(gram: FloatArray, target: FloatArray) -> FloatArray:
    """Solve X gram = target, for a Gram matrix (R, R) that may be almost singular."""
    # relative to the mean of the diagonal, so that it does not depend on the scale of the weights
    ridge = _RIDGE * (float(np.trace(gram)) / len(gram) or 1.0)
    return np.asarray(np.linalg.solve(gram + ridge * np.eye(len(gram)), target.T).T)
