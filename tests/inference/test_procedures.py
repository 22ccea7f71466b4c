"""Properties of every test: thresholds, columns that do not matter to others, bad input."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from headroles.errors import StatisticsError
from headroles.inference import rank_test, t_test
from tests.inference.conftest import one_sample_t, required_examples

Array = NDArray[np.float64]
Procedure = Callable[[ArrayLike, ArrayLike], Array]
PROCEDURES: dict[str, Procedure] = {
    "t": lambda values, limit: one_sample_t(values, limit).p_value,
    "t of clusters": lambda values, limit: one_sample_t(values, limit, clusters=PAIRS).p_value,
    "effect size": lambda values, limit: one_sample_t(values, limit).effect_size,
    "planning": lambda values, limit: required_examples(values, limit, 0.05),
}
PAIRS = np.arange(40) // 2
LIMITS = np.array([3, 2.5, 0, -1, 3.5, 2, 3, 0.5])


EVERY = pytest.mark.parametrize("procedure", PROCEDURES.values())


@pytest.mark.parametrize("name", PROCEDURES)
def test_each_column_has_its_own(name: str, gappy: Array) -> None:
    procedure = PROCEDURES[name]
    alone = [procedure(gappy[:, k : k + 1], LIMITS[k])[0] for k in range(8)]
    np.testing.assert_allclose(procedure(gappy, LIMITS), alone, rtol=1e-12)


@EVERY
def test_a_threshold_is_a_shift(procedure: Procedure, gappy: Array) -> None:
    np.testing.assert_allclose(procedure(gappy - LIMITS, 0), procedure(gappy, LIMITS), rtol=1e-9)


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


@pytest.mark.parametrize("procedure", [t_test, rank_test])
def test_unknown_alternative(procedure: Callable[..., object]) -> None:
    with pytest.raises(StatisticsError, match="unknown alternative 'more'"):
        procedure([[1.0], [2.0]], 0, alternative="more")
