"""Results of batches, saved until their study is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headroles.storage import OpenParts, decode_arrays, encode_arrays

Arrays = dict[str, NDArray[Any]]
ArrayTypes = Mapping[str, tuple[type, tuple[int, ...]]]
"""For each array of examples, the type of its numbers, and its shape for each example."""


@dataclass(frozen=True)
class SavedBatches:
    """Saved arrays, by the names of their inputs; without ``parts`` nothing is saved."""

    parts: OpenParts | None = None

    def get(self, name: str, compute: Callable[[], Arrays], types: ArrayTypes, n: int) -> Arrays:
        """Return the saved arrays called ``name``, or compute and save them.

        Raises StorageError for saved arrays that do not have ``types`` or ``n`` examples.
        """
        if self.parts is None:
            return compute()
        if name in self.parts:
            return self.parts.read(name, lambda content: _decode(content, types, n))
        arrays = compute()
        self.parts.write(name, encode_arrays(arrays))
        return arrays


def _decode(content: bytes, types: ArrayTypes, n: int) -> Arrays:
    """Decode arrays. Raises ValueError unless they have ``types`` and ``n`` examples."""
    arrays = decode_arrays(content)
    found = {name: (one.dtype, one.shape) for name, one in arrays.items()}
    needed = {name: (np.dtype(kind), (n, *shape)) for name, (kind, shape) in types.items()}
    if found != needed:
        raise ValueError(f"it holds {found} instead of {needed}")
    return arrays
