"""Attention weights that a model returns on request, for encoders without hooks.

The weights of all layers of a batch are in memory at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, TypeAlias

import torch
from torch import Tensor
from transformers import PreTrainedModel

from headroles.errors import ModelSupportError
from headroles.models.attention.reporting import (
    convolutions_without_padding,
    reads_tokens_alone,
    trial_inputs,
)
from headroles.models.families import Family
from headroles.models.reports import AllRead, Pass

Inputs: TypeAlias = Mapping[str, Tensor]
_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-4}
_COARSE = 2e-2
"""Tolerance for sums of rows, and for weights with and without padding, in other precisions."""
_MATRICES = 4  # (batch, heads, query, key)


@contextmanager
def returned_attention(
    base: PreTrainedModel, family: Family
) -> Iterator[Callable[[Inputs, Pass], None]]:
    """Open a function that passes on the attentions of a batch; restore the model afterwards.

    Raises ModelSupportError for a model that returns no attention weights, rows that do not sum to
    1 over real tokens, or weights that depend on the padding of a batch.
    """

    def run(inputs: Inputs, this_pass: Pass) -> None:
        with suppress(AllRead):
            for weights in _returned(base, inputs, family):
                this_pass.next_layer(weights)

    before = base.config._attn_implementation
    with ExitStack() as stack:
        if before != "eager":
            base.set_attn_implementation("eager")
            stack.callback(base.set_attn_implementation, before)
        stack.enter_context(convolutions_without_padding(base, family))
        trial = _trial_inputs(base)
        with reads_tokens_alone(family):
            layers = _returned(base, trial, family)
        _check_rows(layers, trial["attention_mask"], family)
        length = int(trial["attention_mask"][1].sum())
        alone = {name: values[1:, :length] for name, values in trial.items()}
        _check_padding(layers, _returned(base, alone, family), base.dtype, family)
        yield run


def _returned(base: PreTrainedModel, inputs: Inputs, family: Family) -> list[Tensor]:
    """Return the weights of all layers. Raises ModelSupportError for a model that returns none."""
    found: Any = getattr(base(**inputs, output_attentions=True), "attentions", None)
    if not found or not all(isinstance(one, Tensor) for one in found):
        raise ModelSupportError(
            f"{family.name} has no attention interface that can be read, and returns no attentions "
            "with output_attentions=True; run `headroles models` for the families that can be "
            "scored"
        )
    if family.returns_scores:
        return [torch.softmax(one, dim=-1, dtype=torch.float32) for one in found]
    return [one.detach() for one in found]


def _trial_inputs(base: PreTrainedModel) -> dict[str, Tensor]:
    """Make two sequences, the second with padding."""
    trial = trial_inputs(base, 2)
    ids, mask = trial["input_ids"], trial["attention_mask"]
    mask[1, ids.shape[1] // 2 + 1 :] = 0
    ids[mask == 0] = getattr(base.config, "pad_token_id", None) or 0
    return trial


def _check_rows(layers: list[Tensor], mask: Tensor, family: Family) -> None:
    """Raise ModelSupportError unless rows of real tokens sum to 1 over real tokens."""
    real = mask.bool()
    for layer, weights in enumerate(layers):
        if weights.dim() != _MATRICES or weights.shape[0::3] != mask.shape:
            raise ModelSupportError(
                f"{family.name} returns attentions of shape {tuple(weights.shape)} in layer "
                f"{layer} for {mask.shape[0]} sequences of {mask.shape[1]} tokens; "
                "(batch, heads, query, key) can be read"
            )
        sums = (weights.float() * real[:, None, None]).sum(-1).movedim(1, -1)[real]
        least, most = float(sums.min()), float(sums.max())
        if least < 1 - _COARSE or most > 1 + _COARSE or float(weights.min()) < 0:
            raise ModelSupportError(
                f"{family.name}: rows of attention in layer {layer} sum to {least:.3g} to "
                f"{most:.3g} over the tokens, not to 1{_advice(least, most)}"
            )


def _advice(least: float, most: float) -> str:
    if least < 0 or most > 1 + _COARSE:
        return "; the model returns other values than attention weights"
    return (
        ", as where part of the attention goes to a sink that is no token. To read it, compute "
        "the weights yourself and either divide rows by their sums, or count the sink as a key"
    )


def _check_padding(
    together: list[Tensor], alone: list[Tensor], precision: torch.dtype, family: Family
) -> None:
    """Raise ModelSupportError if a sequence has other weights beside a longer one."""
    tolerance = _TOLERANCE.get(precision, _COARSE)
    for layer, (weights, own) in enumerate(zip(together, alone, strict=True)):
        length = own.shape[-1]
        if not torch.allclose(weights[1:, :, :length, :length], own, rtol=0, atol=tolerance):
            raise ModelSupportError(
                f"{family.name}: the attention of layer {layer} depends on the padding of a "
                "batch, so scores would depend on the neighbours of a sentence"
            )
