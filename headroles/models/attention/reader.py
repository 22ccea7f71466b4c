"""Attention weights, layer by layer, by the attention interface or as the model returns them.

Through the interface no more is computed and nothing is stored: a forward pass stops as soon as the
weights of the last layer have been read. The rest of that layer, the pooler and a task head do not
affect any attention weight.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headroles.errors import HeadRolesError, ModelError, ModelSupportError, lacks_memory
from headroles.models.attention.functions import (
    TOLERANCE,
    FunctionAttention,
    check_not_causal,
    lacks_weights,
    without_padding,
)
from headroles.models.attention.interface import (
    AllRead,
    Inputs,
    OnLayer,
    Pass,
    Run,
    attention_of_kind,
    replaced_interface,
)
from headroles.models.families import (
    INTERFACE,
    RETURNED,
    Family,
    encoder_of,
    find_family,
    layer_reaches,
    longest_input,
)
from headroles.models.heads.projections import ValueReader, find_projections, open_values
from headroles.models.heads.remaining import Head, pruned_heads, remaining_heads
from headroles.models.options import WEIGHTS
from headroles.wording import in_one_line


@dataclass(frozen=True)
class AttentionReader:
    """Reader that runs an encoder and passes the attention weights of each layer to a function.

    `open_reader` makes it; it is usable until that context ends.
    """

    model: PreTrainedModel | FunctionAttention
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
            if weights.dtype in (torch.bfloat16, torch.float16):
                # Rounding to half precision moves the sums of rows by up to 0.4 %.
                weights = weights.float()
                tiny = torch.finfo(torch.float32).tiny
                weights = weights / weights.sum(-1, keepdim=True).clamp_min(tiny)
            if self.norms is not None:
                weights = self.norms.norms(layer, weights)
            if len(self.remaining[layer]) < self.n_heads:
                shape = (len(weights), self.n_heads, *weights.shape[2:])
                left, weights = weights, weights.new_zeros(shape)
                weights[:, list(self.remaining[layer])] = left
            on_layer(layer, weights)

        with suppress(AllRead):
            self.run(inputs, Pass(put, self.n_layers, names))

    @property
    def description(self) -> dict[str, Any]:
        """Description of the model's heads, and of how their weights are reached."""
        return {
            "family": self.family.name,
            "read_through": self.read_through,
            "layers": self.n_layers,
            "heads": self.n_heads,
            "reaches": list(self.reaches),
            "removed_heads": list(self.removed),
        }

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
    model: PreTrainedModel | FunctionAttention, measure: str = WEIGHTS
) -> Iterator[AttentionReader]:
    """Make the attention of ``model`` readable; restore the model afterwards.

    With the ``measure`` ``"norms"``, the reader passes norms (`NormReader`).

    Only the encoder below any task head runs. A trial run counts the layers and heads, and compares
    the weights of interface families with the family's own code. An encoder that cannot be read
    through the interface is read through the attentions that it returns.

    Raises:
        ModelError: the model is in training mode, where dropout changes attention.
        ModelSupportError: the model is not an encoder, or its attention cannot be reached.
    """
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode())
        if isinstance(model, FunctionAttention):
            family, heads = Family("own attention", paths=None), model.heads
            remaining, reaches = tuple(tuple(range(n)) for n in heads), (None,) * len(heads)
            way = model.source
            reader = AttentionReader(model, family, heads[0], reaches, remaining, model.run, way)
        else:
            reader = _open(stack, model)
        if measure != WEIGHTS:
            reader = replace(reader, norms=stack.enter_context(open_norms(reader)))
        yield reader


def _open(stack: ExitStack, model: PreTrainedModel) -> AttentionReader:
    """Return a reader that uses the first way that works, and that ``stack`` closes."""
    if model.training:
        raise ModelError(
            "the model is in training mode, where attention weights have gone through dropout; "
            "call model.eval() first"
        )
    family, base = find_family(model), encoder_of(model)
    unread: ModelSupportError | None = None
    if family.read_through == INTERFACE:
        attempt = stack.enter_context(ExitStack())
        try:
            run = attempt.enter_context(replaced_interface(base))
            return _make_reader(base, family, run, INTERFACE)
        except ModelSupportError as error:
            attempt.close()
            unread = error
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
    if isinstance(reader.model, FunctionAttention):
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

    with _reads_tokens_alone(family):
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


@contextmanager
def returned_attention(base: PreTrainedModel, family: Family) -> Iterator[Run]:
    """Open the attentions that a model returns; restore the model afterwards.

    The weights of all layers of a batch are in memory at once. Raises ModelSupportError for a model
    that returns no attention weights, or weights that depend on the padding of a batch.
    """

    def attend(inputs: Inputs, names: Sequence[str] = ()) -> list[Tensor]:
        n, width = inputs["attention_mask"].shape
        if family.mixes_padding and n > 1:
            rows = [attend(without_padding(inputs, row)) for row in range(n)]
            return [
                torch.cat([nn.functional.pad(row, (0, width - row.shape[-1]) * 2) for row in layer])
                for layer in zip(*rows, strict=True)
            ]
        returned: Any = getattr(base(**inputs, output_attentions=True), "attentions", None)
        if not returned or not all(isinstance(layer, Tensor) for layer in returned):
            raise ModelSupportError(
                f"{family.name} has no attention interface that can be read, and returns no "
                "attentions with output_attentions=True; run `headroles models` for the families "
                "that can be scored"
            )
        if family.returns_scores:
            return [torch.softmax(layer, dim=-1, dtype=torch.float32) for layer in returned]
        return [layer.detach() for layer in returned]

    def run(inputs: Inputs, this_pass: Pass) -> None:  # checks would wait for the device
        for weights in attend(inputs):
            this_pass.next_layer(weights)

    with attention_of_kind(base, "eager"):
        trial = trial_inputs(base, 2)
        ids, mask = trial["input_ids"], trial["attention_mask"]
        mask[1, ids.shape[1] // 2 + 1 :] = 0
        ids[mask == 0] = getattr(base.config, "pad_token_id", None) or 0
        with _reads_tokens_alone(family):
            attend(trial)
        try:
            returned = FunctionAttention(attend, family.name, base.device)
            returned.check_alone(trial, (), TOLERANCE.get(base.dtype, 1e-4))
        except ModelError as error:
            raise ModelSupportError(str(error)) from error
        yield run


@contextmanager
def _reads_tokens_alone(family: Family) -> Iterator[None]:
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


def trial_inputs(base: PreTrainedModel, n: int) -> dict[str, Tensor]:
    """Make ``n`` short sequences of pieces that the model has embeddings for."""
    width = min(8, longest_input(base, base.config) or 8)
    size = cast(nn.Embedding, base.get_input_embeddings()).weight.shape[0]
    ids = torch.arange(8, 8 + n * width, device=base.device).view(n, width) % size
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


class NormReader:
    """Reader of norms of the current layer, from the value vectors of the same pass.

    A head adds A[i, j] * f(x_j) to what query i gets from key j, with f(x_j) the value vector of
    the key, bias included, through the head's part of the output projection (Kobayashi et al.
    2020). The norm of that is A[i, j] * ||f(x_j)||: one length for each head and key, never a
    vector for each pair. Rows are then divided by their sums, so that they are read like weights.
    """

    def __init__(self, values: ValueReader) -> None:
        self._values = values

    def lengths(self, layer: int) -> Tensor:
        """Return lengths ||f(x_j)|| of all heads and tokens (batch, heads, token), in float32."""
        # float32 for every type of model: lengths are divided by one another
        values = self._values.of(layer).float().movedim(-2, 1)
        lengths: Tensor = torch.linalg.vector_norm(values @ self._lengthening[layer], dim=-1)
        return lengths

    def norms(self, layer: int, weights: Tensor) -> Tensor:
        """Return norms (batch, heads, query, key) for ``weights``, with rows that sum to 1.

        A head without any output has rows of 0.
        """
        return _as_shares(weights.float() * self.lengths(layer)[:, :, None])

    def layer_norms(self, layer: int, weights: Tensor) -> Tensor:
        """Return norms (batch, query, key) of all heads of a layer together, with rows that sum to
        1.

        The vectors of all heads from a key are added before their length is taken, so that heads
        may cancel each other, || sum_h A_h[i, j] f_h(x_j) ||. With the products of the vectors of a
        key, G_j[h, g] = f_h(x_j) . f_g(x_j), its square is sum_hg A_h[i, j] A_g[i, j] G_j[h, g].
        """
        of_keys = weights.float().permute(0, 3, 2, 1)  # (batch, key, query, heads)
        squares = ((of_keys @ self.products(layer)) * of_keys).sum(dim=-1)
        return _as_shares(squares.clamp_min_(0).sqrt_().mT)  # rounding may leave less than 0

    def products(self, layer: int) -> Tensor:
        """Return products f_h(x_j) . f_g(x_j) of heads' vectors (batch, token, heads, heads)."""
        values = self._values.of(layer).float()
        n_heads = values.shape[-2]
        products = values.new_empty(*values.shape[:2], n_heads, n_heads)
        # one head after the other: never more than a hidden state for each token
        for head, crossing in enumerate(self._crossings[layer]):
            crossed = (values[..., head, :] @ crossing).view_as(values)
            products[..., head, :] = (crossed * values).sum(dim=-1)
        return products

    @cached_property
    def _lengthening(self) -> list[Tensor]:
        """Matrices (heads, head size, head size) of each layer that give values their output
        lengths.

        The output projection of a head is W = Q R, and Q only rotates, so ||W v|| = ||R v||: a
        matrix of the head's size instead of the model's.
        """
        return [torch.linalg.qr(weight, mode="r").R.mT for weight in self._output_weights]

    @cached_property
    def _crossings(self) -> list[Tensor]:
        """Products W_h^T W_g of heads h and g (heads, head size, heads * head size) by layer."""
        return [
            torch.einsum("hds,gdt->hsgt", weight, weight).flatten(-2)
            for weight in self._output_weights
        ]

    @property
    def _output_weights(self) -> list[Tensor]:
        return [layer.output_weight.detach().float() for layer in self._values.layers]


def _as_shares(norms: Tensor) -> Tensor:
    """Divide rows by their sums, in place; rows of 0 stay 0."""
    return norms.div_(norms.sum(dim=-1, keepdim=True).clamp_min_(torch.finfo(norms.dtype).tiny))
