"""Divergence of two models' attention, and the size and cost of queries and keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from headroles.arrays import FloatArray
from headroles.models.attention.reader import open_reader
from headroles.models.families import encoder_of
from headroles.passes.examples import ExampleBatch
from headroles.passes.loop import Passes
from headroles.passes.options import OnProgress

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def divergences(
    before: PreTrainedModel,
    after: PreTrainedModel,
    passes: Passes[ExampleBatch],
    on_progress: OnProgress | None = None,
) -> FloatArray:
    """Return (layers,): divergence of the attention of ``after`` from that of ``before``, in nats.

    Kullback-Leibler divergence of rows of attention, sum a ln(a / b), the mean over heads and
    real queries; NaN for a layer without heads. Every layer reads the outputs of its model's layer
    below.
    """
    with open_reader(before) as first, open_reader(after) as second:

        def compare(batch: ExampleBatch) -> FloatArray:
            real = batch.inputs["attention_mask"].bool()
            of_first: list[Tensor] = []
            found: list[float] = []
            first.read(batch.inputs, lambda _, weights: of_first.append(weights.clone()))
            second.read(
                batch.inputs,
                lambda layer, weights: found.append(_divergence(of_first[layer], weights, real)),
            )
            return np.array(found)

        sums = np.zeros(first.n_layers)
        for _, of_batch in passes.over_all(compare, on_progress):
            sums += of_batch
        n_heads = np.array([len(heads) or np.nan for heads in first.remaining])
    return np.asarray(sums / n_heads / sum(passes.lengths))


def _divergence(before: Tensor, after: Tensor, real: Tensor) -> float:
    """Return the divergence of rows, summed over heads and real queries; rows of 0 diverge by 0."""
    tiny = torch.finfo(torch.float32).tiny
    ratio = before.clamp_min(tiny).log() - after.clamp_min(tiny).log()
    per_row = (before * ratio).sum(dim=(1, 3))
    return float(per_row[real].double().sum())


def count_parameters(model: PreTrainedModel) -> int:
    """Count the parameters of the encoder."""
    return sum(one.numel() for one in encoder_of(model).parameters())


def multiplications(width: int, rank: int, tokens: int, sharing: int = 0) -> int:
    """Count multiplications for queries, keys and scores of one layer and ``tokens`` tokens.

    ``rank`` dimensions of all heads together, or shared by ``sharing`` heads.
    """
    projections = 2 * tokens * width * rank
    if not sharing:
        return projections + tokens**2 * rank
    return projections + sharing * rank * (tokens + tokens**2)
