"""Betting by enumeration and in loops; corrections against scipy; all permutations."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.multitest import multipletests

from headroles.errors import StatisticsError
from headroles.inference import (
    CORRECTIONS,
    Bounds,
    adjust_p_values,
    betting,
    partial_conjunction,
    permute_within,
    rank_test,
    shuffle_labels,
)
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


def slow_e(values: Any, low: Any, high: Any, clusters: Any, side: int) -> float:
    """E of one column as it is defined, with the threshold 2 and the cap 5.

    No value has a bound of its own beyond the cap.
    """
    units: dict[Any, list[float]] = {}
    for x, a, b, unit in zip(values, low, high, clusters, strict=True):
        if not np.isnan(x):
            weight = min(1, 5 / max(2 - a, b - 2, 1e-12))
            units.setdefault(unit, []).append(weight * (x - 2))
    total = 0.0
    for j in range(12):
        stake = 0.99 * (0.99 / 0.001) ** (-j / 11)
        capital = 1.0
        for own in units.values():
            capital *= 1 + side * stake * sum(own) / len(own) / 5
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
        expected = slow_e(values[:, test], low[:, kind], high[:, kind], clusters, side)
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
    nothing = np.full((3, 1), np.nan)
    unknown = replace(unit_bounds(3, 2), low=nothing, high=nothing)
    assert np.isnan(betting_test(values, 0.2, unknown).p_value).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"high": np.full((5, 1), 0.2)}, "a value lies 0.3 outside of its bounds"),
        ({"low": np.full((5, 1), -0.2)}, "bounds of an example lie 0.2 outside of those of all"),
    ],
)
def test_bad_bounds(change: dict[str, Any], message: str) -> None:
    with pytest.raises(StatisticsError, match=message):
        betting_test(np.full((5, 2), 0.5), 0.4, replace(unit_bounds(5, 2), **change))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: adjust_p_values(P, "sidak"), "unknown correction 'sidak'"),
        (lambda: adjust_p_values([0.5, 1.5], "holm"), "outside 0 to 1"),
    ],
)
def test_bad_input(ask: Callable[[], object], message: str) -> None:
    with pytest.raises(StatisticsError, match=message):
        ask()


def test_rounding_beyond_a_bound_is_the_bound() -> None:
    values = np.full((10, 1), 1 + 1e-6)
    found = betting_test(values, 0.5, unit_bounds(10))
    np.testing.assert_allclose(found.mean, 1)


P = np.array([0.011, 0.02, 0.03, 0.04, 0.2])


@pytest.mark.parametrize(("method", "name"), [("fdr_bh", "bh"), ("fdr_by", "by")])
def test_false_discovery_rates_equal_scipy(method: str, name: str) -> None:
    p = np.random.default_rng(0).beta(0.5, 2, size=300)
    expected = stats.false_discovery_control(p, method=name)
    np.testing.assert_allclose(adjust_p_values(p, method), expected)


@pytest.mark.parametrize("method", CORRECTIONS)
def test_corrections_equal_statsmodels_and_missing_values_do_not_count(method: str) -> None:
    name, expected = {"hochberg": "simes-hochberg"}.get(method, method), P
    if method != "none":
        expected = multipletests(P, method=name)[1]
    np.testing.assert_allclose(adjust_p_values(P, method), expected, atol=1e-12)
    gaps = np.array([0.011, np.nan, 0.02, 0.03, np.nan, 0.04, 0.2])
    adjusted = adjust_p_values(gaps, method)
    assert np.isnan(adjusted[[1, 4]]).all()
    np.testing.assert_allclose(adjusted[~np.isnan(gaps)], expected)
    assert np.isnan(adjust_p_values([np.nan, np.nan], method)).all()
    assert adjust_p_values([], method).shape == (0,)


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("at_least", [1, 2, 3, 4])
def test_it_is_the_least_over_all_sets_of_true_nulls(at_least: int, independent: bool) -> None:
    """Under the null some 4 - u + 1 are true: the evidence against each such choice."""
    e = np.random.default_rng(0).lognormal(0, 3, (4, 30))
    e[0, 0] = 1
    against = []
    for chosen in combinations(range(4), 4 - at_least + 1):
        own = e[list(chosen)]
        against.append(own.prod(axis=0) if independent else own.mean(axis=0))
    log_e = np.log(e)
    log_e[0, 0] = np.nan  # not tested, which is no evidence
    found = partial_conjunction(log_e, at_least, independent)
    np.testing.assert_allclose(np.exp(found), np.min(against, axis=0))


def test_is_that_of_all_permutations_and_strata_that_tell_nothing_do_not_count() -> None:
    values = np.array([0.3, 1.2, 0.1, 0.9, 2.0, 1.1, 0.2, 0.8])
    strata, marked = np.repeat([0, 1], 4), np.array([0, 1, 0, 1, 1, 0, 0, 0], dtype=bool)
    centred = values - np.repeat([values[:4].mean(), values[4:].mean()], 4)
    sums = [
        centred[list(one)].sum() + centred[list(other)].sum()
        for one, other in product(combinations(range(4), 2), combinations(range(4, 8), 1))
    ]
    observed = centred[marked].sum()
    exact = np.mean(np.abs(sums) >= abs(observed) - 1e-12)
    difference, drawn = permute_within(values, marked, strata, 40_000)
    assert difference == pytest.approx(observed / 3)
    p_value = rank_test(np.abs(drawn)[:, None], abs(difference), 1e-12)[0]
    assert p_value == pytest.approx(exact, abs=0.01)
    more = permute_within([*values, 50, 60], [*marked, True, True], [*strata, 2, 2])
    assert more[0] == pytest.approx(difference)
    nothing, drawn = permute_within([1, 2, 3], [1, 1, 1], [0, 0, 0])
    assert np.isnan(nothing)
    assert np.isnan(drawn).all()


def make_likeness(groups: int) -> NDArray[np.float64]:
    values = np.random.default_rng(0).normal(size=(groups, 4, 4))
    return np.asarray(values + values.swapaxes(1, 2))


def shuffled(labels: Any, n: int) -> Any:
    return shuffle_labels(make_likeness(len(labels)), labels, n_resamples=n, seed=0)


def mean_of_pairs(likeness: NDArray[np.float64], labels: NDArray[np.bool_]) -> float:
    """Written out for one label (groups, items)."""
    pairs = [
        likeness[group, one, other]
        for group, has in enumerate(labels)
        for one in np.flatnonzero(has)
        for other in np.flatnonzero(has)
        if one < other
    ]
    return float(np.mean(pairs))


def test_shuffles_are_those_of_all_permutations() -> None:
    likeness = make_likeness(2)
    labels = np.array([[1, 1, 0, 0], [0, 1, 1, 1]], dtype=bool)
    every = [
        mean_of_pairs(likeness, np.stack([labels[0][list(one)], labels[1][list(other)]]))
        for one, other in product(permutations(range(4)), repeat=2)
    ]
    observed = mean_of_pairs(likeness, labels)
    found = shuffled(labels[..., None], 20000)
    assert found.n_pairs.tolist() == [4]
    assert found.mean[0] == pytest.approx(observed)
    assert found.drawn[:, 0].mean() == pytest.approx(np.mean(every), abs=0.03)
    expected = np.mean(np.array(every) >= observed - 1e-9)
    assert rank_test(found.drawn, found.mean, 1e-9)[0] == pytest.approx(expected, abs=0.012)


def test_labels_without_pairs_or_of_all_are_not_tested() -> None:
    labels = np.zeros((2, 4, 3), dtype=bool)
    labels[0, 0, 1] = labels[1, 2, 1] = True  # one in each group: no pair
    labels[0, :, 2] = True  # all of a group: shuffles change nothing
    found = shuffled(labels, 9)
    assert np.isnan(found.drawn).all()
    assert np.isnan(found.mean).all()
    assert found.n_pairs.tolist() == [0, 0, 6]
