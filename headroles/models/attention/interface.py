"""The attention interface of transformers, with a function that reports its weights."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import eager_mask

from headroles.arrays import MODEL_TERMS, rounding_bound
from headroles.errors import ModelSupportError

Inputs: TypeAlias = Mapping[str, Tensor]
OnLayer: TypeAlias = Callable[[int, Tensor], None]
"""Function called with the layer, from 0, and its weights (batch, heads, query, key). Rows of real
queries sum to 1 over real keys; rows of padding are undefined.
"""
Reads: TypeAlias = Callable[[nn.Module, Tensor, Tensor], bool]
"""Function that tells whether the attention of a module, with these queries and keys, is read."""
# A neutral name: transformers gives names with sdpa, flash or a slash a special meaning.
INTERFACE_NAME = "headroles_reader"
_FAMILIES = "run `headroles models` for the families that can be scored"


class AllRead(Exception):
    """Exception that ends a forward pass after the last values that are read from it."""


@dataclass
class Pass:
    """Forward pass in progress; ``n_layers`` is None in a trial run, which counts the layers.

    ``names`` are those of the examples of the batch, if needed.
    """

    on_layer: OnLayer
    n_layers: int | None
    names: Sequence[str] = ()
    reads: Reads | None = None
    layers_read: int = 0

    def next_layer(self, weights: Tensor) -> None:
        """Pass on the weights of the next layer; raise AllRead after the last one."""
        self.on_layer(self.layers_read, weights)
        self.layers_read += 1
        if self.layers_read == self.n_layers:
            raise AllRead


Run: TypeAlias = Callable[[Inputs, Pass], None]
"""Function that runs a model on a batch, and passes the weights of its layers to a pass."""
_current: ContextVar[Pass | None] = ContextVar("headroles_pass", default=None)


@contextmanager
def replaced_interface(base: PreTrainedModel, settings: Mapping[str, Any]) -> Iterator[Run]:
    """Make the attention of an interface family report; restore the model afterwards.

    ``settings`` are further arguments of a pass.
    """
    AttentionInterface.register(INTERFACE_NAME, _attend_and_report)
    # without a mask function of the same name, tokens would silently attend to padding
    AttentionMaskInterface.register(INTERFACE_NAME, _mask_of_padding)
    with attention_of_kind(base, INTERFACE_NAME):
        yield partial(_run, partial(base, **settings))


@contextmanager
def attention_of_kind(base: PreTrainedModel, kind: str) -> Iterator[None]:
    """Set the attention implementation of a model within the block."""
    before = base.config._attn_implementation
    if before != kind:
        base.set_attn_implementation(kind)
    try:
        yield
    finally:
        if before != kind:
            base.set_attn_implementation(before)


def _run(base: Callable[..., Any], inputs: Inputs, this_pass: Pass) -> None:
    token = _current.set(this_pass)
    try:
        base(**inputs)
    finally:
        _current.reset(token)


def _mask_of_padding(
    *,
    attention_mask: Tensor | None = None,
    allow_is_bidirectional_skip: bool = False,
    **arguments: Any,
) -> Tensor | None:
    """Call `eager_mask`, without its check for padding on devices other than the CPU.

    There the check would make the host wait for the device once in each pass.
    """
    may_look = attention_mask is None or attention_mask.device.type == "cpu"
    mask: Tensor | None = eager_mask(
        attention_mask=attention_mask,
        allow_is_bidirectional_skip=allow_is_bidirectional_skip and may_look,
        **arguments,
    )
    return mask


def _attend_and_report(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **arguments: Any,
) -> tuple[Tensor, None]:
    """Compute attention as the eager code of interface families, reporting the weights.

    It works in place to avoid copies; softmax is in float32 for models of every precision.
    """
    if scaling is None:
        scaling = query.shape[-1] ** -0.5
    groups = query.shape[1] // max(1, key.shape[1])  # a layer may have lost all its heads
    weights = _product(query, _repeat_heads(key, groups).transpose(2, 3)).mul_(scaling)
    cap = arguments.get("softcap")
    if cap is not None:
        weights.div_(cap).tanh_().mul_(cap)
    if arguments.get("position_bias") is not None:
        weights.add_(arguments["position_bias"])
    if attention_mask is not None:
        weights.add_(attention_mask)
    weights = torch.softmax(weights, dim=-1, dtype=torch.float32)
    this_pass = _current.get()
    if this_pass is not None and this_pass.reads and not this_pass.reads(module, query, key):
        this_pass = None
    if this_pass is not None and this_pass.n_layers is not None:
        this_pass.next_layer(weights)
    mixed = _product(weights.to(value.dtype), _repeat_heads(value, groups))
    outputs = mixed.transpose(1, 2).contiguous()
    if this_pass is not None and this_pass.n_layers is None:
        settings = {"scaling": scaling, "dropout": 0.0}
        inputs = (query, key, value, attention_mask)
        _check_module(module, (outputs, weights), inputs, {**arguments, **settings})
        this_pass.next_layer(weights)
    return outputs, None


def _product(left: Tensor, right: Tensor) -> Tensor:
    """Return ``left @ right``, both (batch, heads, rows, columns).

    On a CPU example by example: heads lie side by side in memory, which `torch.matmul` would copy.
    """
    if left.device.type != "cpu":
        return torch.matmul(left, right)
    product = left.new_empty(*left.shape[:-1], right.shape[-1])
    for out, of_left, of_right in zip(product, left, right, strict=True):
        torch.bmm(of_left, of_right, out=out)
    return product


def _repeat_heads(states: Tensor, groups: int) -> Tensor:
    """Return keys or values for every query head, repeated if several heads share them."""
    return states if groups == 1 else states.repeat_interleave(groups, dim=1)


def _check_module(
    module: nn.Module,
    ours: tuple[Tensor, Tensor],
    states: tuple[Tensor | None, ...],
    arguments: dict[str, Any],
) -> None:
    """Raise ModelSupportError unless outputs and weights are those of the eager attention of its
    source file, within a window of known width, if any.

    Outputs are compared too: a sink may scale them and not the weights.
    """
    name, width = type(module).__name__, arguments.get("sliding_window")
    kinds = getattr(module.config, "layer_types", None) or ()
    is_known = "sliding_attention" in kinds or width == getattr(module.config, "sliding_window", 0)
    if width is not None and not is_known:
        raise ModelSupportError(
            f"{name} attends within a window whose width is not known; {_FAMILIES}"
        )
    eager = getattr(sys.modules[type(module).__module__], "eager_attention_forward", None)
    theirs = (None, None) if eager is None else eager(module, *states, **arguments)
    if not all(starmap(_is_same, zip(ours, theirs, strict=True))):
        raise ModelSupportError(
            f"{name} computes attention in a way of its own, which cannot be read; {_FAMILIES}"
        )


def _is_same(ours: Tensor, theirs: Any) -> bool:
    """Tell whether weights, or outputs, are equal but for rounding."""
    if not isinstance(theirs, Tensor):
        return False
    # Families may take the softmax in half precision: then the last bits differ.
    is_exact = theirs.dtype == torch.float32
    most = max(1.0, float(ours.float().abs().nan_to_num().amax())) if ours.numel() else 1.0
    tolerance = float(rounding_bound(most, MODEL_TERMS)) if is_exact else 1e-2 * most
    return torch.allclose(ours.float(), theirs.float(), 0, tolerance, equal_nan=True)
