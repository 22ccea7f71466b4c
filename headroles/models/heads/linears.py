"""Linear maps of either kind: GPT-2 keeps the weights of its own transposed."""

from __future__ import annotations

from typing import TypeAlias, TypeVar, cast

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

Linear: TypeAlias = nn.Linear | Conv1D
"""A linear map; ``Conv1D`` is that of GPT-2."""
_Kind = TypeVar("_Kind", bound=Linear)


def weight_of(linear: Linear) -> Tensor:
    """Return the weight (outputs, inputs) of a linear map; changes of it change the map."""
    return linear.weight.T if isinstance(linear, Conv1D) else linear.weight


def unset(n_inputs: int, n_outputs: int, bias: bool) -> nn.Linear:
    """Return a linear map whose weights are still to be set."""
    projection = nn.Linear(1, 1, bias=bias)
    projection.in_features, projection.out_features = n_inputs, n_outputs
    projection.weight = nn.Parameter(torch.empty(n_outputs, n_inputs))
    if bias:
        projection.bias = nn.Parameter(torch.empty(n_outputs))
    return projection


def take(linear: _Kind, numbers: Tensor, dim: int) -> _Kind:
    """Return ``linear`` with only the outputs (dim 0) or inputs (dim 1) of these numbers.

    ``Conv1D`` fails without any input: an `nn.Linear` takes its place.
    """
    weight = weight_of(linear).detach().index_select(dim, numbers)
    projection: Linear
    if isinstance(linear, Conv1D) and weight.shape[1]:
        projection = Conv1D(1, 1)  # type: ignore[no-untyped-call]
        projection.nx, projection.nf = weight.shape[1], weight.shape[0]
        weight = weight.T.contiguous()
    else:
        projection = unset(weight.shape[1], weight.shape[0], linear.bias is not None)
    projection.weight = nn.Parameter(weight, requires_grad=linear.weight.requires_grad)
    if linear.bias is not None:
        bias = linear.bias.detach()
        values = bias.clone() if dim == 1 else bias.index_select(0, numbers)
        projection.bias = nn.Parameter(values, requires_grad=linear.bias.requires_grad)
    return cast(_Kind, projection.train(linear.training))
