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
from itertools import chain
from typing import Any, TypeAlias, cast

import torch
from torch import Tensor, nn

from headroles.models.heads.projections import (
    ValueReader,
    find_projections,
    layers_that_share,
    open_values,
)
from headroles.models.heads.remaining import Head
from headroles.models.heads.stack import Stack
from headroles.models.options import MEAN, UNIFORM, ZERO

Change: TypeAlias = Callable[[int, Tensor], Tensor]
"""Function from a layer and the outputs of its heads (batch, tokens, remaining heads, head size) to
the outputs that replace them.
"""


class HeadSites:
    """Sites at which the outputs of all heads of a stack can be read and changed.

    Raises ModelSupportError for a model of a family whose projections are not known.
    """

    def __init__(self, stack: Stack) -> None:
        self.stack, self.layers = stack, find_projections(stack)
        self.reaches = stack.reaches

    @property
    def n_layers(self) -> int:
        """Number of layers."""
        return len(self.layers)

    @property
    def n_heads(self) -> int:
        """Number of heads that each layer has, or had before some were removed."""
        return self.stack.n_heads

    @property
    def description(self) -> dict[str, Any]:
        """Description of the model's heads, and of how they are reached."""
        return {
            "family": self.stack.family.name,
            "read_through": "outputs of heads",
            "layers": self.n_layers,
            "heads": self.n_heads,
        }

    @property
    def layers_are_shared(self) -> bool:
        """Whether layers share modules, as in ALBERT."""
        return len(layers_that_share(self.layers)) < self.n_layers

    @contextmanager
    def changed(self, change: Change) -> Iterator[None]:
        """Apply ``change`` to the heads' outputs in every forward pass within the block."""
        served = layers_that_share(self.layers)
        calls: Counter[nn.Linear] = Counter()

        def start(module: nn.Module, given: Any) -> None:
            calls.clear()  # counts of an interrupted pass

        def put(module: nn.Linear, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            number = served[module][calls[module] % len(served[module])]
            calls[module] += 1
            outputs, columns = given[0], self.layers[number].columns
            changed = change(number, outputs.view(*outputs.shape[:-1], len(columns), -1))
            return (changed.flatten(-2), *given[1:])

        with ExitStack() as stack:
            stack.enter_context(cast(nn.Module, self.stack.whole).register_forward_pre_hook(start))
            for module in served:
                if module.in_features:
                    stack.enter_context(module.register_forward_pre_hook(put))
            yield


@contextmanager
def gated(sites: HeadSites, gates: Tensor, ablation: Ablation | None = None) -> Iterator[None]:
    """Multiply the outputs of heads by ``gates`` (layers, heads) within the block.

    ``gates`` may also be (batch, layers, heads), for each example of a batch. ``ablation`` fills in
    the closed share of the outputs; None fills in nothing.
    """
    made = ablation or Ablation()

    def change(layer: int, outputs: Tensor) -> Tensor:
        gate = gates[..., layer, list(sites.layers[layer].heads)].to(outputs)
        gate = gate[..., None] if gates.dim() == 2 else gate[:, None, :, None]
        scaled = outputs * gate
        instead = made.instead(sites, layer, outputs)
        return scaled if instead is None else scaled + (1 - gate) * instead

    with ExitStack() as stack:
        stack.enter_context(sites.changed(change))
        if made.kind == UNIFORM:
            made.values = stack.enter_context(open_values(sites.layers))
        yield


@dataclass
class Ablation:
    """Replacement of the output of a head whose gate is closed.

    ``means``, for ``mean``, are the mean outputs (remaining heads, head size) of each layer. For
    ``uniform``, ``attention_mask`` (batch, tokens) is that of the next batch, and ``values`` reads
    value vectors; `gated` opens it.
    """

    kind: str = ZERO
    means: Sequence[Tensor] = ()
    attention_mask: Tensor | None = None
    values: ValueReader | None = field(default=None, repr=False)

    def instead(self, sites: HeadSites, layer: int, outputs: Tensor) -> Tensor | None:
        """Return the replacement of the heads' outputs of a layer, None for nothing."""
        if self.kind == MEAN:
            return self.means[layer].to(outputs)
        if self.kind == UNIFORM:
            return self._uniform(sites, layer)
        return None

    def _uniform(self, sites: HeadSites, layer: int) -> Tensor:
        """Return means (batch, tokens, heads, head size) of values that a token may attend to."""
        values = cast(ValueReader, self.values).of(layer)
        allowed = cast(Tensor, self.attention_mask)[:, None].to(values)  # (batch, 1, key)
        reach = sites.reaches[layer]
        if reach.is_limited:
            place = torch.arange(allowed.shape[-1], device=allowed.device)
            allowed = allowed * reach.sees(place - place[:, None])
        # a row of padding may see no token at all, and must not divide by 0
        shares = allowed / allowed.sum(-1, keepdim=True).clamp_min(1)
        return torch.einsum("bqk,bkhs->bqhs", shares.expand(-1, values.shape[1], -1), values)


def sum_outputs(sites: HeadSites, inputs: Mapping[str, Tensor]) -> tuple[int, dict[int, Tensor]]:
    """Return the number of real tokens of a batch, and by layer the sums of outputs over them.

    Sums are (remaining heads, head size); layers without heads have none.
    """
    mask, sums = inputs["attention_mask"], dict[int, Tensor]()

    def keep(layer: int, outputs: Tensor) -> Tensor:
        # padding has outputs too, which differ by batch: they must not enter the mean
        sums[layer] = (outputs * mask[..., None, None].to(outputs)).sum((0, 1))
        return outputs

    with sites.changed(keep):
        sites.stack.whole(**inputs)
    return int(mask.sum()), sums


@contextmanager
def gate_gradients(sites: HeadSites) -> Iterator[Callable[[Tensor], Tensor]]:
    """Insert gates of 1 into a forward pass within the block, one for each token of each head.

    Yield the function from that pass's loss to its derivatives by them (batch, tokens, layers,
    heads), 0 for removed heads. The derivative by the gate of a head is the sum over its tokens. If
    the losses of examples are added up, one backward pass gives the derivatives of each example.
    """
    inserted: dict[int, Tensor] = {}

    def open_gates(layer: int, outputs: Tensor) -> Tensor:
        inserted[layer] = torch.ones_like(outputs[..., 0], requires_grad=True)
        return outputs * inserted[layer][..., None]

    def of_loss(loss: Tensor) -> Tensor:
        layers = sorted(inserted)
        by_layer = torch.autograd.grad(loss, [inserted[layer] for layer in layers])
        gradients = by_layer[0].new_zeros(*by_layer[0].shape[:2], sites.n_layers, sites.n_heads)
        for layer, of_layer in zip(layers, by_layer, strict=True):
            gradients[:, :, layer, list(sites.layers[layer].heads)] = of_layer
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


_BLOCK = "encoder.layer.{}.attention"


class SharedPasses:
    """Passes over one batch that reuse the outputs of the pass before them.

    Memory holds the outputs of each layer for the one batch, and the outputs of heads of one layer.
    """

    def __init__(self, sites: HeadSites, values_are_read: bool = False) -> None:
        """Find the layers; passes share nothing if layers share modules.

        With ``values_are_read`` every pass runs hooks of the value projections where it has gates.
        """
        paths = sites.stack.paths
        layers = () if sites.layers_are_shared else sites.layers
        above = paths.output.partition("{}")[0] + "{}"
        self._layers = [layer.find.module(above) for layer in layers]
        self._parts: list[tuple[nn.Module, ...]] = [() for _ in sites.layers]
        if not values_are_read and not paths.output.startswith(f"{paths.attention}."):
            self._parts = [(layer.find.module(paths.attention),) for layer in layers]
        elif not paths.positions:  # others may be called for positions as well
            self._parts = [layer.inputs for layer in layers]
        self._outputs: dict[nn.Module, Any] = {}

    @contextmanager
    def next(self, shared: int) -> Iterator[None]:
        """Run a pass within the block; the pass after it is to share ``shared`` layers with it.

        That pass must have the same input and the same gates in the lowest ``shared`` layers.
        """
        before, self._outputs = self._outputs, {}

        def keep(module: nn.Module, given: Any, output: Any) -> None:
            self._outputs[module] = output

        with ExitStack() as stack:
            for module, output in before.items():
                module.forward = lambda *_, _output=output, **__: _output
                stack.callback(delattr, module, "forward")
            for module in chain(self._layers[:shared], *self._parts[shared : shared + 1]):
                stack.callback(module.register_forward_hook(keep).remove)
            yield


@contextmanager
def first_tokens_alone(sites: HeadSites) -> Iterator[None]:
    """Let the last layer run for first tokens alone, from the sum of attention and its input on.

    Without effect for families that lack a module for that sum, and where layers share modules.
    """
    if sites.layers_are_shared or not sites.stack.paths.output.startswith(f"{_BLOCK}."):
        yield
        return

    def cut(module: nn.Module, given: Any, output: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (output[0][:, :1], *output[1:])

    block = sites.stack.part.get_submodule(_BLOCK.format(sites.n_layers - 1))
    with block.register_forward_hook(cut):
        yield
