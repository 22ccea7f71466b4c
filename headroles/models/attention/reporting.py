"""Reporting of attention weights from a forward pass.

Families with an attention interface get one that reports. For others, the input of the dropout that
weights pass is reported, or the attentions that they return (`models.returned`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import eager_mask

from headroles.errors import HeadRolesError, ModelSupportError
from headroles.memory import lacks_memory
from headroles.models.families import Family, longest_input
from headroles.models.heads.projections import PathFinder
from headroles.models.reports import current_pass, report_weights
from headroles.rounding import MODEL_TERMS, rounding_bound
from headroles.wording import in_one_line

# A neutral name: transformers gives names with sdpa, flash or a slash a special meaning.
INTERFACE_NAME = "headroles_reader"


@contextmanager
def replaced_interface(base: PreTrainedModel, family: Family) -> Iterator[None]:
    """Make the attention of an interface family report; restore the model afterwards."""
    before = base.config._attn_implementation
    AttentionInterface.register(INTERFACE_NAME, _attend_and_report)
    # without a mask function of the same name, tokens would silently attend to padding
    AttentionMaskInterface.register(INTERFACE_NAME, _mask_of_padding)
    base.set_attn_implementation(INTERFACE_NAME)
    try:
        yield
    finally:
        base.set_attn_implementation(before)


@contextmanager
def hooked_dropouts(base: PreTrainedModel, family: Family) -> Iterator[None]:
    """Make the attention of other families report; restore the model afterwards."""
    before = base.config._attn_implementation
    AttentionMaskInterface.register(INTERFACE_NAME, _mask_of_padding)
    with ExitStack() as stack:
        for layer in range(base.config.num_hidden_layers):
            dropout = PathFinder(base, family, layer).module(cast(str, family.dropout))
            stack.enter_context(dropout.register_forward_pre_hook(_report_dropout_input))
        stack.enter_context(convolutions_without_padding(base, family))
        stack.callback(setattr, base.config, "_attn_implementation", before)
        base.config._attn_implementation = INTERFACE_NAME  # only masks are made by it
        yield


@contextmanager
def convolutions_without_padding(base: PreTrainedModel, family: Family) -> Iterator[None]:
    """Set padding to zero at convolutions, as they pad single sequences with zeros."""
    paths = [
        path.format(n) for path in family.convolutions for n in range(base.config.num_hidden_layers)
    ]
    masks: list[Tensor] = []

    def keep_mask(module: nn.Module, given: Any, named: dict[str, Any]) -> None:
        masks[:] = [named["attention_mask"].bool()[:, :, None]]

    def clear_input(module: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (given[0] * masks[0].mT, *given[1:])

    def clear_output(module: nn.Module, given: Any, output: Tensor) -> Tensor:
        return output * masks[0]

    with ExitStack() as stack:
        if paths:
            stack.enter_context(base.register_forward_pre_hook(keep_mask, with_kwargs=True))
        for module in map(base.get_submodule, paths):
            if isinstance(module, nn.Linear):  # its output is convolved, without weights
                stack.enter_context(module.register_forward_hook(clear_output))
            else:
                stack.enter_context(module.register_forward_pre_hook(clear_input))
        yield


@contextmanager
def reads_tokens_alone(family: Family) -> Iterator[None]:
    """Raise ModelSupportError if a model fails in the block, which runs it on tokens and a mask."""
    try:
        yield
    except HeadRolesError:
        raise
    except Exception as error:  # of whatever code the model has
        if lacks_memory(error):
            raise
        raise ModelSupportError(
            f"{family.name} cannot be run on tokens and a mask alone ({in_one_line(error)})"
        ) from error


def check_not_causal(layer: int, weights: Tensor, source: str) -> None:
    """Raise ModelSupportError if no token of a layer attends to a later one, as in decoders."""
    if weights.numel() and weights.shape[-1] > 1 and not weights.triu(1).any():
        raise ModelSupportError(
            f"{source}: tokens attend to earlier tokens alone (layer {layer}); headroles scores "
            "encoders"
        )


def _mask_of_padding(
    *,
    attention_mask: Tensor | None = None,
    allow_is_bidirectional_skip: bool = False,
    **given: Any,
) -> Tensor | None:
    """Call `eager_mask`, without its check for padding on devices other than the CPU.

    There the check would make the host wait for the device once in each pass.
    """
    may_look = attention_mask is None or attention_mask.device.type == "cpu"
    mask: Tensor | None = eager_mask(
        attention_mask=attention_mask,
        allow_is_bidirectional_skip=allow_is_bidirectional_skip and may_look,
        **given,
    )
    return mask


def _report_dropout_input(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    report_weights(inputs[0])


def trial_inputs(base: PreTrainedModel, n: int) -> dict[str, Tensor]:
    """Make ``n`` short sequences of pieces that the model has embeddings for."""
    width = min(8, longest_input(base, base.config) or 8)
    size = cast(nn.Embedding, base.get_input_embeddings()).weight.shape[0]
    ids = torch.arange(8, 8 + n * width, device=base.device).view(n, width) % size
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


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
    """Compute attention as the eager code of interface families, reporting the weights.

    It works in place to avoid copies; softmax is in float32 for models of every precision.
    """
    if scaling is None:
        scaling = query.shape[-1] ** -0.5
    groups = query.shape[1] // max(1, key.shape[1])  # a layer may have lost all its heads
    weights = _product(query, _repeat_heads(key, groups).transpose(2, 3)).mul_(scaling)
    cap = kwargs.get("softcap")
    if cap is not None:
        weights.div_(cap).tanh_().mul_(cap)
    if kwargs.get("position_bias") is not None:
        weights.add_(kwargs["position_bias"])
    if attention_mask is not None:
        weights.add_(attention_mask)
    weights = torch.softmax(weights, dim=-1, dtype=torch.float32)
    this_pass = current_pass()
    if this_pass is not None:
        if this_pass.is_trial:
            _check_window(module, kwargs.get("sliding_window"))
            own = _own_weights(module, query, key, value, attention_mask, scaling, kwargs)
            _check_same_weights(module, weights, own)
        this_pass.next_layer(weights)
    mixed = _product(weights.to(value.dtype), _repeat_heads(value, groups))
    return mixed.transpose(1, 2).contiguous(), None


def _product(left: Tensor, right: Tensor) -> Tensor:
    """Return ``left @ right``, both (batch, heads, rows, columns).

    On a CPU example by example: heads lie side by side in memory, which `torch.matmul` would copy.
    """
    if left.device.type != "cpu":
        return torch.matmul(left, right)
    product = left.new_empty(*left.shape[:-1], right.shape[-1])
    for own, one, other in zip(product, left, right, strict=True):
        torch.bmm(one, other, out=own)
    return product


def _repeat_heads(states: Tensor, groups: int) -> Tensor:
    """Return keys or values for every query head, repeated if several heads share them."""
    return states if groups == 1 else states.repeat_interleave(groups, dim=1)


def _own_weights(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
    others: dict[str, Any],
) -> Tensor | None:
    """Compute weights by the eager attention of the module's source file, None without one."""
    eager = getattr(sys.modules[type(module).__module__], "eager_attention_forward", None)
    if eager is None:
        return None
    given = {**others, "scaling": scaling, "dropout": 0.0}
    weights = eager(module, query, key, value, attention_mask, **given)[1]
    return weights if isinstance(weights, Tensor) else None


def _check_window(module: nn.Module, window: int | None) -> None:
    if window is not None and "sliding_attention" not in getattr(module.config, "layer_types", ()):
        raise ModelSupportError(
            f"{type(module).__name__} attends within a window whose width is not known; "
            "run `headroles models` for the families that can be scored"
        )


def _check_same_weights(module: nn.Module, weights: Tensor, own: Tensor | None) -> None:
    # Families may take the softmax in half precision: then the last bits differ.
    is_exact = own is not None and own.dtype == torch.float32
    tolerance = float(rounding_bound(1, MODEL_TERMS)) if is_exact else 1e-2
    if own is None or not torch.allclose(weights, own.float(), 0, tolerance, equal_nan=True):
        raise ModelSupportError(
            f"{type(module).__name__} computes attention in a way of its own, which cannot be "
            "read; run `headroles models` for the families that can be scored"
        )
