"""Sites of an encoder's queries and keys, and their replacement by others of low rank."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from transformers import PreTrainedModel

from headroles.errors import ModelSupportError
from headroles.models.collaborative import saved_whole
from headroles.models.factorisation import Factors, ScoreMaps
from headroles.models.families import Family, encoder_of, find_family
from headroles.models.low_rank import is_low_rank, make_scores, replace_scores
from headroles.models.projections import LayerProjections, find_projections


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


def find_sites(model: PreTrainedModel, n_heads: int) -> tuple[Site, ...]:
    """Find the sites whose queries and keys can be replaced, in the order of layers.

    Layers that have lost all their heads have no site.

    Raises ModelSupportError for families with position terms in their scores, for models whose
    queries and keys are of low rank already, and as `find_projections`.
    """
    base, family = encoder_of(model), find_family(model)
    refuse_positions(family)
    if any(map(is_low_rank, base.modules())):
        raise ModelSupportError(
            "the queries and keys of this model are of low rank already; give the original model"
        )
    layers_of: dict[nn.Module, list[int]] = {}
    projections = find_projections(base, family, n_heads)
    for layer, found in enumerate(projections):
        if found.heads:
            layers_of.setdefault(found.output, []).append(layer)
    if not layers_of:
        raise ModelSupportError("this model has lost all its heads; give one that has some")
    paths = {module: path for path, module in base.named_modules()}
    return tuple(_site(paths, layers, projections[layers[0]]) for layers in layers_of.values())


def _site(paths: dict[nn.Module, str], layers: list[int], found: LayerProjections) -> Site:
    assert found.query is not None
    assert found.key is not None
    with torch.no_grad():
        weights = (found.query.weight, found.key.weight, found.query.bias)
        maps = ScoreMaps(*(one.double().cpu().numpy() for one in weights))
    linear = found.query.linear
    return Site(tuple(layers), found.heads, paths[linear].rpartition(".")[0], maps, linear)


def refuse_positions(family: Family) -> None:
    """Raise ModelSupportError for a family whose scores depend on more than queries and keys."""
    if family.has_own_forward:
        raise ModelSupportError(
            f"the attention of {family.name} cannot be run with shared queries and keys; families "
            "whose attention can are BERT, RoBERTa, DistilBERT or BART"
        )
    if family.positions:
        raise ModelSupportError(
            f"the attention scores of {family.name} have {family.positions}, so they are not of "
            "queries and keys alone, and sharing these would change them; families without "
            "position terms in the scores can be had, such as BERT, RoBERTa or DistilBERT"
        )


def install(model: PreTrainedModel, site: Site, factors: Factors) -> None:
    """Replace queries and keys of one site of ``model`` by ``factors``."""
    heads, _, width = site.maps.query.shape
    scores = make_scores(factors.method, width, heads, factors.rank)
    scores.set(factors)
    replace_scores(saved_whole(model), site.path, scores)
