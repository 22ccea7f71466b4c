"""Moments of what goes into the query and key projections, over real tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headroles.models.factorisation import Moments
from headroles.models.sites import Site


def collect_moments(
    model: PreTrainedModel, sites: Sequence[Site], batches: Iterable[Mapping[str, Tensor]]
) -> tuple[Moments, ...]:
    """Moments of the inputs of each site, over the real tokens of ``batches``.

    A batch is inputs of the model with an ``attention_mask``.
    """
    sums = [_Sums.of(site) for site in sites]
    mask, unread = torch.zeros(0), 0

    def reader(own: _Sums) -> Callable[[nn.Module, Any], None]:
        def read(module: nn.Module, inputs: Any) -> None:
            nonlocal unread
            own.add(inputs[0], mask)
            unread -= 1
            if not unread:
                raise _AllRead

        return read

    with ExitStack() as stack:
        for site, own in zip(sites, sums, strict=True):
            stack.callback(site.query.register_forward_pre_hook(reader(own)).remove)
        stack.enter_context(torch.inference_mode())
        for batch in batches:
            mask, unread = batch["attention_mask"].bool(), sum(len(site.layers) for site in sites)
            with suppress(_AllRead):
                model.base_model(**batch)
    return tuple(own.moments() for own in sums)


class _AllRead(Exception):
    """Ends a forward pass whose rest puts in nothing more."""


@dataclass
class _Sums:
    """Running sums, in double precision."""

    n: int
    total: Tensor  # (D,)
    squares: Tensor  # (D, D)
    between: Tensor  # (D, D): squares of sums of sequences, each divided by its tokens

    @classmethod
    def of(cls, site: Site) -> _Sums:
        width = site.maps.query.shape[2]
        zeros = torch.zeros(width, width, dtype=torch.float64)
        return cls(0, torch.zeros(width, dtype=torch.float64), zeros, zeros.clone())

    def add(self, states: Tensor, mask: Tensor) -> None:
        """Add states (batch, tokens, D), of which ``mask`` tells the real ones."""
        real = (states * mask[..., None]).cpu()
        lengths = mask.sum(dim=1, keepdim=True).cpu()
        tokens, sums = real.flatten(0, 1), real.sum(dim=1).double()
        self.n += int(lengths.sum())
        self.total += sums.sum(dim=0)
        self.squares += (tokens.T @ tokens).double()
        self.between += (sums / lengths).T @ sums

    def moments(self) -> Moments:
        mean = self.total / self.n
        covariance = self.squares / self.n - torch.outer(mean, mean)
        within = (self.squares - self.between) / self.n
        return Moments(mean.numpy(), covariance.numpy(), within.numpy())
