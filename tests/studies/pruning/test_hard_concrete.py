"""Closed forms of gates against values worked by hand, and against draws."""

from __future__ import annotations

import pytest
import torch

from headroles.studies.pruning import gate

BY_HAND = [  # log alpha, P(gate != 0), P(gate = 1)
    (-3.0, 0.098972, 0.022068),
    (-1.0, 0.448015, 0.142913),
    (0.0, 0.688112, 0.311888),
    (1.0, 0.857087, 0.551985),
    (3.0, 0.977932, 0.901028),
]


def tensor(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize(("log_alpha", "nonzero", "one"), BY_HAND)
def test_closed_forms(log_alpha: float, nonzero: float, one: float) -> None:
    given = tensor(log_alpha)
    assert gate.p_nonzero(given).item() == pytest.approx(nonzero, abs=5e-7)
    assert gate.p_one(given).item() == pytest.approx(one, abs=5e-7)


def test_the_rule_at_the_end() -> None:
    found = gate.is_open(tensor(-3, -1, 1, 3))
    assert found.tolist() == [False, False, True, True]


def test_draws_by_hand() -> None:
    found = gate.draw_gates(tensor(0), tensor(0.05, 0.3, 0.5, 0.9))
    assert found.tolist() == pytest.approx([0, 0, 0.5, 1], abs=5e-7)
    before = torch.sigmoid(torch.logit(tensor(0.3, 0.9)) / gate.TEMPERATURE)
    assert before.tolist() == pytest.approx([0.071255, 0.998718], abs=5e-7)


@pytest.mark.parametrize("log_alpha", [-1.0, 0.0, 1.0])
def test_closed_forms_are_shares_of_draws(log_alpha: float) -> None:
    n = 200_000
    uniform = torch.rand(n, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = gate.draw_gates(tensor(log_alpha), uniform)
    for share, expected in (
        ((found != 0), gate.p_nonzero(tensor(log_alpha))),
        ((found == 1), gate.p_one(tensor(log_alpha))),
    ):
        assert share.double().mean().item() == pytest.approx(expected.item(), abs=4 * 0.5 / n**0.5)


def test_gradients() -> None:
    given = tensor(-1.2, 0.3, 0.9).requires_grad_()
    uniform = tensor(0.7, 0.5, 0.4)
    assert torch.autograd.gradcheck(lambda one: gate.draw_gates(one, uniform), given)
    numbers = torch.cat([tensor(0.0), tensor(1.0)])
    assert gate.draw_gates(tensor(0.0), numbers).tolist() == [0, 1]  # and no infinity


@pytest.mark.parametrize("expected", [0.01, 1, 2.5, 3.99])
def test_as_many_open_gates_as_wanted(expected: float) -> None:
    given = tensor(-7, 0.2, 0.1, 12)
    shifted = given + gate.shift_to(given, expected)
    assert gate.p_nonzero(shifted).sum().item() == pytest.approx(expected, abs=1e-9)
