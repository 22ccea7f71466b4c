"""Factors of scores: against tensorly, closed forms, and a layer worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
import tensorly
from numpy.testing import assert_allclose
from scipy.special import softmax
from tensorly.decomposition import parafac

from headroles.arrays import FloatArray
from headroles.models.options import FACTOR_METHODS, PER_HEAD
from headroles.models.shared.factorisation import (
    InputMoments,
    ScoreMaps,
    factorise,
    fit_shared,
    head_singular,
    score_error,
)

HEADS, SIZE, WIDTH = 4, 3, 12
DIGITS = 1e-6
"""Figures that were worked out by hand have six digits."""
NO_INPUTS = InputMoments.none(WIDTH)
NOTHING = 1e-10
"""Sums in double precision of numbers of up to 100 are off by about 1e-13."""


def make_maps(seed: int = 0, heads: int = HEADS, size: int = SIZE, width: int = WIDTH) -> ScoreMaps:
    rng = np.random.default_rng(seed)
    query, key = rng.normal(size=(2, heads, size, width))
    return ScoreMaps(query, key, rng.normal(size=(heads, size)))


def make_inputs(n: int = 400, width: int = WIDTH, seed: int = 1) -> FloatArray:
    """Inputs (n, width) of uneven covariance that are not centred."""
    rng = np.random.default_rng(seed)
    return np.asarray(rng.normal(size=(n, width)) @ rng.normal(size=(width, width)) + 1)


def moments_of(inputs: FloatArray) -> InputMoments:
    """Moments of inputs that are one long sequence."""
    covariance = np.cov(inputs.T, bias=True)
    return InputMoments(inputs.mean(axis=0), covariance, covariance)


def tensor_of(maps: ScoreMaps) -> FloatArray:
    """(query input, head, key input)."""
    return np.asarray(np.einsum("hcq,hck->qhk", maps.query, maps.key))


def centred(scores: FloatArray) -> FloatArray:
    return np.asarray(scores - scores.mean(axis=-1, keepdims=True))


class TestByHand:
    """Two heads of one dimension whose products are of rank 1."""

    MAPS = ScoreMaps(
        query=np.array([[[1.0, 0, 1]], [[2.0, 0, 2]]]),
        key=np.array([[[0.0, 1, 1]], [[0.0, 1, 1]]]),
        bias=np.array([[0.5], [-1.0]]),
    )
    INPUTS = np.array([[1.0, 0, 0], [0, 1, 0], [1, 1, 1]])

    @pytest.mark.parametrize("rank", [1, 2])
    def test_rank_one_is_enough(self, rank: int) -> None:
        factors = factorise(self.MAPS, InputMoments.none(3), rank)
        first, second = factors.as_maps().scores(self.INPUTS)
        assert_allclose(first, [[0, 1.5, 3], [0, 0.5, 1], [0, 2.5, 5]], atol=DIGITS)
        assert_allclose(second, [[0, 1, 2], [0, -1, -2], [0, 3, 6]], atol=DIGITS)
        rows = softmax(first, axis=1)
        assert_allclose(rows[0], [0.039113, 0.175290, 0.785597], atol=DIGITS)
        assert_allclose(rows[1], [0.186324, 0.307196, 0.506480], atol=DIGITS)
        assert_allclose(rows[2], [0.006188, 0.075389, 0.918423], atol=DIGITS)
        assert_allclose(softmax(second[0]), [0.090031, 0.244728, 0.665241], atol=DIGITS)

    def test_the_bias_of_the_keys_plays_no_part(self) -> None:
        with_key_bias = [[0.45, 1.95, 3.45], [0.15, 0.65, 1.15], [0.75, 3.25, 5.75]]
        ours = factorise(self.MAPS, InputMoments.none(3), 1).as_maps().scores(self.INPUTS)[0]
        assert_allclose(softmax(ours, axis=1), softmax(with_key_bias, axis=1), atol=DIGITS)


@pytest.mark.parametrize("method", FACTOR_METHODS)
class TestFullRank:
    @pytest.mark.parametrize("weighted", [False, True])
    def test_scores_are_the_same(self, method: str, weighted: bool) -> None:
        maps, inputs = make_maps(), make_inputs(20)
        moments = moments_of(make_inputs()) if weighted else NO_INPUTS
        factors = factorise(maps, moments, maps.full_rank, method)
        assert factors.rank == maps.full_rank
        assert_allclose(factors.as_maps().scores(inputs), maps.scores(inputs), atol=NOTHING)


@pytest.mark.parametrize("method", FACTOR_METHODS)
class TestError:
    def test_is_that_of_scores_of_the_inputs(self, method: str) -> None:
        """Written out over all pairs of tokens of one sequence."""
        maps, inputs = make_maps(), make_inputs(60)
        factors = factorise(maps, moments_of(inputs), 8, method)
        exact, close = (centred(one.scores(inputs)) for one in (maps, factors.as_maps()))
        expected = np.sqrt(((exact - close) ** 2).sum() / (exact**2).sum())
        assert 0.01 < expected < 0.9
        assert score_error(maps, factors, moments_of(inputs)) == pytest.approx(expected, rel=1e-6)

    def test_of_no_inputs_is_that_of_the_tensor(self, method: str) -> None:
        maps = ScoreMaps(make_maps().query, make_maps().key, np.zeros((HEADS, SIZE)))
        factors = factorise(maps, NO_INPUTS, 8, method)
        exact, close = tensor_of(maps), tensor_of(factors.as_maps())
        expected = np.linalg.norm(exact - close) / np.linalg.norm(exact)
        assert score_error(maps, factors, NO_INPUTS) == pytest.approx(expected, rel=1e-6)

    def test_on_inputs_is_less_if_these_are_what_counts(self, method: str) -> None:
        maps, moments = make_maps(), moments_of(make_inputs())
        weighted, plain = (factorise(maps, those, 8, method) for those in (moments, NO_INPUTS))
        assert score_error(maps, weighted, moments) < 0.9 * score_error(maps, plain, moments)
        assert score_error(maps, plain, NO_INPUTS) < score_error(maps, weighted, NO_INPUTS)


class TestShared:
    @pytest.mark.parametrize("rank", [2, 5, 8])
    def test_is_as_good_as_parafac(self, rank: int) -> None:
        """The decomposition of the whole tensor by tensorly, the best of its starts."""
        maps = make_maps(3)
        maps = ScoreMaps(maps.query, maps.key, np.zeros((HEADS, SIZE)))
        tensor = tensor_of(maps)
        theirs = []
        for seed in range(3):
            found = parafac(
                tensor, rank, n_iter_max=500, tol=1e-9, random_state=seed, init="random"
            )
            rest = tensor - tensorly.cp_to_tensor(found)
            theirs.append(np.linalg.norm(rest) / np.linalg.norm(tensor))
        fit = fit_shared(maps, rank, restarts=3, most_rounds=500, tolerance=1e-7)
        assert fit.errors[-1] <= min(theirs) + 0.005
        rest = tensor - np.einsum("rq,hr,rk->qhk", fit.query, fit.mixing, fit.key)
        assert fit.errors[-1] == pytest.approx(
            np.linalg.norm(rest) / np.linalg.norm(tensor), rel=1e-6
        )

    def test_error_is_that_of_both_terms(self) -> None:
        maps = make_maps(4)
        fit = fit_shared(maps, 6)
        close = np.einsum("rq,hr,rk->qhk", fit.query, fit.mixing, fit.key)
        content = np.einsum("hc,hck->hk", maps.bias, maps.key)
        left = ((tensor_of(maps) - close) ** 2).sum() + ((content - fit.bias @ fit.key) ** 2).sum()
        total = (tensor_of(maps) ** 2).sum() + (content**2).sum()
        assert fit.errors[-1] == pytest.approx(np.sqrt(left / total), rel=1e-6)

    def test_rounds_never_raise_the_error(self) -> None:
        maps = make_maps(6)
        errors = fit_shared(maps, 7, tolerance=0).errors
        assert len(errors) > 5
        assert np.diff(errors).max() < 1e-9

    def test_heads_of_no_weights_are_no_error(self) -> None:
        nothing = np.zeros((HEADS, SIZE, WIDTH))
        maps = ScoreMaps(nothing, nothing, np.zeros((HEADS, SIZE)))
        factors = factorise(maps, NO_INPUTS, 4)
        assert np.isfinite(factors.as_maps().scores(make_inputs(5))).all()
        assert score_error(maps, factors, NO_INPUTS) == 0


class TestPerHead:
    def test_error_is_that_of_the_singular_values_left_out(self) -> None:
        maps = make_maps(9)
        factors = factorise(maps, NO_INPUTS, 2 * HEADS, PER_HEAD)
        with_bias = np.concatenate([maps.query, maps.bias[:, :, None]], axis=2)
        strength = np.linalg.svd(with_bias.swapaxes(1, 2) @ maps.key, compute_uv=False)
        expected = np.sqrt((strength[:, 2:] ** 2).sum() / (strength**2).sum())
        assert score_error(maps, factors, NO_INPUTS) == pytest.approx(expected, rel=1e-6)


def test_singular_values_are_those_of_the_products() -> None:
    maps = make_maps(11)
    left, strength, right = head_singular(maps.query, maps.key)
    products = maps.query.swapaxes(1, 2) @ maps.key
    assert_allclose(left * strength[:, None] @ right.swapaxes(1, 2), products, atol=NOTHING)
    expected = np.linalg.svd(products, compute_uv=False)[:, :SIZE]
    assert_allclose(strength, expected, atol=NOTHING)
