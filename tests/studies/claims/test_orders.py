"""Tests by random orders, against brute force and tables of known truth."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from headroles.studies.claims.claim import NotTestable
from headroles.studies.claims.orders import in_layers, trend

ALPHA = 0.05


def test_a_trend_has_the_p_value_of_all_orders() -> None:
    values, places = [0.1, 0.3, 0.2, 0.6], [0, 1, 2, 3]
    found = trend(values, places, alpha=0.1)
    orders = [np.corrcoef(one, places)[0, 1] for one in permutations(values)]
    observed = np.corrcoef(values, places)[0, 1]
    assert found.effect == pytest.approx(observed)
    assert found.shown.single[0] == np.mean([one >= observed - 1e-12 for one in orders])
    assert found.contradicted.single[0] == np.mean([one <= observed + 1e-12 for one in orders])


def test_many_layers_are_drawn_in_random_orders() -> None:
    rising = trend(np.arange(12), np.arange(12), alpha=ALPHA)
    assert rising.shown.single[0] == pytest.approx(1e-4)
    assert rising.contradicted.single[0] == 1


def test_flat_values_have_no_trend() -> None:
    found = trend(np.ones(6), np.arange(6), alpha=ALPHA)
    assert (found.effect, found.shown.single[0], found.contradicted.single[0]) == (0, 1, 1)


def test_few_layers_are_refused_with_the_smallest_p_value() -> None:
    with pytest.raises(NotTestable, match=r"3 layers .* below 0\.17"):
        trend([1, 2, 3], [0, 1, 2], alpha=ALPHA)
    with pytest.raises(NotTestable, match=r"4 layers .* below 0\.17"):  # two pairs of places tie
        trend([1, 2, 2, 1], [-1.5, -0.5, -0.5, -1.5], alpha=ALPHA)


def test_heads_are_compared_with_those_of_their_layers() -> None:
    values = np.array([[5.0, 1, 2, 0], [9, 10, 11, 12]])
    marked = np.zeros((2, 4), dtype=bool)
    marked[0, 0] = True
    found = in_layers(values, marked)
    assert found.effect == 3
    assert found.shown.single[0] == pytest.approx(1 / 4, abs=0.02)
    with pytest.raises(NotTestable, match="all heads are of this kind"):
        in_layers(values, np.ones((2, 4), dtype=bool))
