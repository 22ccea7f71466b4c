"""Durations of passes of two models, measured in turns."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from headroles.models.families import encoder_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel

LENGTHS = (32, 128, 512)
_TOKENS = 512
_ROUNDS = 7


@dataclass(frozen=True)
class Speed:
    """Seconds that two models take for the same batch: medians of rounds in which they take turns.

    ``ratios`` are seconds before by those after, of single rounds.
    """

    tokens: int
    before: float
    after: float
    ratios: tuple[float, ...]

    def __str__(self) -> str:
        low, high, times = min(self.ratios), max(self.ratios), self.before / self.after
        batch, rounds = f"{self.tokens} tokens", f"in {len(self.ratios)} rounds"
        if low <= 1 <= high:
            return (
                f"For {batch} no difference in speed was measurable ({low:.1f} to {high:.1f} times "
                f"as fast {rounds})."
            )
        return (
            f"A pass over {batch} is {times:.2f} times as fast ({low:.2f} to {high:.2f} {rounds}, "
            "measured in this run)."
        )


def time_in_turns(before: PreTrainedModel, after: PreTrainedModel, tokens: int) -> Speed:
    """Measure the seconds of both encoders for one batch of sequences of so many tokens.

    The batch has 512 tokens in all, or one sequence. Seconds are of the processor, which other
    programs disturb less than the clock; on other devices of the clock.
    """
    inputs = _random_inputs(before, tokens)
    for model in (before, after):
        _seconds(model, inputs)  # warms up
    seconds = np.array(
        [[_seconds(model, inputs) for model in (before, after)] for _ in range(_ROUNDS)]
    )
    first, second = np.median(seconds, axis=0).tolist()
    return Speed(tokens, first, second, tuple((seconds[:, 0] / seconds[:, 1]).tolist()))


def _random_inputs(model: PreTrainedModel, tokens: int) -> dict[str, Tensor]:
    """Make sequences of ``tokens`` random tokens each."""
    shape = (max(1, _TOKENS // tokens), tokens)
    generator = torch.Generator().manual_seed(0)
    first = min(8, model.config.vocab_size - 1)
    ids = torch.randint(first, model.config.vocab_size, shape, generator=generator)
    ids = ids.to(model.device)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def clock_of(device: torch.device) -> Callable[[], float]:
    """Return the clock for work on a device: on a CPU processor time, which load disturbs less."""
    return time.process_time if device.type == "cpu" else time.perf_counter


def _seconds(model: PreTrainedModel, inputs: dict[str, Tensor]) -> float:
    clock = clock_of(model.device)
    start = clock()
    with torch.inference_mode():
        encoder_of(model)(**inputs)
        if model.device.type == "cuda":
            torch.cuda.synchronize()
    return clock() - start
