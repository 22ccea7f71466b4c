"""Arrays and tensors on their way between host and device."""

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
    """``value`` with every array in it as a tensor, still on the CPU, from where it moves fast."""
    is_pinned = device.type == "cuda"

    def made(one: Any) -> Any:
        if isinstance(one, np.ndarray):
            one = torch.from_numpy(np.ascontiguousarray(one))
        return one.pin_memory() if is_pinned and isinstance(one, Tensor) else one

    return _changed(value, made)


def on_device(value: T, device: torch.device) -> T:
    """``value`` with every tensor in it on ``device``; the copies may go on after the return."""

    def moved(one: Any) -> Any:
        return one.to(device, non_blocking=True) if isinstance(one, Tensor) else one

    return _changed(value, moved)


def to_host(value: Tensor) -> Callable[[], NDArray[Any]]:
    """Begin to copy ``value`` to the CPU; calling what is returned waits for it, and no longer."""
    if value.device.type != "cuda":
        return lambda: value.cpu().numpy()
    copy = value.to("cpu", non_blocking=True)  # into pinned memory, as such copies are
    arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
    arrived.record(torch.cuda.current_stream(value.device))

    def wait() -> NDArray[Any]:
        # A plain copy would come after all that the device was given since.
        arrived.synchronize()
        return copy.numpy()

    return wait


def _changed(value: T, change: Callable[[Any], Any]) -> T:
    """``value`` with a change made to everything in its dataclasses, tuples and mappings."""
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
