"""Ranks among draws: by hand, and their level under the null."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.contingency_tables import mcnemar

from headroles.errors import StatisticsError
from headroles.inference import mcnemar_test, p_of_draws, rank_test

DRAWN = np.array([[1.0, 5.0], [2.0, np.nan], [3.0, 5.0], [4.0, 7.0]])


def test_by_hand() -> None:
    assert rank_test(DRAWN, [3, 6]).tolist() == [3 / 5, 2 / 4]
    assert rank_test(DRAWN, [3, 6], alternative="less").tolist() == [4 / 5, 3 / 4]
    assert rank_test(DRAWN, [9, 4], alternative="two-sided").tolist() == [2 / 5, 2 / 4]
    assert np.isnan(rank_test(np.full((3, 1), np.nan), 1.0)).all()


def test_what_differs_by_rounding_ties() -> None:
    drawn, observed = np.array([[1.0 - 1e-9], [0.5]]), 1.0
    assert rank_test(drawn, observed).tolist() == [1 / 3]
    assert rank_test(drawn, observed, rounding=1e-8).tolist() == [2 / 3]


def test_the_observation_counts_as_a_draw() -> None:
    assert p_of_draws(np.array([0, 4]), 9).tolist() == [0.1, 0.5]


@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
def test_the_level_is_exact_where_the_observation_is_a_draw(alternative: str) -> None:
    values = np.random.Generator(np.random.MT19937(5)).gamma(0.3, 1, (40, 4000))
    p = rank_test(values[1:], values[0], alternative=alternative)  # type: ignore[arg-type]
    assert (p <= 0.05).mean() == pytest.approx(0.05, abs=0.011)


def test_bad_input() -> None:
    with pytest.raises(StatisticsError, match="thresholds have shape"):
        rank_test(DRAWN, [1, 2, 3])


def test_is_that_of_statsmodels() -> None:
    rng = np.random.default_rng(2)
    reference = rng.random((40, 1)) < 0.7
    right = reference ^ (rng.random((40, 5)) < np.array([0.02, 0.1, 0.2, 0.3, 0.5]))
    expected = []
    for column in right.T:
        table = [[(column & reference[:, 0]).sum(), (column & ~reference[:, 0]).sum()]]
        table.append([(~column & reference[:, 0]).sum(), (~column & ~reference[:, 0]).sum()])
        expected.append(float(mcnemar(table, exact=True).pvalue))
    assert mcnemar_test(right.astype(int) - reference) == pytest.approx(expected)


def test_without_a_difference() -> None:
    answers = np.array([[True], [False], [True]])
    assert mcnemar_test(0 * answers) == pytest.approx([1])
