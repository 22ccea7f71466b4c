"""Paired tests against scipy and statsmodels."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.weightstats import ttost_paired

from headroles.errors import StatisticsError
from headroles.inference import (
    DEGENERATE,
    OK,
    UNTESTABLE,
    equivalence_t,
    one_sample_t,
    paired_t,
)

Array = NDArray[np.float64]


@pytest.fixture
def after(gappy: Array) -> Array:
    """The same tests once more, a little higher, with a gap of its own."""
    changed = gappy + np.random.default_rng(1).normal(0.1, 0.5, size=gappy.shape)
    changed[20:22, 0] = np.nan
    return changed


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_equals_scipy(gappy: Array, after: Array, alternative: str) -> None:
    result = paired_t(gappy, after, alternative=alternative)
    expected = stats.ttest_rel(after, gappy, nan_policy="omit", alternative=alternative)
    np.testing.assert_allclose(result.statistic, expected.statistic, rtol=1e-10)
    np.testing.assert_allclose(result.p_value, expected.pvalue, rtol=1e-10)
    assert result.n[0] == 38


def test_clusters(gappy: Array, after: Array, clusters: NDArray[np.str_]) -> None:
    result = paired_t(gappy, after, groups=clusters)
    expected = one_sample_t(after - gappy, 0, groups=clusters, alternative="two-sided")
    for field in fields(result):
        np.testing.assert_array_equal(getattr(result, field.name), getattr(expected, field.name))


def test_the_same_change_everywhere_but_for_rounding() -> None:
    before = np.random.default_rng(0).uniform(2, 4, size=(20, 2)).astype(np.float32)
    shift = np.array([0, 0.01], dtype=np.float32)
    result = paired_t(before, before + shift)
    assert result.status.tolist() == [DEGENERATE, DEGENERATE]
    assert result.mean == pytest.approx(shift, rel=1e-3)
    assert np.isnan(result.p_value).all()


def test_pairs_that_are_missing() -> None:
    result = paired_t([[1.0], [np.nan], [2.0]], [[np.nan], [1.0], [3.0]])
    assert result.status.tolist() == [UNTESTABLE]
    assert result.n.tolist() == [1]


class TestEquivalence:
    def test_equals_statsmodels(self, gappy: Array, after: Array) -> None:
        result = equivalence_t(gappy, after, margin=0.3)
        for test in range(gappy.shape[1]):
            there = ~np.isnan(after[:, test])
            p, above, below = ttost_paired(after[there, test], gappy[there, test], -0.3, 0.3)
            assert result.p_value[test] == pytest.approx(p)
            assert (result.p_above[test], result.p_below[test]) == pytest.approx(
                (above[1], below[1])
            )

    @pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
    def test_interval_inside_the_margin_says_the_same(
        self, gappy: Array, after: Array, alpha: float, clusters: NDArray[np.str_]
    ) -> None:
        result = equivalence_t(gappy, after, 0.3, alpha=alpha, groups=clusters)
        inside = (result.ci_low > -0.3) & (result.ci_high < 0.3)
        assert inside.tolist() == (result.p_value < alpha).tolist()

    def test_nothing_to_test(self, hopeless: Array) -> None:
        result = equivalence_t(np.zeros_like(hopeless), hopeless, 9)
        assert result.status.tolist() == [UNTESTABLE, UNTESTABLE, DEGENERATE, OK]
        assert np.isnan(result.p_value[:3]).all()
        assert result.p_value[3] < 0.05

    @pytest.mark.parametrize(("margin", "alpha"), [(0, 0.05), (-1, 0.05), (1, 0.5), (np.nan, 0.1)])
    def test_bad_options(self, margin: float, alpha: float) -> None:
        with pytest.raises(StatisticsError, match=r"margin|alpha"):
            equivalence_t([[1.0], [2.0]], [[1.0], [3.0]], margin, alpha)


def test_other_shape() -> None:
    with pytest.raises(StatisticsError, match=r"shape \(2, 1\) but values after \(1, 1\)"):
        paired_t([[1.0], [2.0]], [[1.0]])
