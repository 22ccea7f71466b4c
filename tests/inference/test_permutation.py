"""Permutations within groups, and exchanges of labels."""

from __future__ import annotations

from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from headroles.errors import StatisticsError
from headroles.inference import permute_within, rank_test, shuffle_labels

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


def make_likeness(groups: int, items: int, seed: int = 0) -> NDArray[np.float64]:
    values = np.random.default_rng(seed).normal(size=(groups, items, items))
    return np.asarray(values + values.swapaxes(1, 2))


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


def p_values(likeness: Any, labels: Any, n: int) -> NDArray[np.float64]:
    """The rank of the mean likeness of each label among those of shuffled items."""
    found = shuffle_labels(likeness, labels, n_resamples=n, seed=0)
    p = np.full(len(found.mean), np.nan)
    some = ~np.isnan(found.mean)
    p[some] = rank_test(found.drawn[:, some], found.mean[some], 1e-9)
    return p


def test_shuffles_are_those_of_all_permutations() -> None:
    likeness = make_likeness(2, 4)
    labels = np.array([[1, 1, 0, 0], [0, 1, 1, 1]], dtype=bool)
    every = [
        mean_of_pairs(likeness, np.stack([labels[0][list(one)], labels[1][list(other)]]))
        for one, other in product(permutations(range(4)), repeat=2)
    ]
    observed = mean_of_pairs(likeness, labels)
    found = shuffle_labels(likeness, labels[..., None], n_resamples=20000, seed=0)
    assert found.n_pairs.tolist() == [4]
    assert found.mean[0] == pytest.approx(observed)
    assert found.drawn[:, 0].mean() == pytest.approx(np.mean(every), abs=0.03)
    expected = np.mean(np.array(every) >= observed - 1e-9)
    assert p_values(likeness, labels[..., None], 20000)[0] == pytest.approx(expected, abs=0.012)


def test_labels_without_pairs_or_of_all_are_not_tested() -> None:
    labels = np.zeros((2, 4, 3), dtype=bool)
    labels[0, 0, 1] = labels[1, 2, 1] = True  # one in each group: no pair
    labels[0, :, 2] = True  # all of a group: shuffles change nothing
    found = shuffle_labels(make_likeness(2, 4), labels, n_resamples=9, seed=0)
    assert np.isnan(found.drawn).all()
    assert np.isnan(found.mean).all()
    assert found.n_pairs.tolist() == [0, 0, 6]


def test_bad_labels() -> None:
    with pytest.raises(StatisticsError, match="give at least 1"):
        shuffle_labels(make_likeness(1, 3), np.ones((1, 3, 1), bool), n_resamples=0, seed=0)
    with pytest.raises(StatisticsError, match="labels have shape"):
        shuffle_labels(make_likeness(1, 3), np.ones((1, 4, 1), bool), n_resamples=9, seed=0)
