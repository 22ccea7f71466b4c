"""Gates: a multiplier for the output of every head, at the input of the output projection.

The place is the same in every family, however attention is computed (sdpa). A gate of 1 leaves a
head unchanged. At 0 the ablation replaces its output: by nothing (``zero``, as if it were removed),
by its mean output over reference examples (``mean``), or by the mean of its values over the tokens
that it may attend to (``uniform``: attention without any preference).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import torch
from torch import Tensor, nn

from headroles.encoding import DECODER_INPUTS
from headroles.head_rows import HeadRows
from headroles.models.heads.linears import Linear, weight_of
from headroles.models.heads.projections import (
    ValueReader,
    find_projections,
    layers_that_share,
    open_values,
)
from headroles.models.heads.remaining import Head
from headroles.models.heads.stack import Stack
from headroles.models.options import MEAN, UNIFORM, ZERO
from headroles.reach import SOURCE, TARGET

Change: TypeAlias = Callable[[int, Tensor], Tensor]
"""Function from a layer and the outputs of its heads (batch, tokens, remaining heads, head size) to
the outputs that replace them.
"""


class HeadSites:
    """Sites at which the outputs of all heads of a model can be read and changed.

    Of several stacks of one model, such as those of an encoder, a decoder and across, the layers
    are rows, one stack after another, and a head is (row, number).

    Raises ModelSupportError for a model of a family whose projections are not known.
    """

    def __init__(self, *stacks: Stack) -> None:
        self.stacks, self.stack = stacks, stacks[0]
        self.layers = tuple(layer for stack in stacks for layer in find_projections(stack))
        self.reaches = tuple(reach for stack in stacks for reach in stack.reaches)

    @property
    def n_layers(self) -> int:
        """Number of layers, those of all stacks."""
        return len(self.layers)

    @property
    def n_heads(self) -> int:
        """Number of heads that a layer has at most, or had before some were removed."""
        return max(stack.n_heads for stack in self.stacks)

    @property
    def heads(self) -> list[Head]:
        """The heads that the model has now."""
        return [(row, head) for row, layer in enumerate(self.layers) for head in layer.heads]

    @property
    def rows(self) -> HeadRows:
        """The kinds of attention of the layers, of a model that reads a source and a target."""
        if not any(stack.takes_targets for stack in self.stacks):
            return HeadRows()
        return HeadRows({stack.kind: stack.n_layers for stack in self.stacks})

    @property
    def description(self) -> dict[str, Any]:
        """Description of the model's heads, and of how they are reached."""
        return {
            "family": self.stack.family.name,
            "read_through": "outputs of heads",
            "layers": self.n_layers,
            "heads": self.n_heads,
            "stacks": dict(self.rows.layers),
            "stack_heads": {
                stack.kind: stack.n_heads for stack in self.stacks if stack.kind in self.rows.layers
            },
        }

    def rows_in(self, sequence: int) -> list[int]:
        """Return the layers whose queries are tokens of the source, or of the target."""
        return [row for row, reach in enumerate(self.reaches) if reach.queries == sequence]

    @property
    def layers_are_shared(self) -> bool:
        """Whether layers share modules, as in ALBERT."""
        return len(layers_that_share(self.layers)) < self.n_layers

    @contextmanager
    def changed(self, change: Change) -> Iterator[None]:
        """Apply ``change`` to the heads' outputs in every forward pass within the block."""
        served = layers_that_share(self.layers)
        calls: Counter[Linear] = Counter()

        def start(module: nn.Module, inputs: Any) -> None:
            calls.clear()  # counts of an interrupted pass

        def put(module: Linear, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            number = served[module][calls[module] % len(served[module])]
            calls[module] += 1
            outputs, columns = inputs[0], self.layers[number].columns
            changed = change(number, outputs.view(*outputs.shape[:-1], len(columns), -1))
            return (changed.flatten(-2), *inputs[1:])

        with ExitStack() as stack:
            stack.enter_context(cast(nn.Module, self.stack.whole).register_forward_pre_hook(start))
            for module in served:
                if weight_of(module).shape[1]:
                    stack.enter_context(module.register_forward_pre_hook(put))
            yield


@contextmanager
def gated(sites: HeadSites, gates: Tensor, ablation: Ablation | None = None) -> Iterator[None]:
    """Multiply the outputs of heads by ``gates`` (layers, heads) within the block.

    ``gates`` may also be (batch, layers, heads), for each example of a batch. ``ablation`` fills in
    the closed share of the outputs; None fills in nothing.
    """
    ablation_used = ablation or Ablation()

    def change(layer: int, outputs: Tensor) -> Tensor:
        gate = gates[..., layer, list(sites.layers[layer].heads)].to(outputs)
        gate = gate[..., None] if gates.dim() == 2 else gate[:, None, :, None]
        scaled = outputs * gate
        instead = ablation_used.instead(sites, layer, outputs)
        return scaled if instead is None else scaled + (1 - gate) * instead

    with ExitStack() as stack:
        stack.enter_context(sites.changed(change))
        if ablation_used.kind == UNIFORM:
            ablation_used.values = stack.enter_context(open_values(sites.layers))
        yield


@dataclass
class Ablation:
    """Replacement of the output of a head whose gate is closed.

    ``means``, for ``mean``, are the mean outputs (remaining heads, head size) of each layer. For
    ``uniform``, ``inputs`` are those of the next batch, whose masks say which tokens are real, and
    ``values`` reads value vectors; `gated` opens it.
    """

    kind: str = ZERO
    means: Sequence[Tensor] = ()
    inputs: Mapping[str, Tensor] = field(default_factory=dict, repr=False)
    values: ValueReader | None = field(default=None, repr=False)

    def instead(self, sites: HeadSites, layer: int, outputs: Tensor) -> Tensor | None:
        """Return the replacement of the heads' outputs of a layer, None for nothing."""
        if self.kind == MEAN:
            return self.means[layer].to(outputs)
        if self.kind == UNIFORM:
            return self._uniform(sites, layer, outputs.shape[1])
        return None

    def _uniform(self, sites: HeadSites, layer: int, n_queries: int) -> Tensor:
        """Return means (batch, query, heads, head size) of values that a token may attend to."""
        values, reach = cast(ValueReader, self.values).of(layer), sites.reaches[layer]
        allowed = mask_of(self.inputs, reach.keys)[:, None].to(values)  # (batch, 1, key)
        if reach.is_limited:
            place = torch.arange(allowed.shape[-1], device=allowed.device)
            allowed = allowed * reach.sees(place - place[:, None])
        # a row of padding may see no token at all, and must not divide by 0
        shares = allowed / allowed.sum(-1, keepdim=True).clamp_min(1)
        return torch.einsum("bqk,bkhs->bqhs", shares.expand(-1, n_queries, -1), values)


def mask_of(inputs: Mapping[str, Tensor], sequence: int) -> Tensor:
    """Return the mask (batch, tokens) of the real tokens of the source, or of the target."""
    return inputs[f"{DECODER_INPUTS if sequence == TARGET else ''}attention_mask"]


def sum_outputs(sites: HeadSites, inputs: Mapping[str, Tensor]) -> dict[int, tuple[int, Tensor]]:
    """Return by layer the number of real queries of a batch, and the sums of outputs over them.

    Sums are (remaining heads, head size); layers without heads have none.
    """
    sums = dict[int, tuple[int, Tensor]]()

    def keep(layer: int, outputs: Tensor) -> Tensor:
        mask = mask_of(inputs, sites.reaches[layer].queries)
        # padding has outputs too, which differ by batch: they must not enter the mean
        of_layer = (outputs * mask[..., None, None].to(outputs)).sum((0, 1))
        sums[layer] = int(mask.sum()), of_layer
        return outputs

    with sites.changed(keep):
        sites.stack.run_whole(inputs)
    return sums


@contextmanager
def gate_gradients(sites: HeadSites) -> Iterator[Callable[[Tensor], dict[int, Tensor]]]:
    """Insert gates of 1 into a forward pass within the block, one for each token of each head.

    Yield the function from that pass's loss to its derivatives by them, for the layers of each
    sequence (`HeadSites.rows_in`): (batch, tokens, layers, heads), 0 for removed heads. The
    derivative by the gate of a head is the sum over its tokens. If the losses of examples are added
    up, one backward pass gives the derivatives of each example.
    """
    inserted: dict[int, Tensor] = {}

    def open_gates(layer: int, outputs: Tensor) -> Tensor:
        inserted[layer] = torch.ones_like(outputs[..., 0], requires_grad=True)
        return outputs * inserted[layer][..., None]

    def of_loss(loss: Tensor) -> dict[int, Tensor]:
        layers = sorted(inserted)
        by_layer = torch.autograd.grad(loss, [inserted[layer] for layer in layers])
        found = dict(zip(layers, by_layer, strict=True))
        gradients = {}
        for sequence in (SOURCE, TARGET):
            rows = sites.rows_in(sequence)
            if not (present := [row for row in rows if row in found]):
                continue
            first = found[present[0]]
            gradients[sequence] = first.new_zeros(*first.shape[:2], len(rows), sites.n_heads)
            for row in present:
                heads = list(sites.layers[row].heads)
                gradients[sequence][:, :, rows.index(row), heads] = found[row]
        return gradients

    with sites.changed(open_gates):
        yield of_loss


def weights_of_heads(sites: HeadSites) -> dict[Head, Tensor]:
    """Return all weights of every remaining head in a row: queries, keys, values and outputs.

    Keys and values that several heads share count for each of them. Queries and keys of low rank,
    which are not maps of single heads, are excluded.
    """
    weights: dict[Head, Tensor] = {}
    for number, layer in enumerate(sites.layers):
        n_heads = len(layer.heads)
        if not n_heads:
            continue
        maps = (layer.query, layer.key, layer.value)
        parts = [linear.weight for linear in maps if linear is not None] + [layer.output_weight]
        flat = [
            part.detach().flatten(1).repeat_interleave(n_heads // len(part), 0) for part in parts
        ]
        rows = torch.cat(flat, dim=1)
        weights |= {(number, head): row for head, row in zip(layer.heads, rows, strict=True)}
    return weights
