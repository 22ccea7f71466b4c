"""Attention weights, layer by layer, while they exist: nothing is kept, nothing is computed after.

A forward pass stops as soon as the weights of the last layer have been read: the rest of that
layer, the pooler and a task head take no part in any attention weight.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor
from transformers import PreTrainedModel

from headroles.errors import ModelError, ModelSupportError
from headroles.models.families import Family, find_family, layer_reaches, longest_input
from headroles.models.kept_heads import Head, kept_heads, pruned_heads
from headroles.models.measures import WEIGHTS
from headroles.models.norms import NormReader
from headroles.models.projections import find_projections
from headroles.models.reporting import (
    OnLayer,
    Pass,
    hooked_dropouts,
    replaced_interface,
    run_pass,
)
from headroles.models.values import open_values


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

        run_pass(self.model, inputs, Pass(put, self.n_layers))

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
    install = replaced_interface if family.dropout is None else hooked_dropouts
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
    run_pass(base, trial, Pass(note, n_layers=None))
    expected = base.config.num_hidden_layers
    pruned = pruned_heads(base.config)
    lost = [len(pruned.get(layer, ())) for layer in range(len(heads))]
    heads = [left + gone for left, gone in zip(heads, lost, strict=True)]
    if len(heads) != expected or len(set(heads)) > 1:
        raise ModelSupportError(
            f"{family.name}: attention was seen {len(heads)} times through the "
            f"{family.read_through} of a model of {expected} layers, with {sorted(set(heads))} "
            "heads; it must be seen once in every layer, with as many heads in each. Run "
            "`headroles models` for the families that can be scored"
        )
    return len(heads), heads[0]
