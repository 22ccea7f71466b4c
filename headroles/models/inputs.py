"""Moments of the inputs of the query and key projections, over real tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headroles.models.factorisation import InputMoments
from headroles.models.families import encoder_of
from headroles.models.sites import Site

ReadSums: TypeAlias = Callable[[Mapping[str, Tensor]], "list[tuple[int, Sums]]"]
"""Function from inputs of the model with an ``attention_mask`` to the sums to add to each site."""


def collect_moments(
    model: PreTrainedModel,
    sites: Sequence[Site],
    over_batches: Callable[[ReadSums], Iterable[list[tuple[int, Sums]]]],
) -> tuple[InputMoments, ...]:
    """Compute the moments of the inputs of each site, over the real tokens of all batches.

    ``over_batches`` applies the function that it is given to each batch.
    """
    totals = [Sums.none(site.maps.query.shape[2]) for site in sites]
    n_reads = sum(len(site.layers) for site in sites)
    found: list[tuple[int, Sums]] = []
    mask = torch.zeros(0)

    def reader(number: int) -> Callable[[nn.Module, Any], None]:
        def read(module: nn.Module, inputs: Any) -> None:
            found.append((number, Sums.of(inputs[0], mask)))
            if len(found) == n_reads:
                raise _AllRead

        return read

    def read(batch: Mapping[str, Tensor]) -> list[tuple[int, Sums]]:
        nonlocal mask
        mask = batch["attention_mask"].bool()
        found.clear()
        with suppress(_AllRead):
            encoder_of(model)(**batch)
        return list(found)

    with ExitStack() as stack:
        for number, site in enumerate(sites):
            stack.callback(site.query.register_forward_pre_hook(reader(number)).remove)
        stack.enter_context(torch.inference_mode())
        for sums in over_batches(read):
            for number, own in sums:
                totals[number].add(own)
    return tuple(total.moments() for total in totals)


class _AllRead(Exception):
    """Exception that ends a forward pass once all inputs have been read."""


@dataclass
class Sums:
    """Sums over tokens, in double precision."""

    n: int
    total: Tensor  # (D,)
    squares: Tensor  # (D, D)
    between: Tensor  # (D, D): squares of sums of sequences, each divided by its tokens

    @classmethod
    def none(cls, width: int) -> Sums:
        """Return the sums of no tokens."""
        zeros = torch.zeros(width, width, dtype=torch.float64)
        return cls(0, torch.zeros(width, dtype=torch.float64), zeros, zeros.clone())

    @classmethod
    def of(cls, states: Tensor, mask: Tensor) -> Sums:
        """Sum states (batch, tokens, D) over the real tokens, which ``mask`` marks."""
        real = (states * mask[..., None]).cpu()
        lengths = mask.sum(dim=1, keepdim=True).cpu()
        tokens, sums = real.flatten(0, 1), real.sum(dim=1).double()
        squares = (tokens.T @ tokens).double()
        return cls(int(lengths.sum()), sums.sum(dim=0), squares, (sums / lengths).T @ sums)

    def add(self, other: Sums) -> None:
        """Add the sums of other tokens."""
        self.n += other.n
        self.total += other.total
        self.squares += other.squares
        self.between += other.between

    def moments(self) -> InputMoments:
        """Return the moments of all tokens."""
        mean = self.total / self.n
        covariance = self.squares / self.n - torch.outer(mean, mean)
        within = (self.squares - self.between) / self.n
        return InputMoments(mean.numpy(), covariance.numpy(), within.numpy())
