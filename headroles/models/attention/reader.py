"""Attention weights, layer by layer, while they exist: nothing is stored, and no more is computed.

A forward pass stops as soon as the weights of the last layer have been read: the rest of that
layer, the pooler and a task head do not affect any attention weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor
from transformers import PreTrainedModel

from headroles.errors import ModelError, ModelSupportError
from headroles.models.attention.norms import NormReader
from headroles.models.attention.own import OwnAttention, lacks_weights
from headroles.models.attention.reporting import (
    check_not_causal,
    hooked_dropouts,
    reads_tokens_alone,
    replaced_interface,
    trial_inputs,
)
from headroles.models.attention.returned import returned_attention
from headroles.models.families import (
    DROPOUT,
    INTERFACE,
    RETURNED,
    Family,
    encoder_of,
    find_family,
    layer_reaches,
)
from headroles.models.heads.projections import find_projections, open_values
from headroles.models.heads.remaining import Head, pruned_heads, remaining_heads
from headroles.models.options import WEIGHTS
from headroles.models.reports import OnLayer, Pass, run_pass


@dataclass(frozen=True)
class AttentionReader:
    """Reader that runs an encoder and passes the attention weights of each layer to a function.

    `open_reader` makes it; it is usable until that context ends.
    """

    model: PreTrainedModel | OwnAttention
    family: Family
    n_layers: int
    n_heads: int
    reaches: tuple[int | None, ...]
    """For each layer, how far attention reaches to either side; None if unlimited."""
    remaining: tuple[tuple[int, ...], ...]
    """For each layer, the heads that are present; others were removed from the model."""
    run: Callable[[Mapping[str, Tensor], Pass], None]
    """Function that runs the encoder on a batch; its weights are reported to a pass."""
    read_through: str
    """Short description of how the weights are reached."""
    norms: NormReader | None = None
    """Reader of norms, if norms are read instead of weights."""

    def read(
        self, inputs: Mapping[str, Tensor], on_layer: OnLayer, names: Sequence[str] = ()
    ) -> None:
        """Run the encoder on one batch. ``on_layer`` must not store the weights it is given.

        Weights of heads that were removed from the model are 0. ``names`` are those of the
        examples, by which a user's own attention is found, and which messages name.
        """

        def put(layer: int, weights: Tensor) -> None:
            weights = _in_float32(weights)
            measured = weights if self.norms is None else self.norms.norms(layer, weights)
            on_layer(layer, self._at_their_numbers(layer, measured))

        self.run(inputs, Pass(put, self.n_layers, names=names))

    def first(self, n_layers: int) -> AttentionReader:
        """Return a reader of the first layers; its passes end after them."""
        return replace(
            self,
            n_layers=n_layers,
            reaches=self.reaches[:n_layers],
            remaining=self.remaining[:n_layers],
        )

    def _at_their_numbers(self, layer: int, weights: Tensor) -> Tensor:
        """Return weights of all original heads, from those of the remaining heads."""
        if len(self.remaining[layer]) == self.n_heads:
            return weights
        batch, _, queries, keys = weights.shape
        full = weights.new_zeros(batch, self.n_heads, queries, keys)
        full[:, list(self.remaining[layer])] = weights
        return full

    @property
    def description(self) -> dict[str, str]:
        """Description of the model's family and of how its weights are reached."""
        return {"family": self.family.name, "read_through": self.read_through}

    @property
    def removed(self) -> tuple[Head, ...]:
        """Heads that were removed from the model, as (layer, head)."""
        return tuple(
            (layer, head)
            for layer, heads in enumerate(self.remaining)
            for head in range(self.n_heads)
            if head not in heads
        )


@contextmanager
def open_reader(
    model: PreTrainedModel | OwnAttention, measure: str = WEIGHTS
) -> Iterator[AttentionReader]:
    """Make the attention of ``model`` readable; restore the model afterwards.

    With the ``measure`` ``"norms"``, the reader passes norms (`headroles.models.attention.norms`).

    Only the encoder below any task head runs. A trial run counts the layers and heads, and compares
    the weights of interface families with the family's own code. An encoder that cannot be read
    through the interface is read through the attentions that it returns.

    Raises:
        ModelError: the model is in training mode, where dropout changes attention.
        ModelSupportError: the model is not an encoder, or its attention cannot be reached.
    """
    if isinstance(model, OwnAttention):
        if measure != WEIGHTS:
            raise lacks_weights(model.source)
        with torch.inference_mode():
            yield _own_reader(model)
        return
    if model.training:
        raise ModelError(
            "the model is in training mode, where attention weights have gone through dropout; "
            "call model.eval() first"
        )
    family, base = find_family(model), encoder_of(model)
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode())
        reader = _open(stack, base, family)
        if measure != WEIGHTS:
            reader = replace(reader, norms=stack.enter_context(open_norms(reader)))
        yield reader


def _open(stack: ExitStack, base: PreTrainedModel, family: Family) -> AttentionReader:
    """Return a reader that uses the first way that works, and that ``stack`` closes."""
    if family.dropout is not None:
        stack.enter_context(hooked_dropouts(base, family))
        return _make_reader(base, family, partial(run_pass, base), DROPOUT)
    unread = None
    if not family.returns:
        with ExitStack() as attempt:
            attempt.enter_context(replaced_interface(base, family))
            try:
                reader = _make_reader(base, family, partial(run_pass, base), INTERFACE)
            except ModelSupportError as error:
                unread = error
            else:
                stack.push(attempt.pop_all())
                return reader
    try:
        run = stack.enter_context(returned_attention(base, family))
        return _make_reader(base, family, run, RETURNED)
    except ModelSupportError as error:
        raise error from unread


@contextmanager
def open_norms(reader: AttentionReader) -> Iterator[NormReader]:
    """Open the norms of the layer that a reader reads; restore the model afterwards.

    Raises ModelSupportError for a family whose projections are unknown.
    """
    if isinstance(reader.model, OwnAttention):
        raise lacks_weights(reader.model.source)
    with open_values(find_projections(reader.model)) as values:
        yield NormReader(values)


def _make_reader(
    base: PreTrainedModel,
    family: Family,
    run: Callable[[Mapping[str, Tensor], Pass], None],
    way: str,
) -> AttentionReader:
    """Make a reader of a model; a trial run checks its weights, and counts layers and heads."""
    heads: list[int] = []

    def note(layer: int, weights: Tensor) -> None:
        if weights.shape[-1] != weights.shape[-2]:
            raise ModelSupportError(f"{family.name}: its queries and keys are not the same tokens")
        if not torch.isfinite(weights).all():
            raise ModelError(
                f"the attention of layer {layer} is not finite; its weights are broken"
            )
        check_not_causal(layer, weights, family.name)
        heads.append(weights.shape[1])

    with reads_tokens_alone(family):
        run(trial_inputs(base, 1), Pass(note, n_layers=None))
    pruned = pruned_heads(base.config)
    heads = [left + len(pruned.get(layer, ())) for layer, left in enumerate(heads)]
    expected = getattr(base.config, "num_hidden_layers", len(heads))
    if len(heads) != expected or len(set(heads)) != 1:
        raise ModelSupportError(
            f"{family.name}: attention was seen {len(heads)} times through the {way} of a model of "
            f"{expected} layers, with {sorted(set(heads))} heads; it must be seen once in every "
            "layer, with as many heads in each. Run `headroles models` for the families that can "
            "be scored"
        )
    n_layers, n_heads = len(heads), heads[0]
    return AttentionReader(
        base,
        family,
        n_layers,
        n_heads,
        layer_reaches(base.config, n_layers),
        remaining_heads(base.config, n_heads, n_layers),
        run,
        way,
    )


def _in_float32(weights: Tensor) -> Tensor:
    """Return weights of half precision in float32, their rows divided by their sums.

    Rounding to half precision moves the sums by up to 0.4 %.
    """
    if weights.dtype not in (torch.bfloat16, torch.float16):
        return weights
    full = weights.float()
    return full / full.sum(-1, keepdim=True).clamp_min(torch.finfo(torch.float32).tiny)


def _own_reader(own: OwnAttention) -> AttentionReader:
    heads = tuple(range(own.n_heads))
    return AttentionReader(
        own,
        Family("own attention", paths=None),
        own.n_layers,
        own.n_heads,
        (None,) * own.n_layers,
        (heads,) * own.n_layers,
        own.run,
        own.source,
    )
