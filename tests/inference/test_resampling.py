"""Sign flips against scipy, against every flip gone through by hand, and in their error rates."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from headroles.errors import StatisticsError
from headroles.inference import (
    Sample,
    adjust_p_values,
    sign_flip_test,
    simultaneous_intervals,
    step_down_max_t,
)
from headroles.inference import resampling as module
from tests.inference.conftest import one_sample_t, plain_robust_t

Array = NDArray[np.float64]
ALTERNATIVES = ("greater", "less", "two-sided")
FOLD: dict[str, Callable[[Array], Array]] = {
    "greater": np.positive,
    "less": np.negative,
    "two-sided": np.abs,
}


def every_flip(values: Array, threshold: float, clusters: list[int] | None) -> Array:
    """t (flips, tests) for every choice of signs; the first changes nothing."""
    labels = np.arange(len(values)) if clusters is None else np.asarray(clusters)
    found = []
    for signs in product([1, -1], repeat=labels.max() + 1):
        flipped = (values - threshold) * np.array(signs)[labels][:, None]
        t = one_sample_t(flipped, 0) if clusters is None else plain_robust_t(flipped, 0, clusters)
        found.append(t.statistic)
    return np.array(found)


def step_down_by_definition(t: Array) -> Array:
    """Adjusted p-values from t (flips, tests), one test after the other."""
    order = np.argsort(-t[0])
    adjusted, so_far = np.empty(t.shape[1]), 0.0
    for place, test in enumerate(order):
        largest = t[:, order[place:]].max(axis=1)
        so_far = max(so_far, float((largest >= t[0, test] - 1e-9).mean()))
        adjusted[test] = so_far
    return adjusted


@pytest.fixture
def small() -> Array:
    """9 examples x 6 tests, correlated, with effects of both signs."""
    rng = np.random.default_rng(11)
    return rng.normal(size=(9, 6)) + rng.normal(size=(9, 1)) + [3, 2, 1, 0.5, 0, -1]


class TestOneTest:
    @pytest.mark.parametrize("alternative", ALTERNATIVES)
    def test_exact_equals_scipy(self, small: Array, alternative: str) -> None:
        expected = stats.permutation_test(
            (small - 0.5,),
            lambda x, axis: stats.ttest_1samp(x, 0, axis=axis).statistic,
            permutation_type="samples",
            vectorized=True,
            n_resamples=np.inf,
            alternative=alternative,
        )
        p = sign_flip_test(small, 0.5, seed=0, alternative=alternative)
        np.testing.assert_allclose(p, expected.pvalue, atol=1e-12)

    @pytest.mark.parametrize("alternative", ALTERNATIVES)
    @pytest.mark.parametrize(
        "clusters", [None, [0, 0, 1, 1, 2, 2, 3, 4, 5], [0, 1, 2, 0, 1, 2, 0, 1, 2]]
    )
    def test_exact_equals_every_flip_by_hand(
        self, small: Array, alternative: str, clusters: list[int] | None
    ) -> None:
        t = FOLD[alternative](every_flip(small, 0.3, clusters))
        p = sign_flip_test(Sample.of(small, clusters), 0.3, seed=0, alternative=alternative)
        np.testing.assert_allclose(p, (t >= t[0] - 1e-9).mean(axis=0), atol=1e-12)

    def test_random_flips_come_near_the_exact_p(self, small: Array) -> None:
        exact = sign_flip_test(small, 0, n_resamples=512, seed=0)
        p = sign_flip_test(small, 0, n_resamples=511, seed=0)
        assert (p != exact).any()
        np.testing.assert_allclose(p, exact, atol=4 * np.sqrt(0.25 / 511))

    def test_p_is_never_zero(self) -> None:
        data = np.random.default_rng(0).normal(9, 1, size=(50, 1))
        assert sign_flip_test(data, 0, n_resamples=99, seed=0)[0] == 0.01

    def test_near_the_t_test_for_many_examples(self) -> None:
        data = np.random.default_rng(0).normal(0.1, 1, size=(300, 20))
        p, expected = sign_flip_test(data, 0, seed=0), one_sample_t(data, 0).p_value
        np.testing.assert_allclose(p, expected, atol=0.02)

    @pytest.mark.parametrize("uneven", [False, True])
    def test_statistic_is_that_of_the_t_test(
        self, gappy: Array, clusters: NDArray[np.str_], uneven: bool
    ) -> None:
        clusters = clusters if uneven else None
        expected = one_sample_t(gappy, 3, clusters=clusters)
        tests = module._prepare(Sample.of(gappy, clusters), 3, 9, 0, "greater")[0]
        t = module.t_of(tests.observed(), tests.n_clusters_of)
        if uneven:
            complete = ~np.isnan(gappy).any(axis=0)
            expected = plain_robust_t(gappy[:, complete], 3, clusters)
            t = t[complete]
        np.testing.assert_allclose(t, expected.statistic, rtol=1e-10)


class TestStepDown:
    @pytest.mark.parametrize("alternative", ALTERNATIVES)
    @pytest.mark.parametrize("clusters", [None, [0, 0, 1, 1, 2, 2, 3, 4, 5]])
    def test_exact_equals_the_definition(
        self, small: Array, alternative: str, clusters: list[int] | None
    ) -> None:
        p = step_down_max_t(Sample.of(small, clusters), 0.3, seed=0, alternative=alternative)
        t = FOLD[alternative](every_flip(small, 0.3, clusters))
        np.testing.assert_allclose(p, step_down_by_definition(t), atol=1e-12)

    def test_exact_equals_the_definition_with_gaps(self, small: Array) -> None:
        small[2:4, 1:3] = np.nan
        p = step_down_max_t(small, 0.3, seed=0)
        expected = step_down_by_definition(every_flip(small, 0.3, None))
        np.testing.assert_allclose(p, expected, atol=1e-12)

    def test_one_column_is_the_plain_test(self, gappy: Array) -> None:
        one = gappy[:, :1]
        assert step_down_max_t(one, 3, seed=1) == sign_flip_test(one, 3, seed=1)

    def test_copies_of_a_column_cost_nothing(self, gappy: Array) -> None:
        copies = np.repeat(gappy[:, :1], 30, axis=1)
        alone = sign_flip_test(gappy[:, :1], 3, seed=1)[0]
        assert (step_down_max_t(copies, 3, seed=1) == alone).all()

    @pytest.mark.parametrize("uneven", [False, True])
    def test_monotone_and_no_smaller_than_unadjusted(
        self, gappy: Array, clusters: NDArray[np.str_], uneven: bool
    ) -> None:
        clusters = clusters if uneven else None
        sample = Sample.of(gappy, clusters)
        adjusted = step_down_max_t(sample, 3, seed=2)
        strongest_first = np.argsort(-one_sample_t(sample, 3).statistic)
        assert (np.diff(adjusted[strongest_first]) >= 0).all()
        assert (adjusted >= sign_flip_test(sample, 3, seed=2)).all()

    def test_family_wise_error_under_a_correlated_null(self) -> None:
        rng = np.random.default_rng(8)
        tables = rng.normal(size=(400, 12, 10)) + 2 * rng.normal(size=(400, 12, 1))
        smallest = [step_down_max_t(x, 0, n_resamples=199, seed=rng).min() for x in tables]
        rate = np.mean(np.array(smallest) <= 0.05)
        assert rate == pytest.approx(0.05, abs=3 * np.sqrt(0.05 * 0.95 / 400))

    def test_family_wise_error_with_uneven_clusters(self) -> None:
        rng = np.random.default_rng(9)
        clusters = np.repeat(np.arange(10), [1, 1, 2, 2, 3, 3, 4, 4, 5, 5])
        wrong = 0
        for _ in range(400):
            x = rng.normal(size=(10, 6))[clusters] + rng.normal(size=(30, 6))
            p = step_down_max_t(Sample.of(x, clusters), 0, n_resamples=199, seed=rng)
            wrong += p.min() <= 0.05
        assert wrong / 400 == pytest.approx(0.05, abs=3 * np.sqrt(0.05 * 0.95 / 400))

    def test_more_powerful_than_holm_under_correlation(self) -> None:
        rng = np.random.default_rng(10)
        data = rng.normal(size=(30, 1)) + 0.2 * rng.normal(size=(30, 60))
        data += np.linspace(-0.2, 0.8, 60)
        found = (step_down_max_t(data, 0, n_resamples=2_000, seed=0) <= 0.05).sum()
        raw = sign_flip_test(data, 0, n_resamples=2_000, seed=0)
        by_holm = (adjust_p_values(raw, "holm") <= 0.05).sum()
        assert found > by_holm
        assert found > (adjust_p_values(one_sample_t(data, 0).p_value, "holm") <= 0.05).sum()


class TestSimultaneousIntervals:
    def test_critical_value_from_every_flip(self, small: Array) -> None:
        result = simultaneous_intervals(small, confidence=0.9, seed=0)
        t = np.abs(every_flip(small - small.mean(axis=0), 0, None)).max(axis=1)
        critical = np.sort(t)[int(np.ceil(0.9 * 512)) - 1]
        reach = critical * one_sample_t(small, 0).standard_error
        np.testing.assert_allclose(result.ci_low, small.mean(axis=0) - reach)
        np.testing.assert_allclose(result.ci_high, small.mean(axis=0) + reach)

    def test_wider_than_each_alone(self, gappy: Array, clusters: NDArray[np.str_]) -> None:
        together = simultaneous_intervals(Sample.of(gappy, clusters), seed=0)
        alone = one_sample_t(gappy, 0, clusters=clusters)
        assert (together.ci_low < alone.mean).all()
        complete = ~np.isnan(gappy).any(axis=0)
        error = plain_robust_t(gappy[:, complete], 0, clusters).standard_error
        factor = (together.ci_high - alone.mean)[complete] / error
        np.testing.assert_allclose(factor, factor[0])
        assert factor[0] > stats.t.ppf(0.975, 1000)

    def test_coverage_of_all_means_at_once(self) -> None:
        rng = np.random.default_rng(12)
        held = 0
        for _ in range(300):
            x = rng.normal(size=(60, 8)) + rng.normal(size=(60, 1))
            result = simultaneous_intervals(x, n_resamples=299, seed=rng)
            held += ((result.ci_low <= 0) & (result.ci_high >= 0)).all()
        assert held / 300 == pytest.approx(0.95, abs=3 * np.sqrt(0.05 * 0.95 / 300))

    def test_too_few_flips(self, gappy: Array) -> None:
        with pytest.raises(StatisticsError, match="use at least 19"):
            simultaneous_intervals(gappy, confidence=0.95, n_resamples=18, seed=0)


@pytest.mark.parametrize("function", [sign_flip_test, step_down_max_t])
class TestEveryTest:
    def test_nothing_to_test(self, function: Callable[..., Array], hopeless: Array) -> None:
        p = function(hopeless, 3, seed=0)
        assert np.isnan(p[:3]).all()
        np.testing.assert_array_equal(p[3:], function(hopeless[:, 3:], 3, seed=0))
        assert np.isnan(function(hopeless[:, :3], 3, seed=0)).all()
        assert np.isnan(function(np.zeros((0, 2)), 3, seed=0)).all()
        assert function(np.zeros((5, 0)), 3, seed=0).shape == (0,)

    def test_missing_values_are_left_out(self, function: Callable[..., Array]) -> None:
        data = np.random.default_rng(0).normal(0.3, 1, size=(10, 1))
        padded = np.vstack([data, np.full((2, 1), np.nan)])
        np.testing.assert_allclose(function(padded, 0, seed=0), function(data, 0, seed=0))

    def test_seed(self, function: Callable[..., Array], gappy: Array) -> None:
        first, again, other = (function(gappy, 3, n_resamples=500, seed=s) for s in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        assert (first != other).any()
        generator = np.random.default_rng(1)
        np.testing.assert_array_equal(function(gappy, 3, n_resamples=500, seed=generator), first)
        assert (function(gappy, 3, n_resamples=500, seed=generator) != first).any()

    def test_mirror(self, function: Callable[..., Array], gappy: Array) -> None:
        less = function(gappy, 3, seed=0, alternative="less")
        np.testing.assert_array_equal(less, function(-gappy, -3, seed=0))

    def test_bad_input(self, function: Callable[..., Array]) -> None:
        with pytest.raises(StatisticsError, match="give at least 1"):
            function([[1.0], [2.0]], 0, n_resamples=0, seed=0)


@given(st.permutations(range(6)), st.booleans())
@settings(max_examples=25, deadline=None)
def test_columns_in_another_order(order: list[int], clustered: bool) -> None:
    data = np.round(np.random.default_rng(0).normal(0.5, 1, size=(8, 6)), 1)
    data[:2, 3] = np.nan
    clusters = [0, 0, 1, 2, 3, 4, 5, 6] if clustered else None
    for function in (sign_flip_test, step_down_max_t):
        whole = function(Sample.of(data, clusters), 0, seed=0)
        moved = function(Sample.of(data[:, order], clusters), 0, seed=0)
        np.testing.assert_array_equal(moved, whole[order])
