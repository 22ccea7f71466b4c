"""Linear projections of attention: queries, keys, values and outputs, head by head.

However a family stores them (one linear for all three, keys shared by several heads, separate
biases), here every head has its own rows of a weight and its own columns of the output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast, get_args

import torch
from torch import Tensor, nn

from headroles.errors import ModelSupportError
from headroles.models.families import Paths
from headroles.models.heads.linears import Linear, weight_of
from headroles.models.heads.low_rank import is_low_rank
from headroles.models.heads.stack import Stack

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Projection:
    """Linear map from hidden states to the queries, keys or values of one layer's heads."""

    linear: Linear
    rows: Tensor
    """(heads, head size): the outputs of ``linear`` that belong to each head. There are fewer heads
    than queries if several share keys and values.
    """
    bias_apart: nn.Parameter | None = None
    """(heads x head size): a bias that the family stores beside ``linear``."""

    @property
    def weight(self) -> Tensor:
        """(heads, head size, hidden size)."""
        return weight_of(self.linear)[self.rows]

    @property
    def bias(self) -> Tensor:
        """(heads, head size); zeros without a bias."""
        if self.bias_apart is not None:
            return self.bias_apart.view(self.rows.shape)
        if self.linear.bias is None:
            return self.linear.weight.new_zeros(self.rows.shape)
        return self.linear.bias[self.rows]


@dataclass(frozen=True)
class LayerProjections:
    """The attention projections of one layer."""

    query: Projection | None
    """Projection like ``key``; None if queries and keys are of low rank."""
    key: Projection | None
    value: Projection
    output: Linear
    """Linear whose input is the outputs of all heads side by side, at which heads are masked."""
    columns: Tensor
    """(heads, head size): the inputs of ``output`` that belong to each head."""
    heads: tuple[int, ...]
    """Numbers of the heads, which do not change when others are removed."""
    find: PathFinder
    """Finder of the other modules of the layer."""

    @property
    def inputs(self) -> tuple[Linear, ...]:
        """Linears of queries, keys and values, each once; of low rank, that of values alone."""
        parts = (self.query, self.key, self.value)
        return tuple(dict.fromkeys(part.linear for part in parts if part is not None))

    @property
    def output_weight(self) -> Tensor:
        """(heads, hidden size, head size): weights of each head in the output, without the bias."""
        return weight_of(self.output)[:, self.columns].transpose(0, 1)

    def values_in(self, output: Tensor) -> Tensor:
        """Return value vectors (..., heads, head size) from outputs (..., features) of
        ``value.linear``.

        Biases are included; values that several heads share are repeated for each of them.
        """
        values = output[..., self.value.rows]
        if self.value.bias_apart is not None:
            values = values + self.value.bias
        groups = len(self.columns) // max(1, values.shape[-2])  # all heads may be removed
        return values if groups == 1 else values.repeat_interleave(groups, dim=-2)


def find_projections(stack: Stack) -> tuple[LayerProjections, ...]:
    """Find the projections of every layer, in the order of layers; ALBERT's layers share theirs.

    Raises ModelSupportError for a family that is not listed, and for missing or unexpected modules,
    such as quantised ones.
    """
    paths, remaining = stack.paths, stack.remaining
    return tuple(
        _of_layer(PathFinder(stack, layer), paths, heads) for layer, heads in enumerate(remaining)
    )


def layers_that_share(layers: Sequence[LayerProjections]) -> dict[Linear, list[int]]:
    """Return the numbers of the layers that each output projection serves, in their order."""
    numbers: dict[Linear, list[int]] = {}
    for number, layer in enumerate(layers):
        numbers.setdefault(layer.output, []).append(number)
    return numbers


def _of_layer(find: PathFinder, paths: Paths, heads: tuple[int, ...]) -> LayerProjections:
    output = find.linear(paths.output)
    width = weight_of(output).shape[1]
    size, rest = divmod(width, max(len(heads), 1))
    if rest:
        raise ModelSupportError(
            f"layer {find.layer} has {width} outputs for {len(heads)} heads; each "
            "head must have the same number of them"
        )
    numbers = torch.arange(width, device=output.weight.device)

    def project(part: int, path: str, bias: str = "") -> Projection:
        linear = find.linear(path)
        rows = torch.arange(len(weight_of(linear)), device=numbers.device)
        if not len(rows):  # no head is left
            rows = rows.view(0, 0)
        elif paths.fused == "thirds":
            rows = rows.view(3, -1, size)[part]
        elif paths.fused == "heads":
            rows = rows.view(-1, 3, size)[:, part]
        else:
            rows = rows.view(-1, size)
        return Projection(linear, rows, find.parameter(bias))

    low_rank = is_low_rank(find.module(paths.attention))
    return LayerProjections(
        None if low_rank else project(0, paths.query, paths.query_bias),
        None if low_rank else project(1, paths.key),
        project(2, paths.value, paths.value_bias),
        output,
        numbers.view(len(heads), size),
        heads,
        find,
    )


@dataclass(frozen=True)
class PathFinder:
    """Finder of the modules of one layer of a stack by its paths.

    Raises ModelSupportError if the model has no such path.
    """

    stack: Stack
    layer: int

    def linear(self, path: str) -> Linear:
        """Return the linear at ``path``. Raises ModelSupportError for another module."""
        module = self._find(path, self.stack.part.get_submodule)
        if type(module) not in get_args(Linear):
            raise ModelSupportError(
                f"{path.format(self.layer)} is a {type(module).__name__} and no Linear; "
                "give the model in full precision, with adapters merged into it"
            )
        return cast(Linear, module)

    def parameter(self, path: str) -> nn.Parameter | None:
        """Return the parameter at ``path``; None without a path."""
        return self._find(path, self.stack.part.get_parameter) if path else None

    def module(self, path: str) -> nn.Module:
        """Return the module at ``path``."""
        return self._find(path, self.stack.part.get_submodule)

    def replace(self, path: str, value: nn.Module | nn.Parameter) -> None:
        """Put another module or parameter at ``path``."""
        above, _, name = path.rpartition(".")
        setattr(self.module(above), name, value)

    def _find(self, path: str, find: Callable[[str], _Found]) -> _Found:
        n_groups = getattr(self.stack.config, "num_hidden_groups", 1)
        group = self.layer * n_groups // self.stack.n_layers
        full_path = path.format(self.layer, group=group)
        try:
            return find(full_path)
        except AttributeError as error:
            raise ModelSupportError(
                f"this {self.stack.family.name} model has no {full_path}: {error}; "
                "its code differs from that of transformers"
            ) from error


@dataclass(frozen=True)
class ValueReader:
    """Reader of the latest outputs of the value projections.

    If layers share their projection, the output is that of the last layer that ran.
    """

    layers: Sequence[LayerProjections]
    outputs: dict[nn.Module, Tensor]

    def of(self, layer: int) -> Tensor:
        """Return the value vectors of a layer (batch, token, heads, head size), biases included."""
        projections = self.layers[layer]
        return projections.values_in(self.outputs[projections.value.linear])


@contextmanager
def open_values(layers: Sequence[LayerProjections]) -> Iterator[ValueReader]:
    """Open a reader of the value vectors of these layers; restore the modules afterwards."""
    reader = ValueReader(layers, {})

    def keep(module: nn.Module, inputs: Any, output: Tensor) -> None:
        reader.outputs[module] = output

    with ExitStack() as stack:
        for linear in {layer.value.linear for layer in layers}:
            stack.enter_context(linear.register_forward_hook(keep))
        yield reader
