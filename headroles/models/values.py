"""The value vectors of every head, as a forward pass computes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from headroles.models.projections import LayerProjections


class ValueReader:
    """Keeps what the value projections put out last.

    Where layers share their projection, that is the last layer that ran.
    """

    def __init__(self, layers: Sequence[LayerProjections]) -> None:
        self.layers = layers
        self._put_out: dict[nn.Module, Tensor] = {}

    def keep(self, module: nn.Module, inputs: Any, output: Tensor) -> None:
        """A forward hook of a value projection."""
        self._put_out[module] = output

    def of(self, layer: int) -> Tensor:
        """(batch, token, heads, head size): the value vectors of a layer, biases included."""
        projections = self.layers[layer]
        return projections.values_in(self._put_out[projections.value.linear])


@contextmanager
def open_values(layers: Sequence[LayerProjections]) -> Iterator[ValueReader]:
    """A reader of the value vectors of these layers; leaves the modules as they were found."""
    reader = ValueReader(layers)
    linears = {id(layer.value.linear): layer.value.linear for layer in layers}
    handles = [linear.register_forward_hook(reader.keep) for linear in linears.values()]
    try:
        yield reader
    finally:
        for handle in handles:
            handle.remove()
