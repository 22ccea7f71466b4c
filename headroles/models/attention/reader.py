"""Attention weights, layer by layer, by the attention interface or as the model returns them.

Through the interface no more is computed and nothing is stored: a forward pass stops as soon as the
weights of the last layer have been read. The rest of that layer, the pooler and a task head do not
affect any attention weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import torch
from torch import Tensor, nn

from headroles.encoding import DECODER_INPUTS, PAIR_MASK
from headroles.errors import HeadRolesError, ModelError, ModelSupportError, lacks_memory
from headroles.models.attention.functions import (
    TOLERANCE,
    FunctionAttention,
    is_causal,
    lacks_weights,
    without_padding,
)
from headroles.models.attention.interface import (
    AllRead,
    Inputs,
    OnLayer,
    Pass,
    Reads,
    Run,
    attention_of_kind,
    replaced_interface,
)
from headroles.models.families import (
    INTERFACE,
    RETURNED,
    Family,
    cut_out_of,
    is_encoder_decoder,
)
from headroles.models.heads.projections import ValueReader, find_projections, open_values
from headroles.models.heads.remaining import Head, pruned_heads
from headroles.models.heads.stack import Stack
from headroles.models.options import CROSS, DECODER, ENCODER, WEIGHTS
from headroles.reach import ACROSS, EVERYTHING, TARGET, Reach, window_of_decoder
from headroles.wording import in_one_line, listed

RETURNED_AS = {
    ENCODER: "attentions",
    DECODER: "decoder_attentions",
    CROSS: "cross_attentions",
}
"""Names of attentions in the outputs of a model."""


@dataclass(frozen=True)
class AttentionReader:
    """Reader that runs a model and passes the attention weights of each layer to a function.

    `open_reader` makes it; it is usable until that context ends.
    """

    source: Stack | FunctionAttention
    family: Family
    n_heads: int
    reaches: tuple[Reach, ...]
    """For each layer, how far its attention reaches."""
    remaining: tuple[tuple[int, ...], ...]
    """For each layer, the heads that are present; others were removed from the model."""
    run: Run
    read_through: str
    """Short description of how the weights are reached."""
    norms: NormReader | None = None
    """Reader of norms, if norms are read instead of weights."""
    reads: Reads | None = None
    """Function that tells modules whose attention is read from others; None if all are."""

    @property
    def n_layers(self) -> int:
        """Number of layers."""
        return len(self.remaining)

    @property
    def is_causal(self) -> bool:
        """Whether tokens see earlier ones alone, in any layer."""
        return any(reach.is_causal for reach in self.reaches)

    def read(
        self, inputs: Mapping[str, Tensor], on_layer: OnLayer, names: Sequence[str] = ()
    ) -> None:
        """Run the model on one batch. ``on_layer`` must not store the weights it is given.

        Weights of heads that were removed from the model are 0. ``names`` are those of the
        examples, by which a user's own attention is found, and which messages name.
        """
        of_model = {name: values for name, values in inputs.items() if name != PAIR_MASK}

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
            if PAIR_MASK in inputs:
                weights = side_by_side(weights, inputs, self.reaches[layer])
            on_layer(layer, weights)

        with suppress(AllRead):
            self.run(of_model, Pass(put, self.n_layers, names, self.reads))

    @property
    def description(self) -> dict[str, Any]:
        """Description of the model's heads, and of how their weights are reached."""
        return {
            "family": self.family.name,
            "read_through": self.read_through,
            "layers": self.n_layers,
            "heads": self.n_heads,
            "reaches": [reach.as_recorded for reach in self.reaches],
            "removed_heads": list(self.removed),
            "attention": getattr(self.source, "kind", ENCODER),
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
    source: Stack | FunctionAttention, measure: str = WEIGHTS
) -> Iterator[AttentionReader]:
    """Make the attention of a stack readable; restore its model afterwards.

    With the ``measure`` ``"norms"``, the reader passes norms (`NormReader`).

    Only what is below a task head runs. A trial run counts the layers and heads, and compares the
    weights of interface families with the family's own code. A model that cannot be read through
    the interface is read through the attentions that it returns.

    Raises:
        ModelError: the model is in training mode, where dropout changes attention.
        ModelSupportError: its attention cannot be reached.
    """
    with ExitStack() as context:
        context.enter_context(torch.inference_mode())
        if isinstance(source, FunctionAttention):
            reader = _reader_of_function(source)
        else:
            reader = _open(context, source)
        if measure != WEIGHTS:
            reader = replace(reader, norms=context.enter_context(open_norms(reader)))
        yield reader


def _reader_of_function(source: FunctionAttention) -> AttentionReader:
    reach = window_of_decoder(None) if source.is_causal else EVERYTHING
    if source.kind != ENCODER:
        reach = ACROSS if source.kind == CROSS else window_of_decoder(None, TARGET)
    return AttentionReader(
        source=source,
        family=Family("own attention", paths=None),
        n_heads=source.heads[0],
        reaches=(reach,) * len(source.heads),
        remaining=tuple(tuple(range(n_heads)) for n_heads in source.heads),
        run=source.run,
        read_through=source.source,
    )


def _open(context: ExitStack, stack: Stack) -> AttentionReader:
    """Return a reader that uses the first way that works, and that ``context`` closes."""
    if stack.whole.training:
        raise ModelError(
            "the model is in training mode, where attention weights have gone through dropout; "
            "call model.eval() first"
        )
    unread: ModelSupportError | None = None
    if stack.family.read_through == INTERFACE:
        attempt = context.enter_context(ExitStack())
        try:
            run = attempt.enter_context(replaced_interface(stack.base, stack.settings))
            return _make_reader(stack, run, INTERFACE)
        except ModelSupportError as error:
            attempt.close()
            unread = error
    try:
        run = context.enter_context(returned_attention(stack))
        return _make_reader(stack, run, RETURNED)
    except ModelSupportError as error:
        raise error from unread


@contextmanager
def open_norms(reader: AttentionReader) -> Iterator[NormReader]:
    """Open the norms of the layer that a reader reads; restore its model afterwards.

    Raises ModelSupportError for a family whose projections are unknown.
    """
    if isinstance(reader.source, FunctionAttention):
        raise lacks_weights(reader.source.source)
    with open_values(find_projections(reader.source)) as values:
        yield NormReader(values)


def _make_reader(stack: Stack, run: Run, way: str) -> AttentionReader:
    """Make a reader of a stack; a trial run checks its weights, and counts layers and heads.

    It also finds the layers in which no token sees a later one.
    """
    family, heads, causal = stack.family, list[int](), list[bool | None]()
    modules = set[nn.Module]()
    trial = trial_inputs(stack, 1)
    shape = _shape_of(stack, trial)

    def find(module: nn.Module, query: Tensor, key: Tensor) -> bool:
        # source and target of a trial differ in length
        if (query.shape[-2], key.shape[-2]) == shape:
            modules.add(module)
        return module in modules

    def note(layer: int, weights: Tensor) -> None:
        if weights.shape[-2:] != shape:
            raise ModelSupportError(f"{family.name}: its queries and keys are not the same tokens")
        if not torch.isfinite(weights).all():
            raise ModelError(
                f"the attention of layer {layer} is not finite; its weights are broken"
            )
        heads.append(weights.shape[1])
        causal.append(is_causal(weights) if weights.shape[1] else None)

    with _reads_tokens_alone(family):
        run(trial, Pass(note, n_layers=None, reads=find if stack.takes_targets else None))
    pruned = pruned_heads(stack.config, stack.kind)
    heads = [left + len(pruned.get(layer, ())) for layer, left in enumerate(heads)]
    n_layers, n_heads = len(heads), max(heads, default=0)
    expected = stack.n_layers or n_layers
    if n_layers != expected or heads != [n_heads] * n_layers or not heads:
        raise ModelSupportError(
            f"{family.name}: attention was seen {n_layers} times through the {way} of a model of "
            f"{expected} layers, with {sorted(set(heads))} heads; it must be seen once in every "
            f"layer, with as many heads in each{_kinds_of(stack)}. Run `headroles models` for the "
            "families that can be scored"
        )
    of_heads = [one for one in causal if one is not None]
    # a layer without heads is as the others
    is_decoder = bool(of_heads) and all(of_heads)
    if stack.kind == ENCODER and is_decoder and is_encoder_decoder(stack.part.config):
        raise cut_out_of(stack.part.config)
    if stack.kind == DECODER and not all(of_heads):
        raise ModelSupportError(f"{family.name}: tokens of its decoder attend to later tokens")
    counted = replace(
        stack,
        n_layers=n_layers,
        n_heads=n_heads,
        causal=tuple(is_decoder if one is None else one for one in causal),
    )
    return AttentionReader(
        source=counted,
        family=family,
        n_heads=n_heads,
        reaches=counted.reaches,
        remaining=counted.remaining,
        run=run,
        read_through=way,
        reads=(lambda module, query, key: module in modules) if stack.takes_targets else None,
    )


def _shape_of(stack: Stack, inputs: Inputs) -> tuple[int, int]:
    """Return the numbers of queries and keys of the attention that is read."""
    n_source = n_target = inputs["input_ids"].shape[1]
    if stack.takes_targets:
        n_target = inputs[f"{DECODER_INPUTS}input_ids"].shape[1]
    return n_target, n_source if stack.kind == CROSS else n_target


def side_by_side(weights: Tensor, inputs: Inputs, reach: Reach) -> Tensor:
    """Return attention (batch, heads, N, N) among all tokens of a source and a target.

    ``weights`` (batch, heads, query, key) are those within or between both, each padded at its end.
    Here the tokens of the target follow those of the source; attention is 0 elsewhere.
    """
    n_source = inputs["attention_mask"].sum(dim=1, keepdim=True)
    n_target = inputs[f"{DECODER_INPUTS}attention_mask"].sum(dim=1, keepdim=True)
    place = torch.arange(inputs[PAIR_MASK].shape[1], device=weights.device)
    in_target = place - n_source
    rows, real = in_target, (in_target >= 0) & (in_target < n_target)
    columns, seen = (place.expand_as(rows), place < n_source) if reach.is_across else (rows, real)
    (n, heads), width = weights.shape[:2], len(place)
    rows = rows.clamp(0, weights.shape[2] - 1)[:, None, :, None]
    columns = columns.clamp(0, weights.shape[3] - 1)[:, None, None]
    joined = weights.gather(2, rows.expand(n, heads, width, weights.shape[3]))
    joined = joined.gather(3, columns.expand(n, heads, width, width))
    return joined.masked_fill(~(real[:, :, None] & seen[:, None])[:, None], 0)


def _kinds_of(stack: Stack) -> str:
    """Name the kinds of layers that a configuration lists, as the end of a sentence."""
    kinds = dict.fromkeys(stack.kinds)
    return f" (its layers are of the kinds {listed([*kinds])})" if len(kinds) > 1 else ""


@contextmanager
def returned_attention(stack: Stack) -> Iterator[Run]:
    """Open the attentions that a model returns; restore the model afterwards.

    The weights of all layers of a batch are in memory at once. Raises ModelSupportError for a model
    that returns no attention weights, or weights that depend on the padding of a batch.
    """
    base, family = stack.base, stack.family

    def attend(inputs: Inputs, names: Sequence[str] = ()) -> list[Tensor]:
        n, width = inputs["attention_mask"].shape
        if family.mixes_padding and n > 1:
            rows = [attend(without_padding(inputs, row)) for row in range(n)]
            return [
                torch.cat([nn.functional.pad(row, (0, width - row.shape[-1]) * 2) for row in layer])
                for layer in zip(*rows, strict=True)
            ]
        outputs = base(**inputs, **stack.settings, output_attentions=True)
        returned: Any = getattr(outputs, RETURNED_AS[stack.kind], None)
        if not returned or not all(isinstance(layer, Tensor) for layer in returned):
            raise ModelSupportError(
                f"{family.name} has no attention interface that can be read, and returns no "
                f"attentions with output_attentions=True{_kinds_of(stack)}; run `headroles models` "
                "for the families that can be scored"
            )
        if family.returns_scores:
            return [torch.softmax(layer, dim=-1, dtype=torch.float32) for layer in returned]
        return [layer.detach() for layer in returned]

    def run(inputs: Inputs, this_pass: Pass) -> None:  # checks would wait for the device
        for weights in attend(inputs):
            this_pass.next_layer(weights)

    with attention_of_kind(base, "eager"):
        trial = trial_inputs(stack, 2)
        ids, mask = trial["input_ids"], trial["attention_mask"]
        mask[1, ids.shape[1] // 2 + 1 :] = 0
        ids[mask == 0] = getattr(base.config, "pad_token_id", None) or 0
        if stack.takes_targets:
            mask = trial[f"{DECODER_INPUTS}attention_mask"]
            mask[1, mask.shape[1] // 2 + 1 :] = 0
        with _reads_tokens_alone(family):
            attend(trial)
        tolerance = TOLERANCE.get(base.dtype, 1e-4)
        if stack.takes_targets:
            _check_pair_alone(stack, attend, trial, tolerance)
        else:
            try:
                returned = FunctionAttention(attend, family.name, base.device)
                returned.check_alone(trial, (), tolerance)
            except ModelError as error:
                raise ModelSupportError(str(error)) from error
        yield run


def _check_pair_alone(
    stack: Stack, attend: Callable[[Inputs], list[Tensor]], trial: Inputs, tolerance: float
) -> None:
    """Raise ModelSupportError if the second pair has other weights alone, or rows of other sums."""
    pair = without_padding(trial, 1)
    n_queries, n_keys = _shape_of(stack, pair)
    for layer, (together, own) in enumerate(zip(attend(trial), attend(pair), strict=True)):
        found = together[1:, :, :n_queries, :n_keys].float()
        is_whole = torch.allclose(found.sum(-1), torch.ones_like(found.sum(-1)), 0, 1e-2)
        if not is_whole or not torch.allclose(found, own.float(), rtol=0, atol=tolerance):
            raise ModelSupportError(
                f"{stack.family.name}: rows of {stack.kind} attention in layer {layer} do not sum "
                "to 1 over the tokens of a sentence, or depend on others of its batch"
            )


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


def trial_inputs(stack: Stack, n: int) -> dict[str, Tensor]:
    """Make ``n`` short sequences of pieces that the model has embeddings for."""
    width = min(8, stack.longest_input or 8)
    size = cast(nn.Embedding, stack.base.get_input_embeddings()).weight.shape[0]
    ids = torch.arange(8, 8 + n * width, device=stack.device).view(n, width) % size
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if stack.takes_targets:  # fewer tokens, which tells its attention apart
        shorter = {name: values[:, : width // 2 + 1].clone() for name, values in inputs.items()}
        inputs |= {f"{DECODER_INPUTS}{name}": values for name, values in shorter.items()}
    return inputs


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
