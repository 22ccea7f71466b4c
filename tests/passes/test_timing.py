"""Speed of two models, measured in turns."""

from __future__ import annotations

import time
from itertools import cycle
from typing import Any
from unittest import mock

import torch

from headroles.passes.timing import time_in_turns
from tests.conftest import make_bert


class Watch:
    """A clock that moves on by the next of some seconds with every pass of a model."""

    def __init__(self, seconds: list[float], *models: torch.nn.Module) -> None:
        self.turns: list[torch.nn.Module] = []
        self._now, self._seconds = 0.0, cycle(seconds)
        for model in models:
            model.register_forward_hook(self._move)

    def _move(self, model: torch.nn.Module, *_: Any) -> None:
        self.turns.append(model)
        self._now += next(self._seconds)

    def read(self) -> float:
        return self._now


def test_medians_of_rounds_in_which_both_take_turns() -> None:
    before, after = make_bert(0, 1), make_bert(1, 1)
    watch = Watch([2.0, 1.0, 4.0, 1.0, 3.0, 2.0], before, after)
    with mock.patch.object(time, "process_time", watch.read):
        speed = time_in_turns(before, after, 16)
    assert watch.turns == [before, after] * 8
    # the first round is not counted: rounds 2 and 3 come three times, the first twice
    assert speed.ratios == (4.0, 1.5, 2.0, 4.0, 1.5, 2.0, 4.0)
    assert (speed.before, speed.after) == (3.0, 1.0)
