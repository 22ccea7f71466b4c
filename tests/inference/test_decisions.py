"""Three answers and no answer."""

from __future__ import annotations

import numpy as np
import pytest

from headroles.errors import StatisticsError
from headroles.inference import ANSWERS, adjust_p_values, decide
from tests.inference.conftest import one_sample_t


def test_every_answer() -> None:
    above = [0.05, 0.051, 1.0, np.nan, 0.01, 0.01]
    below = [1.0, 0.9, 0.05, 0.5, np.nan, 0.99]
    expected = ["yes", "undecided", "no", "untestable", "untestable", "yes"]
    assert decide(above, below, 0.05).tolist() == expected
    assert set(expected) == set(ANSWERS)


def test_from_data_to_answers(hopeless: np.ndarray) -> None:
    table = np.column_stack([hopeless, hopeless[:, 3] - 3, hopeless[:, 3] - 1])
    above, below = (
        adjust_p_values(one_sample_t(table, 3, alternative=side).p_value, "holm")
        for side in ("greater", "less")
    )
    assert decide(above, below).tolist() == ["untestable"] * 3 + ["yes", "no", "undecided"]


@pytest.mark.parametrize(
    ("above", "below", "alpha", "message"),
    [
        ([0.1], [0.1, 0.2], 0.05, "shape"),
        ([1.1], [0.1], 0.05, "between 0 and 1"),
        ([0.1], [0.9], 1, "alpha is 1"),
        ([0.5, 0.01], [0.5, 0.01], 0.05, "test 1 is rejected in both directions"),
    ],
)
def test_bad_input(above: list[float], below: list[float], alpha: float, message: str) -> None:
    with pytest.raises(StatisticsError, match=message):
        decide(above, below, alpha)


def test_nothing_to_decide() -> None:
    assert decide([], []).shape == (0,)
