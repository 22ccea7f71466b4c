"""Value vectors of every head, as a forward pass computes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from headroles.models.projections import LayerProjections


class ValueReader:
    """Reader that stores the latest outputs of the value projections.

    If layers share their projection, the output is that of the last layer that ran.
    """

    def __init__(self, layers: Sequence[LayerProjections]) -> None:
        self.layers = layers
        self._put_out: dict[nn.Module, Tensor] = {}

    def keep(self, module: nn.Module, inputs: Any, output: Tensor) -> None:
        """Store an output, as a forward hook of a value projection."""
        self._put_out[module] = output

    def of(self, layer: int) -> Tensor:
        """Return the value vectors of a layer (batch, token, heads, head size), biases included."""
        projections = self.layers[layer]
        return projections.values_in(self._put_out[projections.value.linear])


@contextmanager
def open_values(layers: Sequence[LayerProjections]) -> Iterator[ValueReader]:
    """Open a reader of the value vectors of these layers; restore the modules afterwards."""
    reader = ValueReader(layers)
    linears = {id(layer.value.linear): layer.value.linear for layer in layers}
    handles = [linear.register_forward_hook(reader.keep) for linear in linears.values()]
    try:
        yield reader
    finally:
        for handle in handles:
            handle.remove()
