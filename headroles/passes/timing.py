"""Durations of passes of two models, measured in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from headroles.arrays import FloatArray
from headroles.models.families import encoder_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel

LENGTHS = (32, 128, 512)
_TOKENS = 512
_REPEATS = 3
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
        what, rounds = f"{self.tokens} tokens", f"in {len(self.ratios)} rounds"
        if low <= 1 <= high:
            return (
                f"For {what} no difference in speed was measurable ({low:.1f} to {high:.1f} times "
                f"as fast {rounds})."
            )
        return (
            f"A pass over {what} is {times:.2f} times as fast ({low:.2f} to {high:.2f} {rounds}, "
            "measured in this run)."
        )


def time_in_turns(before: PreTrainedModel, after: PreTrainedModel, tokens: int) -> Speed:
    """Measure the seconds of both encoders for one batch of sequences of so many tokens."""
    seconds = _take_turns(before, after, tokens, 1 + _ROUNDS)[1:]  # the first round warms up
    first, second = np.median(seconds, axis=0).tolist()
    return Speed(tokens, first, second, tuple((seconds[:, 0] / seconds[:, 1]).tolist()))


def time_passes(
    before: PreTrainedModel,
    after: PreTrainedModel,
    longest: int,
    lengths: Sequence[int] = LENGTHS,
) -> list[dict[str, Any]]:
    """Measure the seconds that both encoders take for sequences of each of the ``lengths``.

    Lengths beyond the ``longest`` that they read are skipped. Each number is the best of a few
    passes over 512 tokens in all, in which the encoders take turns: seconds of the processor, which
    other programs disturb less than the clock; on other devices seconds of the clock.
    """
    rows = []
    for tokens in (length for length in lengths if length <= longest):
        first, second = _take_turns(before, after, tokens, _REPEATS).min(axis=0).tolist()
        rows.append({"tokens": tokens, "seconds_before": first, "seconds_after": second})
    return rows


def _take_turns(
    before: PreTrainedModel, after: PreTrainedModel, tokens: int, n_rounds: int
) -> FloatArray:
    """Return the seconds (rounds, 2) of both encoders for the same batch."""
    inputs = _random_inputs(before, tokens)
    return np.array(
        [[_seconds(model, inputs) for model in (before, after)] for _ in range(n_rounds)]
    )


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
