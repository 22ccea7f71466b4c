"""Three answers and no answer; one p-value of several, and tests corrected together."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from headroles.errors import StatisticsError
from headroles.testing.answers import ANSWERS, answer, answers
from headroles.testing.evidence import PValues, corrected_together, find_p_values, in_at_least
from headroles.testing.hypotheses import Hypotheses
from headroles.testing.options import CorrectionOptions


def p_values(adjusted: list[float], by_bound: float = np.nan) -> PValues:
    p = np.array(adjusted)
    return PValues(p, p, p, np.zeros(len(p)), np.full(len(p), by_bound))


def test_every_answer() -> None:
    above = p_values([0.05, 0.051, 1.0, np.nan, 0.01])
    below = p_values([1.0, 0.9, 0.05, np.nan, 0.99])
    expected = ["yes", "undecided", "no", "untestable", "yes"]
    assert answer(above, below, 0.05).tolist() == expected
    assert set(expected) == set(ANSWERS)


@pytest.mark.parametrize(
    ("above", "below", "expected"), [(0.01, 1.0, "yes"), (1.0, 0.01, "no"), (1.0, 0.3, "undecided")]
)
def test_a_bound_answers_where_no_test_was_made(above: float, below: float, expected: str) -> None:
    sides = (p_values([np.nan], bound) for bound in (above, below))
    assert answer(*sides, 0.05).tolist() == [expected]


def test_words_follow_the_direction_and_there_is_one() -> None:
    found = answers([True, True, True, True, False], [2, -1, 0, np.nan, 1], ("more", "less"))
    assert found.tolist() == ["more", "less", "undecided", "undecided", "undecided"]
    assert answers([], []).shape == (0,)
    both = p_values([0.5, 0.01])
    with pytest.raises(StatisticsError, match="test 1 is rejected in both directions"):
        answer(both, both, 0.05)


def test_in_at_least_is_the_partial_conjunction_of_bonferroni() -> None:
    found = p_values([0.01, 0.3, 0.02, np.nan])
    assert in_at_least(found, 1).single[0] == pytest.approx(0.04)
    assert in_at_least(found, 2).single[0] == pytest.approx(0.06)
    assert in_at_least(found, 4).single[0] == 1  # what was not tested is no evidence
    assert np.isnan(in_at_least(p_values([np.nan]), 1).single[0])
    alike = Hypotheses.of(np.ones((30, 1)), 0.5, size=1)
    tested = find_p_values(alike, CorrectionOptions(), "greater")
    assert np.isnan(tested.single[0])
    assert in_at_least(tested, 1).single[0] == pytest.approx((1 / 1.5) ** 30)


def test_tests_of_different_kinds_are_corrected_together() -> None:
    single = [0.01, 0.04, 0.03, 0.2]
    parts = [p_values([single[0], single[1]]), p_values([single[2]]), p_values([np.nan, single[3]])]
    found = corrected_together(parts, CorrectionOptions())
    oracle = multipletests([0.01, 0.04, 0.03, 0.2], method="fdr_bh")[1]
    assert found.adjusted[[0, 1, 2, 4]] == pytest.approx(oracle)
    assert np.isnan(found.adjusted[3])
