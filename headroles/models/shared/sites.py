"""Sites of an encoder's queries and keys, the moments of their inputs, and their replacement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headroles.encoding import PAIR_MASK
from headroles.errors import ModelSupportError
from headroles.models.heads.gates import mask_of
from headroles.models.heads.low_rank import LowRankScores, is_low_rank, replace_scores, saved_whole
from headroles.models.heads.projections import find_projections, layers_that_share
from headroles.models.heads.stack import Stack
from headroles.models.options import DECODER, ENCODER
from headroles.models.shared.factorisation import Factors, InputMoments, ScoreMaps
from headroles.reach import Reach


@dataclass(frozen=True)
class Site:
    """Attention of one layer, or of all layers that share it."""

    layers: tuple[int, ...]
    heads: tuple[int, ...]
    """Numbers of its heads."""
    path: str
    maps: ScoreMaps
    query: nn.Module
    """Module whose input is that of queries, and of keys unless these are of another sequence."""
    key: nn.Module
    reach: Reach
    kind: str = ENCODER
    """Whether it is in the encoder, or in a decoder beside one."""


def find_sites(stack: Stack) -> tuple[Site, ...]:
    """Find the sites whose queries and keys can be replaced, in the order of layers.

    They are of the encoder, of the decoder or across, as the stack is.

    Layers that have lost all their heads have no site.

    Raises ModelSupportError for families with position terms in their scores, for models whose
    queries and keys are of low rank already, and as `find_projections`.
    """
    family = stack.family
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
    if stack.paths.fused:
        raise ModelSupportError(
            f"the queries and keys of {family.name} cannot be replaced: they are not linears of "
            "their own with the usual scale; give a model of another family, such as BERT or BART"
        )
    if any(map(is_low_rank, stack.part.modules())):
        raise ModelSupportError(
            "the queries and keys of this model are of low rank already; give the original model"
        )
    projections, sites = find_projections(stack), []
    paths = {module: path for path, module in stack.part.named_modules()}
    for layers in layers_that_share(projections).values():
        layer = projections[layers[0]]
        if layer.heads and layer.query is not None and layer.key is not None:
            parts = (layer.query.weight, layer.key.weight, layer.query.bias)
            maps = ScoreMaps(*(part.detach().double().cpu().numpy() for part in parts))
            path = paths[layer.query.linear].rpartition(".")[0]
            reach, part = stack.reaches[layers[0]], DECODER if stack.takes_targets else ENCODER
            linears = (layer.query.linear, layer.key.linear)
            sites.append(Site(tuple(layers), layer.heads, path, maps, *linears, reach, part))
    if not sites:
        raise ModelSupportError("this model has lost all its heads; give one that has some")
    return tuple(sites)


def install(model: PreTrainedModel, site: Site, factors: Factors) -> None:
    """Replace queries and keys of one site of ``model`` by ``factors``."""
    heads, _, width = site.maps.query.shape
    scores = LowRankScores(factors.method, width, heads, factors.rank)
    scores.set(factors)
    replace_scores(saved_whole(model), site.path, scores, site.kind)


@contextmanager
def reading_inputs(
    stack: Stack, sites: Sequence[Site]
) -> Iterator[Callable[[Mapping[str, Tensor]], list[tuple[int, Sums]]]]:
    """Yield a function that runs a stack on a batch, and sums the inputs of each site.

    It returns the index of a site and the sums of real tokens, once for each of its layers. Inputs
    of keys across have the index of their site, and the number of sites added to it.
    """
    sums: list[tuple[int, Sums]] = []
    masks: dict[int, Tensor] = {}

    def keep(number: int, sequence: int, module: nn.Module, inputs: Any) -> None:
        sums.append((number, Sums.from_states(inputs[0], masks[sequence])))

    def read(batch: Mapping[str, Tensor]) -> list[tuple[int, Sums]]:
        sequences = {
            sequence for site in sites for sequence in (site.reach.queries, site.reach.keys)
        }
        masks.update({sequence: mask_of(batch, sequence).bool() for sequence in sequences})
        sums.clear()
        inputs = {name: values for name, values in batch.items() if name != PAIR_MASK}
        stack.base(**inputs, **stack.settings)
        return list(sums)

    with ExitStack() as context:
        for number, site in enumerate(sites):
            hook = partial(keep, number, site.reach.queries)
            context.enter_context(site.query.register_forward_pre_hook(hook))
            if site.reach.is_across:
                hook = partial(keep, len(sites) + number, site.reach.keys)
                context.enter_context(site.key.register_forward_pre_hook(hook))
        context.enter_context(torch.inference_mode())
        yield read


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
    def from_states(cls, states: Tensor, mask: Tensor) -> Sums:
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
