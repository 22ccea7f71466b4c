"""Adjusted p-values against worked examples and scipy; at least u of k by all subsets."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from headroles.errors import StatisticsError
from headroles.inference import CORRECTIONS, adjust_p_values, partial_conjunction

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


@pytest.mark.parametrize(
    ("p", "method", "message"),
    [(P, "sidak", "unknown correction 'sidak'"), ([0.5, 1.5], "holm", "outside 0 to 1")],
)
def test_bad_input(p: list[float], method: str, message: str) -> None:
    with pytest.raises(StatisticsError, match=message):
        adjust_p_values(p, method)


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("at_least", [1, 2, 3, 4])
def test_it_is_the_least_over_all_sets_of_true_nulls(at_least: int, independent: bool) -> None:
    """Under the null some 4 - u + 1 are true: the evidence against each such choice."""
    e = np.random.default_rng(0).lognormal(0, 3, (4, 30))
    against = []
    for chosen in combinations(range(4), 4 - at_least + 1):
        own = e[list(chosen)]
        against.append(own.prod(axis=0) if independent else own.mean(axis=0))
    found = partial_conjunction(np.log(e), at_least, independent)
    np.testing.assert_allclose(np.exp(found), np.min(against, axis=0))


def test_what_was_not_tested_is_no_evidence() -> None:
    log_e = np.array([[np.nan, 2.0], [3.0, 1.0]])
    assert partial_conjunction(log_e, 2, independent=True).tolist() == [0, 1]


@pytest.mark.parametrize("at_least", [0, 3])
def test_more_than_there_are(at_least: int) -> None:
    with pytest.raises(StatisticsError, match=f"at_least is {at_least}; give a number from 1 to 2"):
        partial_conjunction(np.zeros((2, 3)), at_least, independent=True)
