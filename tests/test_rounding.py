"""The bound for rounding: beside sums in float32 of real numbers, in many orders."""

from __future__ import annotations

from math import fsum

import numpy as np
import pytest

from headroles.arrays import EPSILON, MODEL_TERMS, rounding_bound


@pytest.mark.parametrize("n", [2, 30, 1000, 20_000])
@pytest.mark.parametrize("centre", [0.0, 0.5])
def test_holds_for_sums_in_the_order_given(n: int, centre: float) -> None:
    """One running sum, the worst of all ways to add; numpy and BLAS keep several."""
    rng = np.random.default_rng(n)
    terms = (rng.uniform(-0.5, 0.5, (200, n)) + centre).astype(np.float32)
    found = np.add.accumulate(terms, axis=1, dtype=np.float32)[:, -1]
    exact = np.array([fsum(row) for row in terms.tolist()])
    bound = rounding_bound(np.abs(terms).sum(axis=1, dtype=np.float64), n)
    errors = np.abs(found - exact) / bound
    assert errors.max() <= 1
    assert errors.max() > 0.002  # not so wide that it says nothing


def test_is_that_of_a_matrix_product() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.random((50, 400), dtype=np.float32), rng.random((400, 50), dtype=np.float32)
    exact = one.astype(np.float64) @ other.astype(np.float64)
    assert (np.abs(one @ other - exact) <= rounding_bound(exact, 400)).all()


def test_grows_with_size_root_of_terms_and_spacing() -> None:
    assert rounding_bound(1.0, 1) == 3 * EPSILON
    np.testing.assert_allclose(
        rounding_bound([1, -0.0, 10], [[100], [400]]) / EPSILON, [[30, 0, 300], [60, 0, 600]]
    )
    half = np.finfo(np.float16).eps
    assert rounding_bound(1.0, 4, float(half)) == 6 * half


def test_attention_weights_are_off_by_hundred_thousandths() -> None:
    assert rounding_bound(1.0, MODEL_TERMS) == pytest.approx(1.14e-5, rel=0.01)


def test_missing_values_have_no_bound() -> None:
    assert np.isnan(rounding_bound([np.nan], 3)).all()
