"""Examples in batches, and the inputs of the model that they make."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from headroles.encoding import EncodedExample, pad

_LINEAR_WIDTH = 64


def batches_by_length(examples: Sequence[EncodedExample], batch_tokens: int) -> list[list[int]]:
    """Places of ``examples`` in batches of about equal length, the longest first.

    A batch holds at most ``batch_tokens`` tokens, padding included; of examples longer than
    ``_LINEAR_WIDTH`` fewer, as attention then outweighs what is linear in the tokens. A single
    example may exceed the bound. With the longest first, what they needed serves all others.
    """
    batches: list[list[int]] = []
    budget = 0.0
    for row in sorted(range(len(examples)), key=lambda row: -len(examples[row])):
        if budget < 1:
            width = len(examples[row])
            budget = batch_tokens / (width * max(1.0, width / _LINEAR_WIDTH))
            batches.append([])
        batches[-1].append(row)
        budget -= 1
    return batches


def collate(examples: Sequence[EncodedExample], pad_id: int) -> dict[str, Tensor]:
    """Inputs of the model, padded at the end to the longest example, on the CPU."""
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
