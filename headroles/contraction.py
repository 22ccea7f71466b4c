"""Attention weights x sieves -> one number per example, head and role."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headroles.sieves import ContrastWeights, Sieves


@dataclass(frozen=True)
class ContrastTensors:
    """The weights of `ContrastWeights` where the model runs; names and shapes as there."""

    pairs: Tensor
    pair_weights: Tensor
    run_weights: Tensor
    lending: Tensor

    @classmethod
    def of(cls, contrasts: ContrastWeights, device: torch.device) -> ContrastTensors:
        """Copy ``contrasts`` to ``device``; on the CPU they share their memory."""
        return cls(
            pairs=_move(contrasts.pairs, device),
            pair_weights=_move(contrasts.pair_weights, device),
            run_weights=_move(contrasts.run_weights, device),
            lending=_move(contrasts.lending, device),
        )


@dataclass(frozen=True)
class SieveTensors:
    """The weights of `Sieves` where the model runs; names and shapes as there."""

    key_sets: Tensor
    set_weights: Tensor
    block_weights: Tensor
    evenness_weights: Tensor | None
    pairs: Tensor
    local_weights: Tensor
    arc_weights: Tensor
    contrasts: ContrastTensors | None
    constants: Tensor
    has_blocks: bool

    @classmethod
    def of(cls, sieves: Sieves, device: torch.device) -> SieveTensors:
        """Copy ``sieves`` to ``device``; on the CPU they share their memory."""
        evenness, contrasts = sieves.evenness_weights, sieves.contrasts
        return cls(
            key_sets=_move(sieves.key_sets, device),
            set_weights=_move(sieves.set_weights, device),
            block_weights=_move(sieves.block_weights, device),
            evenness_weights=None if evenness is None else _move(evenness, device),
            pairs=_move(sieves.pairs, device),
            local_weights=_move(sieves.local_weights, device),
            arc_weights=_move(sieves.arc_weights, device),
            contrasts=None if contrasts is None else ContrastTensors.of(contrasts, device),
            constants=_move(sieves.constants, device),
            has_blocks=sieves.has_blocks,
        )


def _move(array: NDArray[np.generic], device: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(device, non_blocking=True)


def contract(attention: Tensor, sieves: SieveTensors) -> tuple[Tensor, Tensor]:
    """Scores (batch, heads, roles) of one layer, in the order of `role_ids`.

    ``attention`` (batch, heads, query, key) has rows of real queries that sum to 1 over real
    keys; rows of padding may hold anything finite. Scores of roles that an example does not have
    mean nothing.

    The second result (batch, heads, 2 * distances) is what the controls get, in sum, at each
    distance at which some sentence lacks them: first with the later word as key, then as query.
    """
    batch, heads, width, _ = attention.shape
    attention = attention.float()
    masses = torch.bmm(attention.reshape(batch, heads * width, width), sieves.key_sets)
    masses = masses.view(batch, heads, -1)
    delimiters = torch.bmm(masses, sieves.set_weights)
    blocks = _block_scores(attention, masses, sieves)
    at_window, at_arcs = _pick(attention, sieves.pairs).tensor_split(
        (sieves.local_weights.shape[1],), dim=2
    )
    local = torch.bmm(at_window, sieves.local_weights)
    syntactic = torch.bmm(at_arcs, sieves.arc_weights)
    parts = [local, delimiters, blocks, syntactic]
    lent = syntactic[..., :0]
    if sieves.contrasts is not None:
        taken, lent = _at_controls(attention, sieves.contrasts)
        parts.append(syntactic - taken)
    return torch.cat(parts, dim=-1) + sieves.constants[:, None], lent


def _pick(attention: Tensor, pairs: Tensor) -> Tensor:
    """(batch, heads, P): attention at ``pairs`` (batch, P) of query * N + key."""
    batch, heads, _, _ = attention.shape
    index = pairs[:, None].expand(-1, heads, -1)
    return attention.reshape(batch, heads, -1).gather(2, index)


def _at_controls(attention: Tensor, contrasts: ContrastTensors) -> tuple[Tensor, Tensor]:
    """What contrasts (batch, heads, R) take away, and what can be lent (batch, heads, 2 * W)."""
    batch, heads, _, _ = attention.shape
    _, length, n_runs = contrasts.pair_weights.shape
    picked = _pick(attention, contrasts.pairs).view(batch, heads, 2, length, n_runs)
    runs = picked.mul_(contrasts.pair_weights[:, None, None]).sum(dim=3)
    taken = torch.bmm(runs.view(batch, heads, -1), contrasts.run_weights)
    lent = torch.bmm(runs.view(batch, heads * 2, -1), contrasts.lending)
    return taken, lent.view(batch, heads, -1)


def _block_scores(attention: Tensor, masses: Tensor, sieves: SieveTensors) -> Tensor:
    """(batch, heads, 2): ``block`` and what stands beside it.

    For the bias scores the mean row ratio, each row times its entropy, and the mean ratio; for
    the excess scores the mean row value, and the mean evenness within the segment.
    """
    batch, heads, width, _ = attention.shape
    if not sieves.has_blocks:
        return masses.new_zeros(batch, heads, 2)
    masses = masses.view(batch, heads, width, -1)
    rows = (masses * sieves.block_weights[:, None]).sum(dim=-1)
    if sieves.evenness_weights is None:
        return torch.stack([(rows * row_entropy(attention)).sum(-1), rows.sum(-1)], dim=-1)
    evenness = entropy_within(attention, masses, sieves.key_sets) * sieves.evenness_weights[:, None]
    return torch.stack([rows.sum(-1), evenness.sum((-2, -1))], dim=-1)


def entropy_within(attention: Tensor, masses: Tensor, key_sets: Tensor) -> Tensor:
    """Entropy (batch, heads, query, sets) in nats of each row's attention within each key set.

    The attention within a set is taken as a whole: divided by its ``masses``, which are shaped
    like the result. Where there is none at all, it is as uneven as can be: 0.
    """
    batch, heads, width, _ = attention.shape
    terms = torch.special.entr(attention).view(batch, heads * width, width)
    sums = torch.bmm(terms, key_sets).view(batch, heads, width, -1)
    there = masses > torch.finfo(masses.dtype).tiny
    # -sum p/m ln(p/m) = (-sum p ln p) / m + ln m
    safe = masses.where(there, 1.0)
    return (sums / safe + safe.log()).where(there, 0.0)


def row_entropy(attention: Tensor) -> Tensor:
    """Entropy of each row in nats, 0 ln 0 being 0."""
    # A weight below the smallest normal number counts as 0, whose logarithm is not needed.
    logarithms = attention.clamp_min(torch.finfo(attention.dtype).tiny).log_()
    return -torch.einsum("bhqk,bhqk->bhq", attention, logarithms)
