"""What a head really takes from a token: weights times the lengths of what it would hand on.

A head adds A[i, j] * f(x_j) to what query i gets from key j, with f(x_j) the value vector of the
key, bias included, through the head's part of the output projection (Kobayashi et al. 2020). The
norm of that is A[i, j] * ||f(x_j)||: one length for each head and key, never a vector for each
pair. Rows are then divided by their sums, so that they are read like weights.
"""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from headroles.models.values import ValueReader


class NormReader:
    """Norms of the layer that is read, from the value vectors of the same pass."""

    def __init__(self, values: ValueReader) -> None:
        self._values = values

    def lengths(self, layer: int) -> Tensor:
        """(batch, heads, token): ||f(x_j)|| of every head and token, in float32."""
        values = self._values.of(layer).float().movedim(-2, 1)
        lengths: Tensor = torch.linalg.vector_norm(values @ self._lengthening[layer], dim=-1)
        return lengths

    def norms(self, layer: int, weights: Tensor) -> Tensor:
        """Norms (batch, heads, query, key) in the place of ``weights``, rows summing to 1.

        A head that takes nothing from anywhere has rows of 0.
        """
        return _as_shares(weights.float() * self.lengths(layer)[:, :, None])

    def layer_norms(self, layer: int, weights: Tensor) -> Tensor:
        """(batch, query, key): norms of what all heads of a layer take together, rows summing to 1.

        What heads take from a key is added up before its length is: they may cancel each other out,
        || sum_h A_h[i, j] f_h(x_j) ||. With the products of the vectors of a key,
        G_j[h, g] = f_h(x_j) . f_g(x_j), its square is sum_hg A_h[i, j] A_g[i, j] G_j[h, g].
        """
        of_keys = weights.float().permute(0, 3, 2, 1)  # (batch, key, query, heads)
        squares = ((of_keys @ self.products(layer)) * of_keys).sum(dim=-1)
        return _as_shares(squares.clamp_min_(0).sqrt_().mT)  # rounding may leave less than 0

    def products(self, layer: int) -> Tensor:
        """(batch, token, heads, heads): products f_h(x_j) . f_g(x_j) of the heads' vectors."""
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
        """(heads, head size, head size) of each layer: what gives values their lengths as outputs.

        The output projection W = Q R of a head only turns what R does, so ||W v|| = ||R v||: a
        matrix of the head's size instead of one of the model's.
        """
        return [torch.linalg.qr(weight, mode="r").R.mT for weight in self._output_weights]

    @cached_property
    def _crossings(self) -> list[Tensor]:
        """(heads, head size, heads * head size) of each layer: W_h^T W_g for heads h and g."""
        return [
            torch.einsum("hds,gdt->hsgt", weight, weight).flatten(-2)
            for weight in self._output_weights
        ]

    @property
    def _output_weights(self) -> list[Tensor]:
        return [layer.output_weight.detach().float() for layer in self._values.layers]


def _as_shares(norms: Tensor) -> Tensor:
    """Rows divided by their sums, in place; rows of 0 stay so."""
    return norms.div_(norms.sum(dim=-1, keepdim=True).clamp_min_(torch.finfo(norms.dtype).tiny))
