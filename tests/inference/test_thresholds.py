"""Every test takes one threshold for all columns, or one for each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from headroles.errors import StatisticsError
from headroles.inference import (
    bootstrap_t_test,
    sign_flip_test,
    step_down_max_t,
    wilcoxon_signed_rank,
)
from tests.inference.conftest import one_sample_t, required_examples

Array = NDArray[np.float64]
Procedure = Callable[[ArrayLike, ArrayLike], Array]
PROCEDURES: dict[str, Procedure] = {
    "t": lambda values, limit: one_sample_t(values, limit).p_value,
    "t of clusters": lambda values, limit: one_sample_t(values, limit, clusters=PAIRS).p_value,
    "effect size": lambda values, limit: one_sample_t(values, limit).effect_size,
    "wilcoxon": lambda values, limit: wilcoxon_signed_rank(values, limit).p_value,
    "sign flips": lambda values, limit: sign_flip_test(values, limit, n_resamples=99, seed=1),
    "bootstrap": lambda values, limit: bootstrap_t_test(values, limit, n_resamples=99, seed=1),
    "planning": lambda values, limit: required_examples(values, limit, 0.05),
}
PAIRS = np.arange(40) // 2
LIMITS = np.array([3, 2.5, 0, -1, 3.5, 2, 3, 0.5])


def max_t(values: ArrayLike, limit: ArrayLike) -> Array:
    return step_down_max_t(values, limit, n_resamples=99, seed=1)


EVERY = pytest.mark.parametrize("procedure", [*PROCEDURES.values(), max_t])


@pytest.mark.parametrize("name", PROCEDURES)
def test_each_column_has_its_own(name: str, gappy: Array) -> None:
    procedure = PROCEDURES[name]
    alone = [procedure(gappy[:, k : k + 1], LIMITS[k])[0] for k in range(8)]
    np.testing.assert_allclose(procedure(gappy, LIMITS), alone, rtol=1e-12)


@EVERY
def test_a_threshold_is_a_shift(procedure: Procedure, gappy: Array) -> None:
    np.testing.assert_allclose(procedure(gappy - LIMITS, 0), procedure(gappy, LIMITS), rtol=1e-9)


@EVERY
def test_one_number_is_the_same_for_all(procedure: Procedure, gappy: Array) -> None:
    for given in ([3.0], np.full(8, 3), np.float32(3)):
        np.testing.assert_array_equal(procedure(gappy, given), procedure(gappy, 3))


@EVERY
@pytest.mark.parametrize(
    ("threshold", "message"),
    [
        ([3, 3], r"shape \(2,\); give one number, or one for each of the 8 tests"),
        (np.full((1, 8), 3), r"shape \(1, 8\)"),
        ([3] * 7 + [np.nan], "missing"),
        (np.inf, "infinite"),
        ("much", "'much'; give numbers"),
    ],
)
def test_bad_thresholds(
    procedure: Procedure, gappy: Array, threshold: ArrayLike, message: str
) -> None:
    with pytest.raises(StatisticsError, match=message):
        procedure(gappy, threshold)


def test_no_tests_at_all() -> None:
    for procedure in (*PROCEDURES.values(), max_t):
        assert procedure(np.zeros((40, 0)), []).shape == (0,)
