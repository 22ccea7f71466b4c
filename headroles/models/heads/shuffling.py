"""Heads in random order over all layers: each keeps its weights, in a layer it was not made for."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel

from headroles.errors import ModelSupportError
from headroles.models.heads.linears import weight_of
from headroles.models.heads.projections import (
    LayerProjections,
    Projection,
    find_projections,
    layers_that_share,
)
from headroles.models.heads.stack import find_stack


def shuffle_heads(model: PreTrainedModel, seed: int) -> None:
    """Put all heads of a model in random order over all layers.

    A head takes its queries, keys, values and outputs along; nothing else changes.

    Raises ModelSupportError for a family whose projections are unknown, and where heads cannot be
    moved: layers are one module, queries and keys are of low rank, heads share keys, or have
    further weights for positions.
    """
    stack = find_stack(model)
    layers = find_projections(stack)
    if stack.paths.positions or len(layers_that_share(layers)) < len(layers):
        raise ModelSupportError(f"{type(model).__name__} has heads that cannot change their layer")
    heads = torch.Generator().manual_seed(seed)
    order = torch.randperm(sum(len(layer.columns) for layer in layers), generator=heads)
    maps = zip(*(_maps_of(layer, model) for layer in layers), strict=True)
    with torch.no_grad():
        for of_layers in maps:
            _shuffle_rows(of_layers, order)
        _shuffle_outputs(layers, order)


def _maps_of(layer: LayerProjections, model: PreTrainedModel) -> list[Projection]:
    """Return queries, keys and values of a layer, each with rows for every head."""
    maps = [part for part in (layer.query, layer.key, layer.value) if part is not None]
    if len(maps) < 3 or any(len(part.rows) != len(layer.columns) for part in maps):
        raise ModelSupportError(f"{type(model).__name__} has heads that share queries or keys")
    return maps


def _shuffle_rows(maps: Sequence[Projection], order: Tensor) -> None:
    """Put the rows of all heads, and their biases, in this order over the layers."""
    n_heads = [len(part.rows) for part in maps]
    weights, biases = (
        torch.cat(parts)[order.to(parts[0].device)]
        for parts in ([part.weight for part in maps], [part.bias for part in maps])
    )
    for part, weight, bias in zip(
        maps, torch.split(weights, n_heads), torch.split(biases, n_heads), strict=True
    ):
        weight_of(part.linear)[part.rows] = weight
        if part.bias_apart is not None:
            part.bias_apart.copy_(bias.reshape(part.bias_apart.shape))
        elif part.linear.bias is not None:
            part.linear.bias[part.rows] = bias


def _shuffle_outputs(layers: Sequence[LayerProjections], order: Tensor) -> None:
    """Put the weights of all heads in the outputs in this order over the layers."""
    weights = torch.cat([layer.output_weight for layer in layers])[
        order.to(layers[0].columns.device)
    ]
    n_heads = [len(layer.columns) for layer in layers]
    for layer, of_heads in zip(layers, torch.split(weights, n_heads), strict=True):
        weight_of(layer.output)[:, layer.columns] = of_heads.transpose(0, 1)
