"""Ways to read attention weights of a forward pass.

Families with an attention interface get one that reports its weights. For others, the input of the
dropout that weights pass is reported, or the attentions that they return are read.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, TypeAlias, cast

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import eager_mask

from headroles.errors import HeadRolesError, ModelError, ModelSupportError
from headroles.memory import lacks_memory
from headroles.models.attention.own import TOLERANCE, Inputs, OwnAttention
from headroles.models.families import Family, longest_input
from headroles.models.heads.projections import PathFinder
from headroles.models.reports import AllRead, Pass, current_pass, report_weights, run_pass
from headroles.rounding import MODEL_TERMS, rounding_bound
from headroles.wording import in_one_line

Run: TypeAlias = Callable[[Inputs, Pass], None]
"""Function that runs an encoder on a batch, and reports its weights to a pass."""
# A neutral name: transformers gives names with sdpa, flash or a slash a special meaning.
INTERFACE_NAME = "headroles_reader"
_FAMILIES = "run `headroles models` for the families that can be scored"


@contextmanager
def replaced_interface(base: PreTrainedModel, family: Family) -> Iterator[Run]:
    """Make the attention of an interface family report; restore the model afterwards."""
    AttentionInterface.register(INTERFACE_NAME, _attend_and_report)
    # without a mask function of the same name, tokens would silently attend to padding
    AttentionMaskInterface.register(INTERFACE_NAME, _mask_of_padding)
    with attention_of_kind(base, INTERFACE_NAME):
        yield partial(run_pass, base)


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


@contextmanager
def hooked_dropouts(base: PreTrainedModel, family: Family) -> Iterator[Run]:
    """Make the attention of other families report; restore the model afterwards."""
    before = base.config._attn_implementation
    AttentionMaskInterface.register(INTERFACE_NAME, _mask_of_padding)
    with ExitStack() as stack:
        for layer in range(base.config.num_hidden_layers):
            dropout = PathFinder(base, family, layer).module(family.dropout)
            hook = dropout.register_forward_pre_hook(lambda _, given: report_weights(given[0]))
            stack.enter_context(hook)
        stack.enter_context(convolutions_without_padding(base, family))
        stack.callback(setattr, base.config, "_attn_implementation", before)
        base.config._attn_implementation = INTERFACE_NAME  # only masks are made by it
        yield partial(run_pass, base)


@contextmanager
def returned_attention(base: PreTrainedModel, family: Family) -> Iterator[Run]:
    """Open the attentions that a model returns; restore the model afterwards.

    The weights of all layers of a batch are in memory at once. Raises ModelSupportError for a model
    that returns no attention weights, or weights that depend on the padding of a batch.
    """

    def attend(inputs: Inputs, names: Sequence[str] = ()) -> list[Tensor]:
        found: Any = getattr(base(**inputs, output_attentions=True), "attentions", None)
        if not found or not all(isinstance(layer, Tensor) for layer in found):
            raise ModelSupportError(
                f"{family.name} has no attention interface that can be read, and returns no "
                "attentions with output_attentions=True; run `headroles models` for the families "
                "that can be scored"
            )
        if family.returns_scores:
            return [torch.softmax(layer, dim=-1, dtype=torch.float32) for layer in found]
        return list(found)

    def run(inputs: Inputs, this_pass: Pass) -> None:  # checks would wait for the device
        with suppress(AllRead):
            for weights in attend(inputs):
                this_pass.next_layer(weights.detach())

    with attention_of_kind(base, "eager"), convolutions_without_padding(base, family):
        trial = trial_inputs(base, 2)
        ids, mask = trial["input_ids"], trial["attention_mask"]
        mask[1, ids.shape[1] // 2 + 1 :] = 0
        ids[mask == 0] = getattr(base.config, "pad_token_id", None) or 0
        with reads_tokens_alone(family):
            attend(trial)
        try:
            returned = OwnAttention(attend, family.name, base.device)
            returned.check_alone(trial, (), TOLERANCE.get(base.dtype, 1e-4))
        except ModelError as error:
            raise ModelSupportError(str(error)) from error
        yield run


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


def trial_inputs(base: PreTrainedModel, n: int) -> dict[str, Tensor]:
    """Make ``n`` short sequences of pieces that the model has embeddings for."""
    width = min(8, longest_input(base, base.config) or 8)
    size = cast(nn.Embedding, base.get_input_embeddings()).weight.shape[0]
    ids = torch.arange(8, 8 + n * width, device=base.device).view(n, width) % size
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def in_float32(weights: Tensor) -> Tensor:
    """Return weights of half precision in float32, their rows divided by their sums.

    Rounding to half precision moves the sums by up to 0.4 %.
    """
    if weights.dtype not in (torch.bfloat16, torch.float16):
        return weights
    full = weights.float()
    return full / full.sum(-1, keepdim=True).clamp_min(torch.finfo(torch.float32).tiny)


def _attend_and_report(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **others: Any,
) -> tuple[Tensor, None]:
    """Compute attention as the eager code of interface families, reporting the weights.

    It works in place to avoid copies; softmax is in float32 for models of every precision.
    """
    if scaling is None:
        scaling = query.shape[-1] ** -0.5
    groups = query.shape[1] // max(1, key.shape[1])  # a layer may have lost all its heads
    weights = _product(query, _repeat_heads(key, groups).transpose(2, 3)).mul_(scaling)
    cap = others.get("softcap")
    if cap is not None:
        weights.div_(cap).tanh_().mul_(cap)
    if others.get("position_bias") is not None:
        weights.add_(others["position_bias"])
    if attention_mask is not None:
        weights.add_(attention_mask)
    weights = torch.softmax(weights, dim=-1, dtype=torch.float32)
    this_pass = current_pass.get()
    if this_pass is not None:
        if this_pass.n_layers is None:
            given = {"scaling": scaling, "dropout": 0.0}
            _check_module(module, weights, (query, key, value, attention_mask), {**others, **given})
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


def _check_module(
    module: nn.Module, weights: Tensor, given: tuple[Tensor | None, ...], others: dict[str, Any]
) -> None:
    """Raise ModelSupportError unless weights are those of the eager attention of its source file,
    within a window of known width, if any.
    """
    name = type(module).__name__
    has_windows = "sliding_attention" in getattr(module.config, "layer_types", ())
    if others.get("sliding_window") is not None and not has_windows:
        raise ModelSupportError(
            f"{name} attends within a window whose width is not known; {_FAMILIES}"
        )
    eager = getattr(sys.modules[type(module).__module__], "eager_attention_forward", None)
    theirs = None if eager is None else eager(module, *given, **others)[1]
    # Families may take the softmax in half precision: then the last bits differ.
    is_exact = isinstance(theirs, Tensor) and theirs.dtype == torch.float32
    tolerance = float(rounding_bound(1, MODEL_TERMS)) if is_exact else 1e-2
    if not isinstance(theirs, Tensor) or not torch.allclose(
        weights, theirs.float(), 0, tolerance, equal_nan=True
    ):
        raise ModelSupportError(
            f"{name} computes attention in a way of its own, which cannot be read; {_FAMILIES}"
        )
