"""Durations of passes of two models, measured in turns."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

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
    """Measure the seconds of both encoders for one batch of sequences of so many random tokens.

    The batch has 512 tokens in all, or one sequence. Seconds are of the processor, which other
    programs disturb less than the clock; on other devices of the clock.
    """
    size = before.config.vocab_size
    shape, generator = (max(1, _TOKENS // tokens), tokens), torch.Generator().manual_seed(0)
    ids = torch.randint(min(8, size - 1), size, shape, generator=generator).to(before.device)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    clock = time.process_time if ids.device.type == "cpu" else time.perf_counter

    def seconds(model: PreTrainedModel) -> float:
        start = clock()
        with torch.inference_mode():
            encoder_of(model)(**inputs)
            if model.device.type == "cuda":
                torch.cuda.synchronize()
        return clock() - start

    models = (before, after)
    rounds = np.array([[seconds(one) for one in models] for _ in range(1 + _ROUNDS)])
    rounds = rounds[1:]  # the first warms up
    first, second = np.median(rounds, axis=0).tolist()
    return Speed(tokens, first, second, tuple((rounds[:, 0] / rounds[:, 1]).tolist()))
