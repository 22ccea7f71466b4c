"""What a head really takes from a token: weights times the lengths of what it would hand on.

A head adds A[i, j] * f(x_j) to what query i gets from key j, with f(x_j) the value vector of the
key, bias included, through the head's part of the output projection (Kobayashi et al. 2020). The
norm of that is A[i, j] * ||f(x_j)||: one length for each head and key, never a vector for each
pair. Rows are then divided by their sums, so that they are read like weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from headroles.models.projections import LayerProjections


class ValueReader:
    """Keeps what the value projections put out last, until the attention of their layer is read."""

    def __init__(self, layers: Sequence[LayerProjections]) -> None:
        self._layers = layers
        self._lengthening = [_triangles(layer) for layer in layers]
        self._put_out: dict[nn.Linear, Tensor] = {}

    def keep(self, module: nn.Module, inputs: Any, output: Tensor) -> None:
        """A forward hook of a value projection."""
        assert isinstance(module, nn.Linear)
        self._put_out[module] = output

    def values(self, layer: int) -> Tensor:
        """(batch, heads, token, head size), in float32: the value vectors, biases included."""
        value, n_heads = self._layers[layer].value, len(self._layers[layer].columns)
        found = self._put_out[value.linear][..., value.rows]
        if value.bias_apart is not None:
            found = found + value.bias_apart.view(value.rows.shape)
        return _repeated(found.float().movedim(-2, 1), n_heads, dim=1)

    def lengths(self, layer: int) -> Tensor:
        """(batch, heads, token): ||f(x_j)|| of every head and token."""
        lengths: Tensor = torch.linalg.vector_norm(
            self.values(layer) @ self._lengthening[layer], dim=-1
        )
        return lengths

    def norms(self, layer: int, weights: Tensor) -> Tensor:
        """Norms (batch, heads, query, key) in the place of ``weights``, rows summing to 1.

        A head that takes nothing from anywhere has rows of 0.
        """
        norms = weights.float() * self.lengths(layer)[:, :, None]
        sums = norms.sum(dim=-1, keepdim=True)
        return norms.div_(sums.clamp_min_(torch.finfo(norms.dtype).tiny))


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


def _triangles(layer: LayerProjections) -> Tensor:
    """(heads, head size, head size): what gives values the lengths that the output gives them.

    The output projection W = Q R of a head only turns what R does, so ||W v|| = ||R v||: a matrix
    of the head's size instead of one of the model's.
    """
    triangles: Tensor = torch.linalg.qr(layer.output_weight.detach().float(), mode="r").R
    return triangles.mT


def _repeated(states: Tensor, n_heads: int, dim: int) -> Tensor:
    """Values for every head, where several share one."""
    groups = n_heads // states.shape[dim]
    return states if groups == 1 else states.repeat_interleave(groups, dim=dim)
