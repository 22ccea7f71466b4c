"""The attention of one layer as scores read it: each thing worked out once, however many ask."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from headroles.roles import Plan

T = TypeVar("T")


def read_scores(attention: Tensor, plan: Plan) -> Tensor:
    """Scores (batch, heads, roles) of one layer, the columns those of the ``plan``.

    ``attention`` (batch, heads, query, key) has rows of real queries that sum to 1 over real
    keys; rows of padding may hold anything finite. Scores of roles that an example does not have
    mean nothing. The plan must be where the attention is: see `on_device`.
    """
    key_sets: Any = plan.key_sets
    constants: list[Any] = [part.constants for part in plan.parts]
    layer = AttentionLayer(attention.float(), key_sets)
    read = torch.cat([part.read(layer) for part in plan.parts], dim=-1)
    return read + torch.cat(constants, dim=-1)[:, None]


class AttentionLayer:
    """Attention (batch, heads, query, key) in float32, and ``key_sets`` (batch, key, K) of 0 and 1.

    What it offers is described at `headroles.roles.sieve.Layer`.
    """

    def __init__(self, attention: Tensor, key_sets: Tensor) -> None:
        self.attention = attention
        self.key_sets = key_sets

    def at(self, pairs: Tensor) -> Tensor:
        """(batch, heads, P): attention at ``pairs`` (batch, P) of query * N + key."""
        batch, heads, _, _ = self.attention.shape
        index = pairs[:, None].expand(-1, heads, -1)
        return self.attention.reshape(batch, heads, -1).gather(2, index)

    @cached_property
    def masses(self) -> Tensor:
        """(batch, heads, query, K)."""
        return self._sums(self.attention)

    @cached_property
    def entropies(self) -> Tensor:
        """(batch, heads, query) in nats, 0 ln 0 being 0."""
        # A weight below the smallest normal number counts as 0, whose logarithm is not needed.
        tiny = torch.finfo(self.attention.dtype).tiny
        logarithms = self.attention.clamp_min(tiny).log_()
        return -torch.einsum("bhqk,bhqk->bhq", self.attention, logarithms)

    @cached_property
    def entropies_within(self) -> Tensor:
        """(batch, heads, query, K) in nats.

        The attention within a set is taken as a whole: divided by its mass. Where there is none at
        all, it is as uneven as can be: 0.
        """
        there = self.masses > torch.finfo(self.masses.dtype).tiny
        # -sum p/m ln(p/m) = (-sum p ln p) / m + ln m
        safe = self.masses.where(there, 1.0)
        sums = self._sums(torch.special.entr(self.attention))
        return (sums / safe + safe.log()).where(there, 0.0)

    def _sums(self, of_pairs: Tensor) -> Tensor:
        """Sums (batch, heads, query, K) over the keys of each set."""
        batch, heads, width, _ = of_pairs.shape
        sums = torch.bmm(of_pairs.reshape(batch, heads * width, width), self.key_sets)
        return sums.view(batch, heads, width, -1)


def on_device(value: T, device: torch.device) -> T:
    """``value`` with every array in it as a tensor on ``device``; on the CPU they share memory."""
    moved: Any = value
    if isinstance(value, np.ndarray):
        moved = torch.from_numpy(np.ascontiguousarray(value)).to(device, non_blocking=True)
    elif isinstance(value, tuple):
        moved = tuple(on_device(one, device) for one in value)
    elif is_dataclass(value) and not isinstance(value, type):
        own = {one.name: getattr(value, one.name) for one in fields(value)}
        moved = replace(value, **{name: on_device(one, device) for name, one in own.items()})
    return moved  # type: ignore[no-any-return]
