"""What another model of the same shape does differently, and what it costs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headroles.models import encoder_of, open_reader
from headroles.passes import Budget, ExampleBatch, OnProgress, Passes

if TYPE_CHECKING:
    from transformers import PreTrainedModel

LENGTHS = (32, 128, 512)
_TOKENS = 512
_REPEATS = 3


def divergences(
    before: PreTrainedModel,
    after: PreTrainedModel,
    passes: Passes[ExampleBatch],
    on_progress: OnProgress | None = None,
) -> NDArray[np.float64]:
    """(layers,): divergence of the attention of ``after`` from that of ``before``, in nats.

    Kullback-Leibler divergence of rows of attention, sum a ln(a / b), the mean over heads and
    real queries; NaN for a layer that has lost all its heads. Every model reads what its own
    layers below put out.
    """
    with open_reader(before) as first, open_reader(after) as second:

        def compare(batch: ExampleBatch) -> NDArray[np.float64]:
            real = batch.inputs["attention_mask"].bool()
            kept: list[Tensor] = []
            found: list[float] = []
            first.read(batch.inputs, lambda _, weights: kept.append(weights.clone()))
            second.read(
                batch.inputs,
                lambda layer, weights: found.append(_divergence(kept[layer], weights, real)),
            )
            return np.array(found)

        sums = np.zeros(first.n_layers)
        for _, of_batch in passes.over_all(compare, on_progress):
            sums += of_batch
        n_heads = np.array([len(heads) or np.nan for heads in first.kept])
    return np.asarray(sums / n_heads / sum(passes.lengths))


def _divergence(before: Tensor, after: Tensor, real: Tensor) -> float:
    """The divergence of rows, summed over heads and real queries; rows of 0 diverge by 0."""
    tiny = torch.finfo(torch.float32).tiny
    ratio = before.clamp_min(tiny).log() - after.clamp_min(tiny).log()
    per_row = (before * ratio).sum(dim=(1, 3))
    return float(per_row[real].double().sum())


def count_parameters(model: PreTrainedModel) -> int:
    """Numbers that make up the encoder."""
    return sum(one.numel() for one in encoder_of(model).parameters())


def multiplications(width: int, rank: int, tokens: int, sharing: int = 0) -> int:
    """Of the queries, keys and scores of one layer, for one sequence of ``tokens``.

    ``rank`` dimensions of all heads together, or shared by ``sharing`` heads.
    """
    projections = 2 * tokens * width * rank
    if not sharing:
        return projections + tokens**2 * rank
    return projections + sharing * rank * (tokens + tokens**2)


@dataclass(frozen=True)
class _MadeUp:
    """Sequences of tokens at random."""

    rows: list[int]
    inputs: dict[str, Tensor]


def time_passes(
    before: PreTrainedModel, after: PreTrainedModel, longest: int
) -> list[dict[str, Any]]:
    """Seconds that both encoders take for sequences of each of ``LENGTHS`` that they can have.

    The best of some passes, in turns, over 512 tokens in all: of the processor, which other
    programs disturb less than the clock; on other devices of the clock.
    """
    rows = []
    for tokens in (length for length in LENGTHS if length <= longest):
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
