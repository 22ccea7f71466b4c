"""Attention weights that a model returns on request, for encoders without hooks.

A trial run finds the modules that output the weights. From then on each passes its weights on as
soon as it has them and outputs an empty tensor instead, so that one layer at a time is in memory.
If that fails, the weights of all layers are taken from the model's output, one batch at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headroles.errors import ModelSupportError
from headroles.models.families import Family
from headroles.models.reporting import (
    AllRead,
    Pass,
    convolutions_without_padding,
    reads_tokens_alone,
    report_weights,
    run_pass,
    trial_inputs,
)

Inputs: TypeAlias = Mapping[str, Tensor]
_ASKED = {"output_attentions": True}
_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-4}
_COARSE = 2e-2
"""Tolerance for sums of rows, and for weights with and without padding, in other precisions."""
_MATRICES = 4  # (batch, heads, query, key)


@dataclass(frozen=True)
class _Place:
    """Module whose output has attention weights, at ``index`` if the output is a tuple."""

    module: nn.Module
    index: int | None


@dataclass
class ReturnedAttention:
    """Runner of a model that returns its attention weights, which reports them."""

    model: PreTrainedModel
    places: tuple[_Place, ...]
    asked: dict[str, bool]
    weights_of: Callable[[Tensor], Tensor]
    """Function from the returned tensor to weights in float32."""

    @property
    def is_at_once(self) -> bool:
        """Whether the weights of all layers of a batch are in memory together."""
        return not self.places

    def run(self, inputs: Inputs, this_pass: Pass) -> None:
        """Run the model on one batch, up to its last attention weights."""
        if not self.is_at_once:
            given: dict[str, Any] = {**inputs, **self.asked}
            run_pass(self.model, given, this_pass)
            return
        with suppress(AllRead):
            for weights in _returned(self.model, inputs):
                this_pass.take(self.weights_of(weights))


@contextmanager
def returned_attention(base: PreTrainedModel, family: Family) -> Iterator[ReturnedAttention]:
    """Open a reader of the attentions that ``base`` returns; restore the model afterwards.

    Raises ModelSupportError for a model that returns no attention weights, rows that do not sum to
    1 over real tokens, or weights that depend on the padding of a batch.
    """
    before = base.config._attn_implementation
    with ExitStack() as stack:
        if before != "eager":
            base.set_attn_implementation("eager")
            stack.callback(base.set_attn_implementation, before)
        stack.enter_context(convolutions_without_padding(base, family))
        trial = _trial_inputs(base)
        returned, places = _try_out(base, trial, family)
        weights_of = _weights_of(family)
        expected = [weights_of(one) for one in returned]
        _refuse_other_rows(expected, trial["attention_mask"], family)
        _refuse_dependence_on_padding(base, expected, trial, family)
        hooks = stack.enter_context(ExitStack())
        for place in dict.fromkeys(places):
            report = _reporting(place.index, weights_of)
            hooks.enter_context(place.module.register_forward_hook(report))
        found = _first_that_reads(base, places, trial, expected, weights_of)
        if found.is_at_once:
            hooks.close()
        yield found


def _first_that_reads(
    base: PreTrainedModel,
    places: tuple[_Place, ...],
    trial: Inputs,
    expected: list[Tensor],
    weights_of: Callable[[Tensor], Tensor],
) -> ReturnedAttention:
    """Return a reader layer by layer if its weights are right, else one of all layers at once."""
    for asked in ({}, _ASKED) if places else ():
        found = ReturnedAttention(base, places, asked, weights_of)
        layers: list[Tensor] = []

        def keep(layer: int, weights: Tensor, layers: list[Tensor] = layers) -> None:
            layers.append(weights)

        try:
            found.run(trial, Pass(keep, len(expected)))
        except Exception:  # noqa: S112  # the model may fail in any way at an empty tensor
            continue
        if len(layers) == len(expected) and all(map(torch.equal, layers, expected)):
            return found
    return ReturnedAttention(base, (), _ASKED, weights_of)


def _trial_inputs(base: PreTrainedModel) -> dict[str, Tensor]:
    """Make two sequences, the second with padding."""
    trial = trial_inputs(base, 2)
    ids, mask = trial["input_ids"], trial["attention_mask"]
    mask[1, ids.shape[1] // 2 + 1 :] = 0
    ids[mask == 0] = getattr(base.config, "pad_token_id", None) or 0
    return trial


def _returned(base: PreTrainedModel, inputs: Inputs) -> list[Tensor]:
    outputs = base(**inputs, **_ASKED)
    found: Any = getattr(outputs, "attentions", None)
    return list(found) if isinstance(found, tuple | list) else []


def _try_out(
    base: PreTrainedModel, trial: Inputs, family: Family
) -> tuple[list[Tensor], tuple[_Place, ...]]:
    """Return the model's attentions, and the modules that output them; empty if unknown."""
    seen: dict[int, _Place] = {}
    alive: list[Any] = []  # no other tensor may get the id of one that was freed

    def note(module: nn.Module, inputs: Any, output: Any) -> None:
        alive.append(output)
        parts = enumerate(output) if isinstance(output, tuple | list) else [(None, output)]
        for index, part in parts:
            if isinstance(part, Tensor) and part.dim() == _MATRICES:
                seen.setdefault(id(part), _Place(module, index))

    with ExitStack() as stack, reads_tokens_alone(family):
        for module in base.modules():
            if module is not base:
                stack.enter_context(module.register_forward_hook(note))
        weights = _returned(base, trial)
    if not weights or not all(isinstance(one, Tensor) for one in weights):
        raise ModelSupportError(
            f"{family.name} has no attention interface that can be read, and returns no attentions "
            "with output_attentions=True; run `headroles models` for the families that can be "
            "scored"
        )
    found = [seen.get(id(one)) for one in weights]
    places = () if None in found else tuple(place for place in found if place is not None)
    return [one.detach() for one in weights], places


def _weights_of(family: Family) -> Callable[[Tensor], Tensor]:
    """Return the function that converts a family's attentions to weights."""
    if family.returns_scores:
        return partial(torch.softmax, dim=-1, dtype=torch.float32)
    return Tensor.detach


def _reporting(index: int | None, weights_of: Callable[[Tensor], Tensor]) -> Any:
    def report(module: nn.Module, inputs: Any, output: Any) -> Any:
        weights = output if index is None else output[index]
        if not isinstance(weights, Tensor) or not report_weights(weights_of(weights)):
            return None
        nothing = weights.new_empty(0)
        if index is None:
            return nothing
        return type(output)([*output[:index], nothing, *output[index + 1 :]])

    return report


def _refuse_other_rows(layers: list[Tensor], mask: Tensor, family: Family) -> None:
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


def _refuse_dependence_on_padding(
    base: PreTrainedModel, layers: list[Tensor], trial: Inputs, family: Family
) -> None:
    """Raise ModelSupportError if a sequence has other weights beside a longer one."""
    length = int(trial["attention_mask"][1].sum())
    alone = _returned(base, {name: values[1:, :length] for name, values in trial.items()})
    weights_of = _weights_of(family)
    for layer, (weights, own) in enumerate(zip(layers, alone, strict=True)):
        together = weights[1:, :, :length, :length]
        tolerance = _TOLERANCE.get(base.dtype, _COARSE)
        if not torch.allclose(together, weights_of(own), rtol=0, atol=tolerance):
            raise ModelSupportError(
                f"{family.name}: the attention of layer {layer} depends on the padding of a "
                "batch, so scores would depend on the neighbours of a sentence"
            )
