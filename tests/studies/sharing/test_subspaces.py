"""Overlaps of projections, against scipy and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import subspace_angles
from scipy.stats import beta, kstest

from headroles.studies.sharing.redundancy import (
    captured_energy,
    dimensions_for,
    overlaps,
    random_overlaps,
    random_sums,
    sum_singular,
)

RNG = np.random.default_rng(0)


def test_energy_by_hand() -> None:
    first, second = np.diag([1.0, 1, 0]), np.diag([2.0, 0.5, 0])
    for product, expected in (
        (first, [0.5, 1, 1]),
        (second, [0.941176, 1, 1]),
        (first + second, [0.8, 1, 1]),
    ):
        strength = np.linalg.svd(product, compute_uv=False)
        assert_allclose(captured_energy(strength), expected, atol=1e-6)


def test_the_sum_of_two_heads_by_hand() -> None:
    query = np.array([[[1.0, 0, 0], [0, 1, 0]], [[2.0, 0, 0], [0, 0.5, 0]]])
    key = np.array([[[1.0, 0, 0], [0, 1, 0]]] * 2)
    strength = sum_singular(query, key)
    assert_allclose(strength, [3, 1.5, 0], atol=1e-12)
    assert_allclose(captured_energy(strength), [0.8, 1, 1])
    assert [int(dimensions_for(strength, share)) for share in (0.8, 0.81, 0.99)] == [1, 2, 2]


def test_the_sum_is_that_of_the_products() -> None:
    query, key = RNG.normal(size=(2, 3, 2, 7))
    products = sum(one.T @ other for one, other in zip(query, key, strict=True))
    assert_allclose(sum_singular(query, key), np.linalg.svd(products, compute_uv=False), atol=1e-12)


def test_overlaps_are_mean_squared_cosines_of_principal_angles() -> None:
    maps = RNG.normal(size=(4, 3, 9))
    found = overlaps(maps)
    for one in range(4):
        for other in range(4):
            angles = subspace_angles(maps[one].T, maps[other].T)
            assert found[one, other] == pytest.approx(np.mean(np.cos(angles) ** 2))


def test_random_overlaps_of_lines_follow_their_law() -> None:
    """The squared cosine of two random lines is Beta(1/2, (width - 1) / 2)."""
    drawn = random_overlaps(1, 6, 2000, np.random.default_rng(1))
    assert kstest(drawn, beta(0.5, 2.5).cdf).pvalue > 0.01


def test_random_sums_keep_the_energy_on_average() -> None:
    strength = np.abs(RNG.normal(size=(3, 2)))
    drawn = np.array(random_sums(strength, 10, 400, np.random.default_rng(5)))
    energy = (drawn**2).sum(axis=1)
    assert energy.mean() == pytest.approx((strength**2).sum(), rel=0.05)
