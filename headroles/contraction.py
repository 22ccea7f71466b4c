"""Attention weights x sieves -> one number per example, head and role."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headroles.sieves import Sieves


@dataclass(frozen=True)
class SieveTensors:
    """The weights of `Sieves` where the model runs; shapes as there."""

    key_sets: Tensor
    set_weights: Tensor
    block_weights: Tensor
    pairs: Tensor
    pair_weights: Tensor
    has_blocks: bool

    @classmethod
    def of(cls, sieves: Sieves, device: torch.device) -> SieveTensors:
        """Copy ``sieves`` to ``device``; on the CPU they share their memory."""

        def move(array: NDArray[np.generic]) -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(array)).to(device, non_blocking=True)

        return cls(
            key_sets=move(sieves.key_sets),
            set_weights=move(sieves.set_weights),
            block_weights=move(sieves.block_weights),
            pairs=move(sieves.pairs),
            pair_weights=move(sieves.pair_weights),
            has_blocks=sieves.has_blocks,
        )


def contract(attention: Tensor, sieves: SieveTensors) -> Tensor:
    """Scores (batch, heads, roles) of one layer, in the order of `role_ids`.

    ``attention`` (batch, heads, query, key) has rows of real queries that sum to 1 over real
    keys; rows of padding may hold anything finite. Scores of roles that an example does not have
    are 0 and mean nothing.
    """
    batch, heads, width, _ = attention.shape
    attention = attention.float()
    masses = torch.bmm(attention.reshape(batch, heads * width, width), sieves.key_sets)
    masses = masses.view(batch, heads, -1)
    delimiters = torch.bmm(masses, sieves.set_weights)
    blocks = _block_scores(attention, masses, sieves)
    picked = attention.reshape(batch, heads, -1).gather(
        2, sieves.pairs[:, None, :].expand(-1, heads, -1)
    )
    by_pairs = torch.bmm(picked, sieves.pair_weights)
    return torch.cat([by_pairs[..., :1], delimiters, blocks, by_pairs[..., 1:]], dim=-1)


def _block_scores(attention: Tensor, masses: Tensor, sieves: SieveTensors) -> Tensor:
    """(batch, heads, 2): the mean row ratio, each row times its entropy; and the mean ratio."""
    batch, heads, width, _ = attention.shape
    if not sieves.has_blocks:
        return masses.new_zeros(batch, heads, 2)
    by_set = masses.view(batch, heads, width, -1) * sieves.block_weights[:, None]
    ratios = by_set.sum(dim=-1)
    return torch.stack([(ratios * row_entropy(attention)).sum(-1), ratios.sum(-1)], dim=-1)


def row_entropy(attention: Tensor) -> Tensor:
    """Entropy of each row in nats, 0 ln 0 being 0."""
    # A weight below the smallest normal number counts as 0, whose logarithm is not needed.
    logarithms = attention.clamp_min(torch.finfo(attention.dtype).tiny).log_()
    return -torch.einsum("bhqk,bhqk->bhq", attention, logarithms)
