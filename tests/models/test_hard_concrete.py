"""Closed forms of gates against values worked by hand, and against draws."""

from __future__ import annotations

import pytest
import torch

from headroles.errors import UsageError
from headroles.models.heads.hard_concrete import HardConcrete

BY_HAND = [  # log alpha, P(gate != 0), P(gate = 1), gate without noise
    (-3.0, 0.098972, 0.022068, 0.000000),
    (-1.0, 0.448015, 0.142913, 0.222730),
    (0.0, 0.688112, 0.311888, 0.500000),
    (1.0, 0.857087, 0.551985, 0.777270),
    (3.0, 0.977932, 0.901028, 1.000000),
]


def tensor(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize(("log_alpha", "nonzero", "one", "typical"), BY_HAND)
def test_closed_forms(log_alpha: float, nonzero: float, one: float, typical: float) -> None:
    gate, given = HardConcrete(), tensor(log_alpha)
    assert gate.p_nonzero(given).item() == pytest.approx(nonzero, abs=5e-7)
    assert gate.p_one(given).item() == pytest.approx(one, abs=5e-7)
    assert gate.typical(given).item() == pytest.approx(typical, abs=5e-7)


def test_gates_without_noise_reach_0_and_1_at_the_logarithm_of_11() -> None:
    found = HardConcrete().typical(tensor(-2.397896, -2.3978, 2.3978, 2.397896))
    assert found[0] == 0 < found[1]
    assert found[2] < 1 == found[3]


def test_the_rule_at_the_end() -> None:
    found = HardConcrete().is_open(tensor(-3, -1, 1, 3))
    assert found.tolist() == [False, False, True, True]
    # An interval that reaches further above 1 than below 0 opens gates that are shut otherwise.
    assert HardConcrete(high=1.5).is_open(tensor(-0.1)).item()


def test_draws_by_hand() -> None:
    gate = HardConcrete()
    found = gate.gates(tensor(0), tensor(0.05, 0.3, 0.5, 0.9))
    assert found.tolist() == pytest.approx([0, 0, 0.5, 1], abs=5e-7)
    before = torch.sigmoid(torch.logit(tensor(0.3, 0.9)) / gate.temperature)
    assert before.tolist() == pytest.approx([0.071255, 0.998718], abs=5e-7)


@pytest.mark.parametrize("log_alpha", [-1.0, 0.0, 1.0])
def test_closed_forms_are_shares_of_draws(log_alpha: float) -> None:
    gate, n = HardConcrete(), 200_000
    uniform = torch.rand(n, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = gate.gates(tensor(log_alpha), uniform)
    for share, expected in (
        ((found != 0), gate.p_nonzero(tensor(log_alpha))),
        ((found == 1), gate.p_one(tensor(log_alpha))),
    ):
        assert share.double().mean().item() == pytest.approx(expected.item(), abs=4 * 0.5 / n**0.5)


def test_gradients() -> None:
    given = tensor(-1.2, 0.3, 0.9).requires_grad_()
    uniform = tensor(0.7, 0.5, 0.4)
    assert torch.autograd.gradcheck(lambda one: HardConcrete().gates(one, uniform), given)
    numbers = torch.cat([tensor(0.0), tensor(1.0)])
    assert HardConcrete().gates(tensor(0.0), numbers).tolist() == [0, 1]  # and no infinity


@pytest.mark.parametrize("expected", [0.01, 1, 2.5, 3.99])
def test_as_many_open_gates_as_wanted(expected: float) -> None:
    gate, given = HardConcrete(), tensor(-7, 0.2, 0.1, 12)
    shifted = given + gate.shift_to(given, expected)
    assert gate.p_nonzero(shifted).sum().item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.1), (-0.1, 1.0)])
def test_gates_that_never_reach_an_end(low: float, high: float) -> None:
    with pytest.raises(UsageError, match="must begin below 0 and end above 1"):
        HardConcrete(low=low, high=high)
