"""Batches of examples, and their inputs for the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from headroles.encoding import EncodedExample, pad
from headroles.models import LoadedEncoder
from headroles.passes.loop import Budget, Passes
from headroles.passes.tensors import on_device


@dataclass(frozen=True)
class ExampleBatch:
    """Examples that run together: their places among all, and the inputs of the model."""

    rows: list[int]
    examples: list[EncodedExample]
    inputs: dict[str, Tensor]


def passes_over(
    examples: Sequence[EncodedExample], encoder: LoadedEncoder, budget: Budget
) -> Passes[ExampleBatch]:
    """Return the passes that run the encoder over these examples."""

    def make(rows: list[int]) -> ExampleBatch:
        own = [examples[row] for row in rows]
        inputs = collate(own, encoder.tokenizer.pad_token_id or 0)
        return ExampleBatch(rows, own, on_device(inputs, encoder.device))

    return Passes(
        [len(example) for example in examples],
        make,
        lambda row: f"the example {examples[row].id!r}",
        budget,
    )


def collate(examples: Sequence[EncodedExample], pad_id: int) -> dict[str, Tensor]:
    """Build the inputs of the model, padded at the end to the longest example, on the CPU."""
    input_ids = pad([example.input_ids for example in examples], pad_id)
    lengths = np.array([len(example) for example in examples])
    inputs = {
        "input_ids": input_ids,
        "attention_mask": (np.arange(input_ids.shape[1]) < lengths[:, None]).astype(np.int64),
    }
    type_ids = [example.token_type_ids for example in examples]
    if all(ids is not None for ids in type_ids):
        inputs["token_type_ids"] = pad([ids for ids in type_ids if ids is not None], 0)
    return {name: torch.from_numpy(array) for name, array in inputs.items()}
