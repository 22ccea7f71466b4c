"""Durations of passes of two models, measured in turns."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from headroles.models.families import encoder_of
from headroles.passes.loop import Budget, Passes

if TYPE_CHECKING:
    from transformers import PreTrainedModel

LENGTHS = (32, 128, 512)
_TOKENS = 512
_REPEATS = 3


@dataclass(frozen=True)
class _MadeUp:
    """Sequences of tokens at random."""

    rows: list[int]
    inputs: dict[str, Tensor]


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
        passes = _made_up(before, tokens)
        seconds = np.full((_REPEATS, 2), np.inf)
        for repeat in range(_REPEATS):
            for place, model in enumerate((before, after)):
                seconds[repeat, place] = _seconds(model, passes)
        first, second = seconds.min(axis=0).tolist()
        rows.append({"tokens": tokens, "seconds_before": first, "seconds_after": second})
    return rows


def _made_up(model: PreTrainedModel, tokens: int) -> Passes[_MadeUp]:
    shape = (max(1, _TOKENS // tokens), tokens)
    generator = torch.Generator().manual_seed(0)
    first = min(8, model.config.vocab_size - 1)
    ids = torch.randint(first, model.config.vocab_size, shape, generator=generator)
    ids = ids.to(model.device)

    def make(rows: list[int]) -> _MadeUp:
        return _MadeUp(rows, {"input_ids": ids[rows], "attention_mask": torch.ones_like(ids[rows])})

    budget = Budget(_TOKENS * _TOKENS)  # all in one batch, whatever its length
    return Passes([tokens] * shape[0], make, lambda _: "a sequence", budget)


def _seconds(model: PreTrainedModel, passes: Passes[_MadeUp]) -> float:
    clock = time.process_time if model.device.type == "cpu" else time.perf_counter
    batches = passes.batches()
    start = clock()
    with torch.inference_mode():
        for _ in passes.run(batches, lambda batch: encoder_of(model)(**batch.inputs)):
            pass
        if model.device.type == "cuda":
            torch.cuda.synchronize()
    return clock() - start
