"""CP decomposition of the tensor of all heads' products by alternating least squares.

The tensor T (query input, head, key input) = sum_c query[h, c] x key[h, c] has D * H * D entries
and is never built: least squares need only products of its maps with the factors, and Gram matrices
(R, R). One round takes five products of (H * d, D) with (D, R).

The scores have a term without a query, bias_h' key_h (H, D). It is fitted together with the rest,
by separate coefficients in the shared key dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from headroles.arrays import FloatArray, IndexArray
from headroles.models.shared.score_maps import Factors, ScoreMaps

MOST_ROUNDS = 200
TOLERANCE = 3e-4
"""Share of the error by which a round must lower it for rounds to continue."""
_NOISE = 0.1
_RIDGE = 1e-10


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
    own head alone, and adds noise to the mixing: from there least squares reach a lower error than
    from random factors, in fewer rounds.

    Args:
        maps: the scores, of H heads.
        rank: R, at least 1.
        seed: of the noise.
        restarts: number of starts.
        most_rounds: number of rounds after which a start ends unconverged.
        tolerance: see ``TOLERANCE``.
    """
    problem = _Problem(maps.query, maps.key, maps.bias)
    rng = np.random.default_rng(seed)
    strongest = _strongest(problem, rank)
    fits = (
        _descend(problem, _start(problem, strongest, rank, rng), most_rounds, tolerance)
        for _ in range(restarts)
    )
    return min(fits, key=lambda fit: fit.errors[-1])


def head_singular(query: FloatArray, key: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Compute the singular value decomposition of every query_h' key_h, from two small ones.

    ``query`` (H, d, Q) and ``key`` (H, d, K) give (H, Q, d), (H, d) and (H, K, d).
    """
    q, in_q = np.linalg.qr(query.swapaxes(1, 2))
    k, in_k = np.linalg.qr(key.swapaxes(1, 2))
    left, strength, right = np.linalg.svd(in_q @ in_k.swapaxes(1, 2))
    return q @ left, strength, k @ right.swapaxes(1, 2)


@dataclass(frozen=True)
class _Problem(ScoreMaps):
    """Maps of all heads, with quantities that stay constant in all rounds."""

    @cached_property
    def content(self) -> FloatArray:
        """Part of the scores (H, D) that does not depend on the query."""
        return np.asarray(np.einsum("hc,hcd->hd", self.bias, self.key))

    @cached_property
    def total(self) -> float:
        """Sum of squares of all scores' maps."""
        grams = (self.query @ self.query.swapaxes(1, 2)) * (self.key @ self.key.swapaxes(1, 2))
        return float(grams.sum() + (self.content**2).sum())

    def along(self, maps: FloatArray, mixing: FloatArray, other: FloatArray) -> FloatArray:
        """Return the tensor times two of its factors (D, R); ``other`` (H, d, R) is given in the
        maps.
        """
        mixed = other * mixing[:, None]
        # heads and their dimensions side by side: one large product instead of one for each head
        flat = maps.reshape(-1, maps.shape[2]).T @ mixed.reshape(-1, mixed.shape[2])
        return np.asarray(flat)


@dataclass
class _State:
    query: FloatArray  # (D, R), as is key
    key: FloatArray
    mixing: FloatArray  # (H, R), as is bias
    bias: FloatArray
    keys: FloatArray  # (R, R): products of the dimensions of keys
    in_key: FloatArray  # (H, d, R): key dimensions in the maps


def _strongest(problem: _Problem, rank: int) -> tuple[FloatArray, FloatArray, IndexArray]:
    """Return query and key (D, R) of the strongest singular dimensions, and their heads (R,)."""
    left, strength, right = head_singular(problem.query, problem.key)
    heads, places = np.unravel_index(np.argsort(-strength, axis=None)[:rank], strength.shape)
    scale = np.sqrt(strength[heads, places])
    return left[heads, :, places].T * scale, right[heads, :, places].T * scale, heads


def _start(
    problem: _Problem,
    strongest: tuple[FloatArray, FloatArray, IndexArray],
    rank: int,
    rng: np.random.Generator,
) -> _State:
    query, key, owners = strongest
    n_heads = len(problem.query)
    mixing = _NOISE * rng.standard_normal((n_heads, rank))
    mixing[owners, np.arange(len(owners))] += 1
    keys = key.T @ key
    bias = _solve(keys, problem.content @ key)
    return _State(query.copy(), key.copy(), mixing, bias, keys, problem.key @ key)


def _descend(problem: _Problem, state: _State, most_rounds: int, tolerance: float) -> Factors:
    errors: list[float] = []
    converged = False
    while not converged and len(errors) < most_rounds:
        errors.append(_round(problem, state))
        converged = len(errors) > 1 and errors[-2] - errors[-1] <= tolerance * errors[-2]
    return Factors(state.query.T, state.key.T, state.mixing, state.bias, tuple(errors), converged)


def _round(problem: _Problem, state: _State) -> float:
    """Make one least-squares step for each factor, in place; return the error after it."""
    mixed, keys, in_key = state.mixing.T @ state.mixing, state.keys, state.in_key
    state.query = _solve(mixed * keys, problem.along(problem.query, state.mixing, in_key))
    queries, in_query = state.query.T @ state.query, problem.query @ state.query
    state.mixing = _solve(queries * keys, (in_query * in_key).sum(axis=1))
    mixed = state.mixing.T @ state.mixing
    target = problem.along(problem.key, state.mixing, in_query) + problem.content.T @ state.bias
    state.key = _solve(queries * mixed + state.bias.T @ state.bias, target)
    keys, in_key = state.keys, state.in_key = state.key.T @ state.key, problem.key @ state.key
    without_query = problem.content @ state.key
    state.bias = _solve(keys, without_query)
    explained = 2 * float(((in_query * in_key).sum(axis=1) * state.mixing).sum())
    explained += float((without_query * state.bias).sum())  # of the best coefficients, once
    left = problem.total - explained + float((queries * mixed * keys).sum())
    return float(np.sqrt(max(left, 0) / problem.total)) if problem.total else 0.0


def _solve(gram: FloatArray, target: FloatArray) -> FloatArray:
    """Solve X gram = target, for a Gram matrix (R, R) that may be almost singular."""
    # relative to the mean of the diagonal, so that it does not depend on the scale of the weights
    ridge = _RIDGE * (float(np.trace(gram)) / len(gram) or 1.0)
    return np.asarray(np.linalg.solve(gram + ridge * np.eye(len(gram)), target.T).T)
