"""Norms: attention weights times the lengths of the vectors that a head passes on.

A head adds A[i, j] * f(x_j) to what query i gets from key j, with f(x_j) the value vector of the
key, bias included, through the head's part of the output projection (Kobayashi et al. 2020). The
norm of that is A[i, j] * ||f(x_j)||: one length for each head and key, never a vector for each
pair. Rows are then divided by their sums, so that they are read like weights.
"""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from headroles.models.heads.projections import ValueReader


class NormReader:
    """Reader of norms of the current layer, from the value vectors of the same pass."""

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
