"""Removal of heads from a model: their rows of queries, keys and values, and output columns.

The smaller model computes what the full model computed with the outputs of these heads at zero (the
bias of the output projection stays). Layers may lose all their heads.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from headroles.errors import ModelError, ModelSupportError, UsageError
from headroles.models.families import RETURNED, Family, Paths
from headroles.models.heads.gates import HeadSites
from headroles.models.heads.linears import take, weight_of
from headroles.models.heads.low_rank import is_low_rank
from headroles.models.heads.projections import LayerProjections, layers_that_share
from headroles.models.heads.remaining import (
    SETTINGS,
    Head,
    by_layer,
    check_heads,
    removed_by_kind,
    removed_heads,
)
from headroles.models.heads.stack import Stack, find_stack

_COUNTS = ("num_attention_heads", "n_heads", "num_heads")
"""Names by which attention modules store the number of their heads, if they do."""


def remove_heads(model: PreTrainedModel, heads: Iterable[Head]) -> None:
    """Remove ``heads`` from ``model``, by the numbers they had when it was trained.

    Heads that were removed already are ignored. The configuration lists all removed heads.

    Raises:
        UsageError: a head that the model never had, or one of a module that layers share (ALBERT)
            without the same head of the other layers.
        ModelSupportError: a family whose projections are unknown, or heads that the model mixes.
    """
    _remove(find_stack(model), heads)


def remove_rows(sites: HeadSites, heads: Iterable[Head]) -> None:
    """Remove heads of any kind of attention, by their rows in ``sites``.

    Raises errors as `remove_heads`.
    """
    wanted, first = list(heads), 0
    for stack in sites.stacks:
        rows = range(first, first + stack.n_layers)
        _remove(stack, [(row - first, head) for row, head in wanted if row in rows])
        first += stack.n_layers


def _remove(stack: Stack, heads: Iterable[Head]) -> None:
    """Remove heads of one kind of attention; raise errors as `remove_heads`."""
    wanted = [*heads, *removed_heads(stack.config, stack.kind)]
    sites, removed = HeadSites(stack), by_layer(wanted)
    _check_removal(sites, wanted)
    layers = sites.layers
    if removed:
        _give_all_layers_a_bias(layers)
    for number, *_ in layers_that_share(layers).values():
        heads_of_layer, lost = layers[number].heads, removed.get(number, ())
        indices = [index for index, head in enumerate(heads_of_layer) if head not in lost]
        if len(indices) < len(heads_of_layer):
            _cut_layer(layers[number], indices)
    _record(stack, wanted)


def _check_removal(sites: HeadSites, wanted: list[Head]) -> None:
    """Raise errors as `remove_heads` for heads ``wanted``."""
    check_heads(wanted, sites.n_layers, sites.n_heads)
    lost = by_layer(wanted)
    for first, *others in layers_that_share(sites.layers).values():
        for other in others:
            if lost.get(other) != lost.get(first):
                raise UsageError(
                    f"layers {first} and {other} share one attention module, so they can only lose "
                    "the same heads; name each head in all layers that share it"
                )


def _record(stack: Stack, removed: list[Head]) -> None:
    """List the removed heads in the configuration, and in the copy that an encoder has."""
    for config in (stack.whole.config, stack.config):
        listed = {str(layer): heads for layer, heads in by_layer(removed).items()}
        setattr(config, SETTINGS[stack.kind], listed)


def remove_listed(model: PreTrainedModel, heads: Mapping[str, list[Head]]) -> None:
    """Remove heads by kind, which its configuration lists, from a model that has them all."""
    for kind, of_kind in heads.items():
        stack = find_stack(model, kind)
        _record(stack, [])
        _remove(stack, of_kind)


def zero_heads(sites: HeadSites, heads: Iterable[Head]) -> None:
    """Set the output weights of ``heads`` to zero: the same function as their removal, full size.

    Any program can read such a model. Raises errors as `remove_heads`, and ModelError for a model
    that already lacks heads.
    """
    wanted = list(heads)
    lost = removed_by_kind(sites.stack.whole.config)
    if wanted and lost:
        raise ModelError(
            "heads can only be set to zero in a model that has all of its heads; this one lacks "
            f"{sum(map(len, lost.values()))}; give the model that they were removed from"
        )
    _check_removal(sites, wanted)
    with torch.no_grad():
        for row, numbers in by_layer(wanted).items():
            layer = sites.layers[row]
            weight_of(layer.output)[:, layer.columns[numbers].flatten()] = 0


def _cut_layer(layer: LayerProjections, indices: list[int]) -> None:
    """Keep only the heads at these indices of one layer."""
    find = layer.find
    family, paths = find.stack.family, find.stack.paths
    attention = find.module(paths.attention)
    if getattr(attention, "head_logits_proj", None) is not None:
        raise ModelSupportError(
            f"{paths.attention.format(find.layer)} mixes the attention of its heads, so that none "
            "can be taken out alone"
        )
    keys, columns = _keys_of(layer, indices), layer.columns[indices].flatten()
    for path, numbers in _rows_left(layer, indices, keys).items():
        find.replace(path, take(find.linear(path), numbers, dim=0))
    if is_low_rank(attention):
        attention.scores.keep(indices)
    embedding = getattr(attention, family.position_embedding or "none", None)
    if embedding is not None:
        left = embedding.weight.detach()[:, indices]
        embedding.weight = nn.Parameter(left, embedding.weight.requires_grad)
        embedding.embedding_dim = len(indices)
    for path in filter(None, (paths.query_bias, paths.value_bias)):
        values = cast(nn.Parameter, find.parameter(path)).data[columns]
        find.replace(path, nn.Parameter(values))
    find.replace(paths.output, take(layer.output, columns, dim=1))
    _set_sizes(attention, len(indices), len(keys), len(columns))
    if family.position_bias:
        # hooks accumulate if a layer is cut again: each counts heads after the one before it
        attention.register_forward_pre_hook(
            partial(_take_position_bias, family.position_bias, tuple(indices)), with_kwargs=True
        )
    if not indices and (family.read_through == RETURNED or family.needs_heads):
        attention.forward = partial(_attend_to_nothing, attention, family)


def _set_sizes(attention: Any, n_heads: int, n_keys: int, width: int) -> None:
    """Set the sizes that a module of attention stores: those of its heads, and of their outputs."""
    counts: dict[str, int] = dict.fromkeys(_COUNTS, n_heads)
    counts |= dict.fromkeys(("all_head_size", "split_size"), width)
    counts["num_key_value_groups"] = max(n_heads // max(n_keys, 1), 1)
    for name in counts:
        if isinstance(getattr(attention, name, None), int):
            setattr(attention, name, counts[name])
    if not n_heads and hasattr(attention, "split_size"):
        attention.split_size = [0, 0, 0]  # one size of 0 makes one part


def _rows_left(layer: LayerProjections, indices: list[int], keys: list[int]) -> dict[str, Tensor]:
    """Return the rows of linears to keep, by path; ``keys`` are the indices of keys and values."""
    paths = layer.find.stack.paths
    parts = ((paths.query, layer.query, indices), (paths.key, layer.key, keys))
    rows: dict[str, list[Tensor]] = {}
    for path, part, kept in (*parts, (paths.value, layer.value, keys)):
        if part is not None:
            rows.setdefault(path, []).append(part.rows[kept].flatten())
    for path in paths.positions:
        above, _, name = path.rpartition(".")
        if hasattr(layer.find.module(above), name):
            rows[path] = [layer.columns[indices].flatten()]
    return {  # fused parts keep the order of their rows
        path: tensors[0] if len(tensors) == 1 else torch.cat(tensors).sort().values
        for path, tensors in rows.items()
    }


def _keys_of(layer: LayerProjections, indices: list[int]) -> list[int]:
    """Return the indices of keys for the heads at these indices, of which several may share one.

    As few keys remain as heads can share evenly; otherwise every head gets its own copy. Removing
    heads together or in steps has the same result: groups are those of the model as it was trained.
    """
    stack, shared = layer.find.stack, len(layer.heads) // len(layer.value.rows)
    n_heads = stack.n_heads
    per_key = n_heads // (getattr(stack.config, "num_key_value_heads", None) or n_heads)
    groups = [layer.heads[index] // per_key for index in indices]
    distinct = list(dict.fromkeys(groups))
    per_group, rest = divmod(len(indices), max(len(distinct), 1))
    if not rest and groups == [group for group in distinct for _ in range(per_group)]:
        return [indices[groups.index(group)] // shared for group in distinct]
    return [index // shared for index in indices]


def _give_all_layers_a_bias(layers: Sequence[LayerProjections]) -> None:
    """Let every layer compute the bias of its own heads, if the first layer did so for all."""
    stack = layers[0].find.stack
    family = stack.family
    if not family.position_embedding:
        return
    attention: Any
    first, *others = [layer.find.module(stack.paths.attention) for layer in layers]
    of_first = getattr(first, family.position_embedding, None)  # cross-attention has none
    for attention in others:
        if not getattr(attention, family.position_embedding, None):
            if of_first is not None:
                setattr(attention, family.position_embedding, copy.deepcopy(of_first))
                attention.has_relative_attention_bias = True
            attention.register_forward_pre_hook(
                lambda _, args, kwargs: (args, {**kwargs, "position_bias": None}), with_kwargs=True
            )


def _take_position_bias(
    name: str,
    indices: tuple[int, ...],
    module: nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Cut the bias (batch, heads, query, key) that all layers get down to the remaining heads."""
    place = 2  # after hidden states and mask
    if kwargs.get(name) is not None:
        return args, {**kwargs, name: kwargs[name][:, list(indices)]}
    if len(args) > place and args[place] is not None:
        return (*args[:place], args[place][:, list(indices)], *args[place + 1 :]), kwargs
    return args, kwargs


def _attend_to_nothing(
    attention: Any, family: Family, hidden_states: Tensor, *_: Any, **__: Any
) -> tuple[Tensor | None, ...]:
    """Return zeros in place of attention, for families whose own module fails without heads."""
    paths = cast(Paths, family.paths)
    getattr(attention, paths.value.rpartition(".")[2])(hidden_states)  # values are read from it
    batch, width = hidden_states.shape[:2]
    output = hidden_states.new_zeros(batch, width, 0)
    above, _dot, name = paths.output.rpartition(".")
    if above == paths.attention:
        output = getattr(attention, name)(output)
    implementation = attention.config._attn_implementation if family.needs_heads else ""
    if implementation.startswith("headroles"):  # which counts the layers that report attention
        nothing = hidden_states.new_zeros(batch, 0, width, 1)
        ALL_ATTENTION_FUNCTIONS[implementation](attention, nothing, nothing, nothing, None)
    of_entities = (None,) if family.name == "LUKE" else ()
    return output, *of_entities, hidden_states.new_zeros(batch, 0, width, width)
