"""Linear layers with changed sizes."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def unset(in_features: int, out_features: int, bias: bool) -> nn.Linear:
    """Make a linear layer of any size, including 0, whose weights are still to be set."""
    made = nn.Linear(1, 1, bias=bias)
    made.in_features, made.out_features = in_features, out_features
    made.weight = nn.Parameter(torch.empty(out_features, in_features))
    if bias:
        made.bias = nn.Parameter(torch.empty(out_features))
    return made


def take(linear: nn.Linear, numbers: Tensor, dim: int) -> nn.Linear:
    """Return ``linear`` with only the rows (dim 0) or columns (dim 1) of these numbers."""
    weight = linear.weight.detach().index_select(dim, numbers)
    made = unset(weight.shape[1], weight.shape[0], linear.bias is not None)
    made.weight = nn.Parameter(weight, requires_grad=linear.weight.requires_grad)
    if linear.bias is not None:
        bias = linear.bias.detach()
        values = bias.clone() if dim == 1 else bias.index_select(0, numbers)
        made.bias = nn.Parameter(values, requires_grad=linear.bias.requires_grad)
    return made.train(linear.training)
