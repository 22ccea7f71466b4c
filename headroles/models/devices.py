"""Choice of the device that a model runs on."""

from __future__ import annotations

import torch

from headroles.errors import UsageError


def choose_device(device: str) -> torch.device:
    """Return the device called ``device``; ``"auto"`` is the first of cuda, mps and cpu that works.

    Raises UsageError for a device that this machine does not have.
    """
    available = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if device == "auto":
        return torch.device(next(kind for kind, there in available.items() if there))
    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        raise UsageError(f"unknown device {device!r}; use auto, cpu, cuda or mps") from error
    absent_gpu = chosen.type == "cuda" and (chosen.index or 0) >= torch.cuda.device_count()
    if not available.get(chosen.type, False) or absent_gpu:
        raise UsageError(f"this machine has no usable {device}; use device='cpu' (--device cpu)")
    return chosen
