"""Numbers of dimensions that the queries and keys of a layer's heads take together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headroles.arrays import FloatArray
from headroles.models.als import head_singular
from headroles.models.loading import Attending, load_encoder
from headroles.models.sites import find_sites
from headroles.studies.claims.options import ClaimOptions

SHARE = 0.99
FEW_LAYERS = 2
DRAWS, DRAWS_OF_FEW = 9, 59
"""Random spaces for each layer; the test exchanges each layer with its draws, by itself."""
Maps = tuple[FloatArray, FloatArray]
"""Queries and keys of a layer, both (heads, size, width)."""


def dimensions_of(model: Attending, options: ClaimOptions) -> dict[str, NDArray[Any]]:
    """Return the ``shares`` of `shared_dimensions` of a model's layers; equal layers count once."""
    encoder = load_encoder(model, options)
    every = [(site.maps.query, site.maps.key) for site in find_sites(encoder.model)]
    return {"shares": shared_dimensions(distinct(every), options.seed)}


def distinct(layers: Sequence[Maps]) -> list[Maps]:
    """Return the layers that differ from the layer before."""
    following = pairwise(layers)
    return [layers[0], *(own for last, own in following if not all(map(np.array_equal, last, own)))]


def shared_dimensions(layers: Sequence[Maps], seed: int) -> FloatArray:
    """Return dimensions for 99 % of the energy of the sum over heads: shares (layers, 1 + draws).

    The first column is of the heads of the model. In the others each head keeps its singular values
    and has random spaces, as if heads shared dimensions by chance alone.
    """
    generator = torch.Generator().manual_seed(seed)
    found = []
    for query, key in layers:
        heads, size, width = query.shape
        strength = torch.from_numpy(head_singular(query, key)[1]).float()
        flat = [torch.from_numpy(maps.reshape(-1, width)).float() for maps in (query, key)]
        row = [_dimensions(flat[0].T @ flat[1])]
        for _ in range(DRAWS if len(layers) > FEW_LAYERS else DRAWS_OF_FEW):
            drawn = torch.randn(2, heads, width, size, generator=generator)
            left, right = torch.linalg.qr(drawn).Q
            joined = [one.swapaxes(0, 1).flatten(1) for one in (left * strength[:, None], right)]
            row.append(_dimensions(joined[0] @ joined[1].T))
        found.append(np.array(row) / min(heads * size, width))
    return np.stack(found)


def _dimensions(total: Tensor) -> int:
    """Count the largest singular values of a matrix that make 99 % of the sum of squares."""
    squares = torch.linalg.eigvalsh(total.T @ total).flip(0).double()
    return int((squares.cumsum(0) < SHARE * squares.sum()).sum()) + 1
