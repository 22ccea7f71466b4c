"""Three answers and no answer."""

from __future__ import annotations

import numpy as np
import pytest

from headroles.errors import StatisticsError
from headroles.testing.answers import ANSWERS, answer, answers
from headroles.testing.evidence import PValues


def p_values(adjusted: list[float], by_bound: float = np.nan) -> PValues:
    p = np.array(adjusted)
    return PValues(p, p, p, np.zeros(len(p)), np.full(len(p), by_bound))


def test_every_answer() -> None:
    above = p_values([0.05, 0.051, 1.0, np.nan, 0.01])
    below = p_values([1.0, 0.9, 0.05, np.nan, 0.99])
    expected = ["yes", "undecided", "no", "untestable", "yes"]
    assert answer(above, below, 0.05).tolist() == expected
    assert set(expected) == set(ANSWERS)


def test_a_bound_answers_where_no_test_was_made() -> None:
    nothing = [np.nan]
    assert answer(p_values(nothing, 0.01), p_values(nothing, 1.0), 0.05).tolist() == ["yes"]
    assert answer(p_values(nothing, 1.0), p_values(nothing, 0.01), 0.05).tolist() == ["no"]
    assert answer(p_values(nothing, 1.0), p_values(nothing, 0.3), 0.05).tolist() == ["undecided"]


def test_words_follow_the_direction() -> None:
    found = answers([True, True, True, True, False], [2, -1, 0, np.nan, 1], ("more", "less"))
    assert found.tolist() == ["more", "less", "undecided", "undecided", "undecided"]
    assert answers([], []).shape == (0,)


def test_both_directions_at_once_are_refused() -> None:
    both = p_values([0.5, 0.01])
    with pytest.raises(StatisticsError, match="test 1 is rejected in both directions"):
        answer(both, both, 0.05)
