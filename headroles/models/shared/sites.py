"""Sites of an encoder's queries and keys, the moments of their inputs, and their replacement."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headroles.errors import ModelSupportError
from headroles.models.families import Family, encoder_of, find_family
from headroles.models.heads.low_rank import LowRankScores, is_low_rank, replace_scores
from headroles.models.heads.projections import LayerProjections, find_projections, layers_that_share
from headroles.models.reports import AllRead
from headroles.models.shared.collaborative import saved_whole
from headroles.models.shared.factorisation import Factors, InputMoments, ScoreMaps

ReadSums: TypeAlias = Callable[[Mapping[str, Tensor]], "list[tuple[int, Sums]]"]
"""Function from inputs of the model with an ``attention_mask`` to the sums to add to each site."""


@dataclass(frozen=True)
class Site:
    """Attention of one layer, or of all layers that share it."""

    layers: tuple[int, ...]
    heads: tuple[int, ...]
    """Numbers of its heads."""
    path: str
    maps: ScoreMaps
    query: nn.Module
    """Module whose input is that of queries and keys."""


def find_sites(model: PreTrainedModel) -> tuple[Site, ...]:
    """Find the sites whose queries and keys can be replaced, in the order of layers.

    Layers that have lost all their heads have no site.

    Raises ModelSupportError for families with position terms in their scores, for models whose
    queries and keys are of low rank already, and as `find_projections`.
    """
    base = encoder_of(model)
    check_no_positions(find_family(model))
    if any(map(is_low_rank, base.modules())):
        raise ModelSupportError(
            "the queries and keys of this model are of low rank already; give the original model"
        )
    projections = find_projections(model)
    shared = layers_that_share(projections).values()
    sites = [_site(base, own, projections[own[0]]) for own in shared if projections[own[0]].heads]
    if not sites:
        raise ModelSupportError("this model has lost all its heads; give one that has some")
    return tuple(sites)


def _site(base: PreTrainedModel, layers: list[int], found: LayerProjections) -> Site:
    assert found.query is not None
    assert found.key is not None
    with torch.no_grad():
        weights = (found.query.weight, found.key.weight, found.query.bias)
        maps = ScoreMaps(*(one.double().cpu().numpy() for one in weights))
    linear = found.query.linear
    path = next(path for path, module in base.named_modules() if module is linear)
    return Site(tuple(layers), found.heads, path.rpartition(".")[0], maps, linear)


def check_no_positions(family: Family) -> None:
    """Raise ModelSupportError for a family whose scores depend on more than queries and keys."""
    if family.has_own_forward:
        raise ModelSupportError(
            f"the attention of {family.name} cannot be run with shared queries and keys; give a "
            "model of another family, such as BERT, RoBERTa, DistilBERT or BART"
        )
    if family.positions:
        raise ModelSupportError(
            f"the attention scores of {family.name} have {family.positions}, so they depend on "
            "more than queries and keys, and sharing these would change them; give a model without "
            "position terms in its scores, such as BERT, RoBERTa or DistilBERT"
        )


def install(model: PreTrainedModel, site: Site, factors: Factors) -> None:
    """Replace queries and keys of one site of ``model`` by ``factors``."""
    heads, _, width = site.maps.query.shape
    scores = LowRankScores(factors.method, width, heads, factors.rank)
    scores.set(factors)
    replace_scores(saved_whole(model), site.path, scores)


def collect_moments(
    model: PreTrainedModel,
    sites: Sequence[Site],
    over_batches: Callable[[ReadSums], Iterable[list[tuple[int, Sums]]]],
) -> tuple[InputMoments, ...]:
    """Compute the moments of the inputs of each site, over the real tokens of all batches.

    ``over_batches`` applies the function that it is given to each batch.
    """
    totals: list[Sums | None] = [None] * len(sites)
    n_reads = sum(len(site.layers) for site in sites)
    found: list[tuple[int, Sums]] = []
    mask = torch.zeros(0)

    def reader(number: int) -> Callable[[nn.Module, Any], None]:
        def read(module: nn.Module, inputs: Any) -> None:
            found.append((number, Sums.of(inputs[0], mask)))
            if len(found) == n_reads:
                raise AllRead

        return read

    def read(batch: Mapping[str, Tensor]) -> list[tuple[int, Sums]]:
        nonlocal mask
        mask = batch["attention_mask"].bool()
        found.clear()
        with suppress(AllRead):
            encoder_of(model)(**batch)
        return list(found)

    with ExitStack() as stack:
        for number, site in enumerate(sites):
            stack.enter_context(site.query.register_forward_pre_hook(reader(number)))
        stack.enter_context(torch.inference_mode())
        for sums in over_batches(read):
            for number, own in sums:
                before = totals[number]
                totals[number] = own if before is None else Sums(*map(operator.add, before, own))
    return tuple(total.moments() for total in totals if total is not None)


class Sums(NamedTuple):
    """Sums over tokens, in double precision."""

    n: int
    total: Tensor
    """(D,): sum of the inputs."""
    squares: Tensor
    """(D, D): sum of their outer products."""
    between: Tensor
    """(D, D): sum over sequences of the outer products of their sums, divided by their lengths."""

    @classmethod
    def of(cls, states: Tensor, mask: Tensor) -> Sums:
        """Sum states (batch, tokens, D) over the real tokens, which ``mask`` marks."""
        real = (states * mask[..., None]).cpu()
        lengths = mask.sum(dim=1, keepdim=True).cpu()
        tokens, sums = real.flatten(0, 1), real.sum(dim=1).double()
        squares = (tokens.T @ tokens).double()
        return cls(int(lengths.sum()), sums.sum(dim=0), squares, (sums / lengths).T @ sums)

    def moments(self) -> InputMoments:
        """Return the moments of all tokens."""
        mean = self.total / self.n
        covariance = self.squares / self.n - torch.outer(mean, mean)
        within = (self.squares - self.between) / self.n
        return InputMoments(mean.numpy(), covariance.numpy(), within.numpy())
