"""Examples in batches, and the inputs of the model that they make."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headroles.encoding import EncodedExample, pad
from headroles.errors import ModelError
from headroles.models import LoadedEncoder

_LINEAR_WIDTH = 64
_TOKENS = {"cpu": 1024, "cuda": 65536, "mps": 8192}


def tokens_for(device: torch.device, asked: int | None) -> int:
    """The most tokens of a batch: as many as are asked for, or what fits the device."""
    return asked or _TOKENS.get(device.type, 4096)


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


def refuse_not_finite(
    read: NDArray[np.floating], examples: Sequence[EncodedExample], encoder: LoadedEncoder
) -> None:
    """Raise ModelError if what was ``read`` (examples, layers, ...) is not finite anywhere."""
    if not np.isfinite(read).all():
        row, layer = np.argwhere(~np.isfinite(read))[0, :2]
        raise ModelError(
            f"attention of layer {layer} is not finite for example {examples[row].id!r}; "
            f"run the model in float32 (it ran in {encoder.model.dtype})"
        )
