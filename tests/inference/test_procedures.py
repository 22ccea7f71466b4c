"""Properties of every test: thresholds, columns that do not matter to others, bad input."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from headroles.errors import StatisticsError
from headroles.inference import (
    Intervals,
    bca_interval,
    bootstrap_t_interval,
    bootstrap_t_test,
    rank_test,
    sign_flip_test,
    simultaneous_intervals,
    step_down_max_t,
    t_interval,
    t_test,
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
    for threshold in ([3.0], np.full(8, 3), np.float32(3)):
        np.testing.assert_array_equal(procedure(gappy, threshold), procedure(gappy, 3))


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


@settings(max_examples=25, deadline=None)
@given(order=st.permutations(range(8)))
@pytest.mark.parametrize("name", PROCEDURES)
def test_columns_do_not_see_each_other(name: str, order: list[int]) -> None:
    data = np.random.default_rng(0).normal(3, 1, size=(40, 8))
    data[:3, 2:5], data[:, 7] = np.nan, 1
    data[:, 1] = np.round(data[:, 1], 1)
    whole, moved = (PROCEDURES[name](table, 3) for table in (data, data[:, order]))
    np.testing.assert_allclose(moved, whole[order], rtol=1e-12)


@pytest.mark.parametrize(
    "procedure",
    [
        t_test,
        rank_test,
        wilcoxon_signed_rank,
        partial(sign_flip_test, seed=0),
        partial(step_down_max_t, seed=0),
        partial(bootstrap_t_test, seed=0),
    ],
)
def test_unknown_alternative(procedure: Callable[..., object]) -> None:
    with pytest.raises(StatisticsError, match="unknown alternative 'more'"):
        procedure([[1.0], [2.0]], 0, alternative="more")


@pytest.mark.parametrize(
    "interval",
    [
        t_interval,
        partial(bootstrap_t_interval, n_resamples=400, seed=0),
        partial(bca_interval, n_resamples=400, seed=0),
        partial(simultaneous_intervals, seed=0),
    ],
)
def test_intervals_of_columns_without_values_or_variance(
    interval: Callable[[Array], Intervals], hopeless: Array
) -> None:
    found = interval(hopeless)
    assert np.isnan(found.ci_low[:2]).all()
    assert found.ci_low[2] == found.ci_high[2] == 4
    assert found.ci_low[3] < hopeless[:, 3].mean() < found.ci_high[3]


@pytest.mark.parametrize(
    "procedure", [PROCEDURES[name] for name in ("t", "wilcoxon", "sign flips", "bootstrap")]
)
def test_columns_without_values_or_variance_have_no_p_value(
    procedure: Procedure, hopeless: Array
) -> None:
    p = procedure(hopeless, 3)
    assert np.isnan(p[:3]).all()
    np.testing.assert_allclose(p[3:], procedure(hopeless[:, 3:], 3))
    assert 0 < p[3] < 0.2
