"""Transfer of arrays and tensors between host and device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

T = TypeVar("T")


def as_tensors(value: T, device: torch.device) -> T:
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
