"""Attention weights, layer by layer, while they exist: nothing is stored, and no more is computed.

A forward pass stops as soon as the weights of the last layer have been read: the rest of that
layer, the pooler and a task head do not affect any attention weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from transformers import PreTrainedModel

from headroles.errors import ModelError, ModelSupportError
from headroles.models.attention.norms import NormReader
from headroles.models.attention.own import OwnAttention, lacks_weights
from headroles.models.attention.reporting import (
    Run,
    hooked_dropouts,
    in_float32,
    reads_tokens_alone,
    replaced_interface,
    returned_attention,
    trial_inputs,
)
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
from headroles.models.reports import OnLayer, Pass, check_not_causal


@dataclass(frozen=True)
class AttentionReader:
    """Reader that runs an encoder and passes the attention weights of each layer to a function.

    `open_reader` makes it; it is usable until that context ends.
    """

    model: PreTrainedModel | OwnAttention
    family: Family
    n_heads: int
    reaches: tuple[int | None, ...]
    """For each layer, how far attention reaches to either side; None if unlimited."""
    remaining: tuple[tuple[int, ...], ...]
    """For each layer, the heads that are present; others were removed from the model."""
    run: Run
    read_through: str
    """Short description of how the weights are reached."""
    norms: NormReader | None = None
    """Reader of norms, if norms are read instead of weights."""

    @property
    def n_layers(self) -> int:
        """Number of layers."""
        return len(self.remaining)

    def read(
        self, inputs: Mapping[str, Tensor], on_layer: OnLayer, names: Sequence[str] = ()
    ) -> None:
        """Run the encoder on one batch. ``on_layer`` must not store the weights it is given.

        Weights of heads that were removed from the model are 0. ``names`` are those of the
        examples, by which a user's own attention is found, and which messages name.
        """

        def put(layer: int, weights: Tensor) -> None:
            weights = in_float32(weights)
            measured = weights if self.norms is None else self.norms.norms(layer, weights)
            on_layer(layer, self._at_their_numbers(layer, measured))

        self.run(inputs, Pass(put, self.n_layers, names=names))

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
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode())
        if isinstance(model, OwnAttention):
            family, heads = Family("own attention", paths=None), model.heads
            remaining, reaches = tuple(tuple(range(n)) for n in heads), (None,) * len(heads)
            way = model.source
            reader = AttentionReader(model, family, heads[0], reaches, remaining, model.run, way)
        else:
            reader = _open(stack, model)
        if measure != WEIGHTS:
            reader = replace(reader, norms=stack.enter_context(open_norms(reader)))
        yield reader


_WAYS: dict[str, Callable[[PreTrainedModel, Family], AbstractContextManager[Run]]] = {
    INTERFACE: replaced_interface,
    DROPOUT: hooked_dropouts,
    RETURNED: returned_attention,
}


def _open(stack: ExitStack, model: PreTrainedModel) -> AttentionReader:
    """Return a reader that uses the first way that works, and that ``stack`` closes."""
    if model.training:
        raise ModelError(
            "the model is in training mode, where attention weights have gone through dropout; "
            "call model.eval() first"
        )
    family, base = find_family(model), encoder_of(model)
    ways = [INTERFACE, RETURNED] if family.read_through == INTERFACE else [family.read_through]
    unread: list[ModelSupportError] = []
    for way in ways:
        attempt = stack.enter_context(ExitStack())
        try:
            return _make_reader(base, family, attempt.enter_context(_WAYS[way](base, family)), way)
        except ModelSupportError as error:
            attempt.close()
            unread.append(error)
    raise unread[-1] from (unread[0] if len(unread) > 1 else None)


@contextmanager
def open_norms(reader: AttentionReader) -> Iterator[NormReader]:
    """Open the norms of the layer that a reader reads; restore the model afterwards.

    Raises ModelSupportError for a family whose projections are unknown.
    """
    if isinstance(reader.model, OwnAttention):
        raise lacks_weights(reader.model.source)
    with open_values(find_projections(reader.model)) as values:
        yield NormReader(values)


def _make_reader(base: PreTrainedModel, family: Family, run: Run, way: str) -> AttentionReader:
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
    n_layers, n_heads = len(heads), max(heads, default=0)
    expected = getattr(base.config, "num_hidden_layers", n_layers)
    if n_layers != expected or heads != [n_heads] * n_layers or not heads:
        raise ModelSupportError(
            f"{family.name}: attention was seen {n_layers} times through the {way} of a model of "
            f"{expected} layers, with {sorted(set(heads))} heads; it must be seen once in every "
            "layer, with as many heads in each. Run `headroles models` for the families that can "
            "be scored"
        )
    remaining = remaining_heads(base.config, n_heads, n_layers)
    reaches = layer_reaches(base.config, n_layers)
    return AttentionReader(base, family, n_heads, reaches, remaining, run, way)
