"""Batches of examples, the inputs of the model for them, and their way to the device and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headroles.encoding import EncodedExample, collate
from headroles.models.loading.encoder import LoadedEncoder
from headroles.passes.loop import Budget, Passes

T = TypeVar("T")


def as_tensors(value: Any, device: torch.device) -> Any:
    """Convert every array in ``value`` to a tensor on the CPU, pinned for fast transfer."""
    is_pinned = device.type == "cuda"

    def made(one: Any) -> Any:
        if isinstance(one, np.ndarray):
            one = torch.from_numpy(np.ascontiguousarray(one))
        return one.pin_memory() if is_pinned and isinstance(one, Tensor) else one

    return _changed(value, made)


def on_device(value: T, device: torch.device) -> T:
    """Move every tensor in ``value`` to ``device``; the copies may finish after the return."""

    def moved(one: Any) -> Any:
        return one.to(device, non_blocking=True) if isinstance(one, Tensor) else one

    return _changed(value, moved)


def to_host(value: Tensor) -> Callable[[], NDArray[Any]]:
    """Start copying ``value`` to the CPU; the returned function waits for this copy alone."""
    if value.device.type != "cuda":
        return lambda: value.cpu().numpy()
    copy = value.to("cpu", non_blocking=True)  # such copies go to pinned memory
    arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
    arrived.record(torch.cuda.current_stream(value.device))

    def wait() -> NDArray[Any]:
        # a plain copy would also wait for all work given to the device since
        arrived.synchronize()
        return copy.numpy()

    return wait


def _changed(value: T, change: Callable[[Any], Any]) -> T:
    """Apply ``change`` to everything in the dataclasses, tuples and mappings of ``value``."""
    found: Any = value
    if isinstance(value, tuple):
        found = tuple(_changed(one, change) for one in value)
    elif isinstance(value, dict):
        found = {name: _changed(one, change) for name, one in value.items()}
    elif is_dataclass(value) and not isinstance(value, type):
        own = {one.name: getattr(value, one.name) for one in fields(value)}
        found = replace(value, **{name: _changed(one, change) for name, one in own.items()})
    else:
        found = change(value)
    return found  # type: ignore[no-any-return]


@dataclass(frozen=True)
class ExampleBatch:
    """Examples that run together: their places among all, and the inputs of the model."""

    indices: list[int]
    examples: list[EncodedExample]
    inputs: dict[str, Tensor]


def passes_over(
    examples: Sequence[EncodedExample], encoder: LoadedEncoder, budget: Budget
) -> Passes[ExampleBatch]:
    """Return the passes that run the encoder over these examples."""

    def make(indices: list[int]) -> ExampleBatch:
        own = [examples[index] for index in indices]
        arrays = collate(own, encoder.tokenizer.pad_token_id or 0)
        inputs = as_tensors(arrays, encoder.device)
        return ExampleBatch(indices, own, on_device(inputs, encoder.device))

    return Passes(
        [len(example) for example in examples],
        make,
        lambda index: f"the example {examples[index].id!r}",
        budget,
    )
