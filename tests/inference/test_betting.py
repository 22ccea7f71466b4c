"""Tests by betting: expectation under H0 by enumeration, the formula in loops, and invariants."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from headroles.errors import StatisticsError
from headroles.inference import Bounds, betting
from tests.inference.conftest import betting_test


def unit_bounds(n: int, tests: int = 1, low: float = 0.0, high: float = 1.0) -> Bounds:
    """The same bounds for all examples, known to hold for all that there could be."""
    return Bounds(
        low=np.full((n, 1), low),
        high=np.full((n, 1), high),
        least=np.array([low]),
        most=np.array([high]),
        kinds=np.zeros(tests, dtype=np.intp),
        cap=high - low,
    )


def slow_e(
    values: NDArray[Any],
    threshold: float,
    low: Any,
    high: Any,
    cap: float,
    clusters: Any,
    side: int,
) -> float:
    """E of one column as it is defined; no value has a bound of its own beyond the cap."""
    units: dict[Any, list[float]] = {}
    for x, a, b, unit in zip(values, low, high, clusters, strict=True):
        if not np.isnan(x):
            weight = min(1, cap / max(threshold - a, b - threshold, 1e-12))
            units.setdefault(unit, []).append(weight * (x - threshold))
    total = 0.0
    for j in range(12):
        stake = 0.99 * (0.99 / 0.001) ** (-j / 11)
        capital = 1.0
        for own in units.values():
            capital *= 1 + side * stake * sum(own) / len(own) / cap
        total += capital
    return total / 12


@pytest.mark.parametrize("mean", [0.01, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("side", ["greater", "less", "two-sided"])
def test_the_expectation_under_the_null_is_one(mean: float, side: Any) -> None:
    """All outcomes of eight units of 0 and 1, with their probabilities."""
    outcomes = np.array(list(product([0.0, 1.0], repeat=8))).T
    chances = (mean**outcomes * (1 - mean) ** (1 - outcomes)).prod(axis=0)
    found = betting_test(outcomes, mean, unit_bounds(8, 256), alternative=side)
    assert (chances * np.exp(found.log_e)).sum() == pytest.approx(1)
    assert chances[found.p_value <= 0.05].sum() <= 0.05


@pytest.mark.parametrize("alternative", ["greater", "less"])
@pytest.mark.parametrize("at_once", [2**15, 7])
def test_against_loops(alternative: Any, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(betting, "IN_CACHE", at_once)
    rng = np.random.default_rng(0)
    n, side = 30, 1 if alternative == "greater" else -1
    high = rng.uniform(2, 30, (n, 2))
    low = -rng.uniform(0, 9, (n, 2))
    kinds = np.array([0, 1, 1])
    values = low[:, kinds] + (high - low)[:, kinds] * rng.beta(1, 4, (n, 3))
    values[4:9, 1] = np.nan
    clusters = rng.integers(0, 12, n)
    unknown = np.full(2, np.inf)
    bounds = Bounds(low, high, -unknown, unknown, kinds, cap=5.0)
    found = betting_test(values, 2.0, bounds, clusters=clusters, alternative=alternative)
    for test, kind in enumerate(kinds):
        expected = slow_e(values[:, test], 2, low[:, kind], high[:, kind], 5, clusters, side)
        assert math.exp(found.log_e[test]) == pytest.approx(expected)
        assert found.p_value[test] == pytest.approx(min(1, 1 / expected))


def test_units_have_no_order_and_clusters_count_the_same_each() -> None:
    rng = np.random.default_rng(2)
    values = rng.random((24, 3))
    clusters = np.repeat(np.arange(6), [1, 2, 3, 4, 6, 8])
    order = rng.permutation(24)
    found = betting_test(values, 0.4, unit_bounds(24, 3), clusters=clusters)
    again = betting_test(values[order], 0.4, unit_bounds(24, 3), clusters=clusters[order])
    np.testing.assert_allclose(found.log_e, again.log_e)
    means = np.array([values[clusters == k].mean(axis=0) for k in range(6)])
    of_means = betting_test(means, 0.4, unit_bounds(6, 3))
    np.testing.assert_allclose(found.log_e, of_means.log_e)
    np.testing.assert_allclose(found.mean, means.mean(axis=0))


def test_what_cannot_be_tested() -> None:
    values = np.array([[np.nan, 0.5], [np.nan, np.nan], [0.5, 0.5]])
    found = betting_test(values, 0.2, unit_bounds(3, 2))
    assert np.isnan(found.p_value).tolist() == [True, False]
    unknown = Bounds(
        np.full((3, 1), np.nan),
        np.full((3, 1), np.nan),
        np.zeros(1),
        np.ones(1),
        np.zeros(2, dtype=np.intp),
        1,
    )
    assert np.isnan(betting_test(values, 0.2, unknown).p_value).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"low": np.zeros((4, 1))}, r"bounds have shapes \(4, 1\) and \(5, 1\); give \(5, 1\)"),
        ({"kinds": np.zeros(3, dtype=np.intp)}, r"kinds have shape \(3,\); give \(2,\)"),
        ({"cap": 0.0}, "the cap is 0.0; give a number above 0"),
        ({"high": np.full((5, 1), 0.2)}, "a value lies 0.3 outside of its bounds"),
        ({"low": np.full((5, 1), -0.2)}, "bounds of an example lie 0.2 outside of those of all"),
    ],
)
def test_bad_input(change: dict[str, Any], message: str) -> None:
    given = {**vars(unit_bounds(5, 2)), **change}
    with pytest.raises(StatisticsError, match=message):
        betting_test(np.full((5, 2), 0.5), 0.4, Bounds(**given))


def test_rounding_beyond_a_bound_is_the_bound() -> None:
    values = np.full((10, 1), 1 + 1e-6)
    found = betting_test(values, 0.5, unit_bounds(10))
    np.testing.assert_allclose(found.mean, 1)
