"""Permutation tests within strata, against all permutations and SciPy."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from headroles.errors import StatisticsError
from headroles.inference import permute_within, rank_test

VALUES = np.array([0.3, 1.2, 0.1, 0.9, 2.0, 1.1, 0.2, 0.8])
STRATA = np.array([0, 0, 0, 0, 1, 1, 1, 1])
MARKED = np.array([0, 1, 0, 1, 1, 0, 0, 0], dtype=bool)


def two_sided(values: Any, marked: Any, strata: Any, n: int = 9999) -> tuple[float, float]:
    """The difference, and its rank among those of permutations, either sign being as extreme."""
    observed, drawn = permute_within(values, marked, strata, n)
    return observed, float(rank_test(np.abs(drawn)[:, None], abs(observed), 1e-12)[0])


def test_is_that_of_all_permutations() -> None:
    centred = VALUES - np.repeat([VALUES[:4].mean(), VALUES[4:].mean()], 4)
    sums = [
        centred[list(one)].sum() + centred[list(other)].sum()
        for one, other in product(combinations(range(4), 2), combinations(range(4, 8), 1))
    ]
    observed = centred[MARKED].sum()
    exact = np.mean(np.abs(sums) >= abs(observed) - 1e-12)
    difference, p_value = two_sided(VALUES, MARKED, STRATA, 40_000)
    assert difference == pytest.approx(observed / 3)
    assert p_value == pytest.approx(exact, abs=0.01)


def test_of_one_stratum_is_that_of_scipy() -> None:
    rng = np.random.default_rng(4)
    values, marked = rng.normal(size=20), np.arange(20) < 7
    values[marked] += 0.9

    def difference(a: np.ndarray, b: np.ndarray, axis: int = -1) -> np.ndarray:
        return a.mean(axis) - b.mean(axis)

    expected = stats.permutation_test(
        (values[marked], values[~marked]), difference, n_resamples=20_000, rng=1
    ).pvalue
    found = two_sided(values, marked, np.zeros(20), 20_000)[1]
    assert found == pytest.approx(expected, abs=0.01)


def test_strata_that_tell_nothing() -> None:
    nothing, drawn = permute_within([1, 2, 3], [1, 1, 1], [0, 0, 0])
    assert np.isnan(nothing)
    assert np.isnan(drawn).all()
    whole = permute_within(VALUES, MARKED, STRATA)
    more = permute_within([*VALUES, 50, 60], [*MARKED, True, True], [*STRATA, 2, 2])
    assert more[0] == pytest.approx(whole[0])


def test_bad_input() -> None:
    with pytest.raises(StatisticsError, match="different lengths"):
        permute_within([1, 2], [True], [0, 0])
    with pytest.raises(StatisticsError, match="finite"):
        permute_within([1, np.nan], [True, False], [0, 0])
