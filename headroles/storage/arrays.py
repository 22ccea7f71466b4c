"""Encoding of named arrays as bytes, without pickle; NumPy is imported only when needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


def encode_arrays(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Encode arrays of any layout as bytes."""
    import numpy as np
    from safetensors.numpy import save

    # save() writes the memory of an array as it is, so strides must be removed first
    return save({name: np.ascontiguousarray(array) for name, array in arrays.items()})


def decode_arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """Decode the arrays of `encode_arrays`. Raises SafetensorError for other bytes."""
    from safetensors.numpy import load

    return load(content)
