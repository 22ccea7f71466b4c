"""Adjusted p-values against worked examples, scipy and the definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from headroles.errors import StatisticsError
from headroles.inference import CORRECTIONS, adjust_p_values

P = np.array([0.011, 0.02, 0.03, 0.04, 0.2])


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("fdr_bh", [0.05, 0.05, 0.05, 0.05, 0.2]),
        ("holm", [0.055, 0.08, 0.09, 0.09, 0.2]),
        ("bonferroni", [0.055, 0.1, 0.15, 0.2, 1.0]),
        ("hochberg", [0.055, 0.08, 0.08, 0.08, 0.2]),
        ("none", P),
    ],
)
def test_worked_examples(method: str, expected: list[float]) -> None:
    np.testing.assert_allclose(adjust_p_values(P, method), expected, atol=1e-12)


@pytest.mark.parametrize(("method", "name"), [("fdr_bh", "bh"), ("fdr_by", "by")])
def test_false_discovery_rates_equal_scipy(method: str, name: str) -> None:
    p = np.random.default_rng(0).beta(0.5, 2, size=300)
    expected = stats.false_discovery_control(p, method=name)
    np.testing.assert_allclose(adjust_p_values(p, method), expected)


@pytest.mark.parametrize("method", CORRECTIONS)
class TestMissing:
    def test_missing_values_do_not_count(self, method: str) -> None:
        gaps = np.array([0.011, np.nan, 0.02, 0.03, np.nan, 0.04, 0.2])
        adjusted = adjust_p_values(gaps, method)
        assert np.isnan(adjusted[[1, 4]]).all()
        np.testing.assert_allclose(adjusted[~np.isnan(gaps)], adjust_p_values(P, method))

    def test_nothing_to_adjust(self, method: str) -> None:
        assert np.isnan(adjust_p_values([np.nan, np.nan], method)).all()
        assert adjust_p_values([], method).shape == (0,)

    def test_order_does_not_matter(self, method: str) -> None:
        order = np.array([3, 0, 4, 1, 2])
        np.testing.assert_allclose(
            adjust_p_values(P[order], method), adjust_p_values(P, method)[order]
        )


@pytest.mark.parametrize(
    ("p", "method", "message"),
    [(P, "sidak", "unknown correction 'sidak'"), ([0.5, 1.5], "holm", "outside 0 to 1")],
)
def test_bad_input(p: list[float], method: str, message: str) -> None:
    with pytest.raises(StatisticsError, match=message):
        adjust_p_values(p, method)


@pytest.mark.parametrize("method", CORRECTIONS)
def test_no_adjusted_p_value_is_below_its_own(method: str) -> None:
    p = np.random.default_rng(0).beta(0.3, 2, size=200)
    assert (adjust_p_values(p, method) >= p).all()


def test_hochberg_equals_statsmodels() -> None:
    p = np.random.default_rng(0).beta(0.5, 2, size=200)
    expected = multipletests(p, method="simes-hochberg")[1]
    np.testing.assert_allclose(adjust_p_values(p, "hochberg"), expected)
    assert (adjust_p_values(p, "hochberg") <= adjust_p_values(p, "holm") + 1e-15).all()
