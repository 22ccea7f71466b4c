"""Arrays by their names <-> bytes, never by pickle. NumPy is imported when there are arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


def encode_arrays(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Arrays of any layout as bytes."""
    import numpy as np
    from safetensors.numpy import save

    # What does not lie in order would be written as if it did.
    return save({name: np.ascontiguousarray(array) for name, array in arrays.items()})


def decode_arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of `encode_arrays`. Raises SafetensorError for other bytes."""
    from safetensors.numpy import load

    return load(content)
