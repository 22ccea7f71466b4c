"""Moments of what goes into the query and key projections, over real tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
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
    mask = torch.zeros(0)

    def reader(own: _Sums) -> object:
        return lambda module, inputs: own.add(inputs[0], mask)

    handles = [
        site.query.register_forward_pre_hook(reader(own))  # type: ignore[arg-type]
        for site, own in zip(sites, sums, strict=True)
    ]
    try:
        with torch.inference_mode():
            for batch in batches:
                mask = batch["attention_mask"].bool()
                model.base_model(**batch)
    finally:
        for handle in handles:
            handle.remove()
    return tuple(own.moments() for own in sums)


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
