"""Attention weights, layer by layer, while they exist: nothing is kept, nothing is computed after.

A forward pass stops as soon as the weights of the last layer have been read: the rest of that
layer, the pooler and a task head take no part in any attention weight.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import eager_mask

from headroles.errors import ModelError, ModelSupportError
from headroles.models.families import (
    Family,
    dropout_sites,
    find_family,
    layer_reaches,
    longest_input,
)
from headroles.models.kept_heads import Head, kept_heads, pruned_heads
from headroles.models.measures import WEIGHTS
from headroles.models.norms import NormReader
from headroles.models.projections import find_projections
from headroles.models.values import open_values

# A neutral name: transformers reads meaning into names that contain sdpa, flash or a slash.
INTERFACE_NAME = "headroles_reader"

OnLayer = Callable[[int, Tensor], None]
"""Called with the layer, from 0, and its weights (batch, heads, query, key), whose rows of real
queries sum to 1 over real keys. Rows of padding mean nothing."""


class _LastLayerRead(Exception):
    """Ends a forward pass that has nothing more to give."""


@dataclass
class _Pass:
    """A forward pass in progress; a trial, which counts the layers, does not know ``n_layers``."""

    on_layer: OnLayer
    n_layers: int | None
    layers_read: int = 0

    @property
    def is_trial(self) -> bool:
        return self.n_layers is None

    def take(self, weights: Tensor) -> None:
        self.on_layer(self.layers_read, weights)
        self.layers_read += 1
        if self.layers_read == self.n_layers:
            raise _LastLayerRead


_current: ContextVar[_Pass | None] = ContextVar("headroles_pass", default=None)


@dataclass(frozen=True)
class AttentionReader:
    """Runs an encoder and hands the attention weights of each layer to a function.

    Made by `open_reader`; usable until that context ends.
    """

    model: PreTrainedModel
    family: Family
    n_layers: int
    n_heads: int
    reaches: tuple[int | None, ...]
    """Per layer, how far attention reaches to either side; None where it has no bounds."""
    kept: tuple[tuple[int, ...], ...]
    """Per layer, the heads that are there; others were removed from the model."""
    norms: NormReader | None = None
    """Where norms are read instead of weights."""

    def read(self, inputs: Mapping[str, Tensor], on_layer: OnLayer) -> None:
        """Run the encoder on one batch. ``on_layer`` must not keep the weights it is given.

        Weights of heads that were removed from the model are 0.
        """

        def put(layer: int, weights: Tensor) -> None:
            measured = weights if self.norms is None else self.norms.norms(layer, weights)
            on_layer(layer, self._at_their_numbers(layer, measured))

        _run(self.model, inputs, _Pass(put, self.n_layers))

    def _at_their_numbers(self, layer: int, weights: Tensor) -> Tensor:
        """Weights of all heads that there were, from those of the heads that are left."""
        if len(self.kept[layer]) == self.n_heads:
            return weights
        batch, _, queries, keys = weights.shape
        full = weights.new_zeros(batch, self.n_heads, queries, keys)
        full[:, list(self.kept[layer])] = weights
        return full

    @property
    def removed(self) -> tuple[Head, ...]:
        """The heads that were removed from the model, as (layer, head)."""
        return tuple(
            (layer, head)
            for layer, heads in enumerate(self.kept)
            for head in range(self.n_heads)
            if head not in heads
        )


@contextmanager
def open_reader(model: PreTrainedModel, measure: str = WEIGHTS) -> Iterator[AttentionReader]:
    """Make the attention of ``model`` readable; leaves the model as it was found.

    With the ``measure`` ``"norms"`` what is handed over is that of `headroles.models.norms`.

    Only the encoder below any task head is run. The layers and heads are counted in a trial run,
    in which the weights of interface families are also compared with the family's own code.

    Raises:
        ModelError: the model is in training mode, where dropout falsifies attention.
        ModelSupportError: the model is not an encoder, or its attention cannot be reached.
    """
    if model.training:
        raise ModelError(
            "the model is in training mode, where attention weights have gone through dropout; "
            "call model.eval() first"
        )
    family = find_family(model)
    base = cast(PreTrainedModel, model.base_model)
    install = _replaced_interface if family.dropout is None else _hooked_dropouts
    with install(base, family), torch.inference_mode():
        n_layers, n_heads = _count_layers_and_heads(base, family)
        reaches = layer_reaches(base.config, n_layers)
        kept = kept_heads(base.config, n_heads)
        reader = AttentionReader(base, family, n_layers, n_heads, reaches, kept)
        if measure == WEIGHTS:
            yield reader
            return
        with open_norms(reader) as norms:
            yield replace(reader, norms=norms)


@contextmanager
def open_norms(reader: AttentionReader) -> Iterator[NormReader]:
    """Norms of the layer that a reader reads; leaves the model as it was found.

    Raises ModelSupportError for a family whose projections are not known.
    """
    with open_values(find_projections(reader.model, reader.family, reader.n_heads)) as values:
        yield NormReader(values)


def _run(model: PreTrainedModel, inputs: Mapping[str, Tensor], this_pass: _Pass) -> None:
    token = _current.set(this_pass)
    try:
        model(**inputs)
    except _LastLayerRead:
        pass
    finally:
        _current.reset(token)


@contextmanager
def _replaced_interface(base: PreTrainedModel, family: Family) -> Iterator[None]:
    before = base.config._attn_implementation
    AttentionInterface.register(INTERFACE_NAME, _attend_and_report)
    # Without a mask function of the same name, padding would be attended to, silently.
    AttentionMaskInterface.register(INTERFACE_NAME, eager_mask)
    base.set_attn_implementation(INTERFACE_NAME)
    try:
        yield
    finally:
        base.set_attn_implementation(before)


@contextmanager
def _hooked_dropouts(base: PreTrainedModel, family: Family) -> Iterator[None]:
    sites = dropout_sites(base, family, base.config.num_hidden_layers)
    handles = [site.register_forward_pre_hook(_report_dropout_input) for site in sites]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _report_dropout_input(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    this_pass = _current.get()
    if this_pass is not None:
        this_pass.take(inputs[0])


def _attend_and_report(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Attention as in the eager code of every interface family, reporting the weights.

    In place where that code makes copies; softmax in float32 whatever the model's precision.
    """
    if scaling is None:
        scaling = query.shape[-1] ** -0.5
    groups = query.shape[1] // max(1, key.shape[1])  # a layer may have lost all its heads
    weights = torch.matmul(query, _repeat_heads(key, groups).transpose(2, 3)).mul_(scaling)
    if attention_mask is not None:
        weights.add_(attention_mask)
    weights = torch.softmax(weights, dim=-1, dtype=torch.float32)
    this_pass = _current.get()
    if this_pass is not None:
        if this_pass.is_trial:
            _refuse_unknown_window(module, kwargs.get("sliding_window"))
            own = _own_weights(module, query, key, value, attention_mask, scaling)
            _refuse_difference(module, weights, own)
        this_pass.take(weights)
    mixed = torch.matmul(weights.to(value.dtype), _repeat_heads(value, groups))
    return mixed.transpose(1, 2).contiguous(), None


def _repeat_heads(states: Tensor, groups: int) -> Tensor:
    """Keys or values for every query head, where several heads share one."""
    return states if groups == 1 else states.repeat_interleave(groups, dim=1)


def _own_weights(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
) -> Tensor | None:
    """The weights by the eager attention of the module's own source file, None without one."""
    eager = getattr(sys.modules[type(module).__module__], "eager_attention_forward", None)
    if eager is None:
        return None
    weights = eager(module, query, key, value, attention_mask, scaling=scaling, dropout=0.0)[1]
    return weights if isinstance(weights, Tensor) else None


def _refuse_unknown_window(module: nn.Module, window: int | None) -> None:
    if window is not None and "sliding_attention" not in getattr(module.config, "layer_types", ()):
        raise ModelSupportError(
            f"{type(module).__name__} attends within a window whose width is not known; "
            "run `headroles models` for the families that can be scored"
        )


def _refuse_difference(module: nn.Module, weights: Tensor, own: Tensor | None) -> None:
    # Families may take the softmax in half precision: then the last bits differ.
    tolerance = 1e-6 if own is not None and own.dtype == torch.float32 else 1e-2
    if own is None or not torch.allclose(
        weights, own.float(), rtol=0, atol=tolerance, equal_nan=True
    ):
        raise ModelSupportError(
            f"{type(module).__name__} computes attention in a way of its own, which cannot be "
            "read; run `headroles models` for the families that can be scored"
        )


def _count_layers_and_heads(base: PreTrainedModel, family: Family) -> tuple[int, int]:
    heads: list[int] = []

    def note(layer: int, weights: Tensor) -> None:
        if weights.shape[-1] != weights.shape[-2]:
            raise ModelSupportError(f"{family.name}: its queries and keys are not the same tokens")
        if not torch.isfinite(weights).all():
            raise ModelError(
                f"the attention of layer {layer} is not finite; its weights are broken"
            )
        if weights.numel() and weights.triu(1).abs().max() == 0:
            raise ModelSupportError(
                f"{family.name}: tokens see only what precedes them (layer {layer}); "
                "headroles scores encoders"
            )
        heads.append(weights.shape[1])

    width = min(8, longest_input(base, base.config) or 8)
    ids = torch.arange(8, 8 + width, device=base.device)[None] % base.config.vocab_size
    trial = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    _run(base, trial, _Pass(note, n_layers=None))
    expected = base.config.num_hidden_layers
    pruned = pruned_heads(base.config)
    lost = [len(pruned.get(layer, ())) for layer in range(len(heads))]
    heads = [left + gone for left, gone in zip(heads, lost, strict=True)]
    if len(heads) != expected or len(set(heads)) > 1:
        raise ModelSupportError(
            f"{family.name}: attention was seen {len(heads)} times in a model of {expected} "
            f"layers, with {sorted(set(heads))} heads; it does not go through transformers' "
            "attention interface. Run `headroles models` for the families that can be scored"
        )
    return len(heads), heads[0]
