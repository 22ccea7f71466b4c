"""Attention as another machine might compute it: each weight times 1 plus a little noise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor

from headroles.models.attention.interface import Pass

MACHINES = 3e-7
"""What the last digits of float32 weights differ by: no test of numbers may fail over it."""
MISTAKE = 1e-3
"""More than any machine adds: every test of numbers must fail."""

_levels: list[float] = [0.0]


def with_noise(attention: Tensor) -> Tensor:
    """Attention times 1 plus noise, the same for the same shape; itself if none was asked for."""
    if not _levels[-1] or attention.is_meta:
        return attention
    generator = torch.Generator().manual_seed(attention.numel())
    noise = 2 * torch.rand(attention.shape, generator=generator, dtype=torch.float64) - 1
    return (attention * (1 + _levels[-1] * noise).to(attention.device)).to(attention.dtype)


@contextmanager
def added(level: float) -> Iterator[None]:
    """Weights are read with noise, however they are reached: by interface or by hook."""
    plain = Pass.next_layer

    def next_layer(this: Pass, weights: Tensor) -> None:
        plain(this, weights if this.n_layers is None else with_noise(weights))

    _levels.append(level)
    with pytest.MonkeyPatch.context() as patch:
        if level:
            patch.setattr(Pass, "next_layer", next_layer)
        yield
    _levels.pop()
