"""What is computed of batches, kept until the study that they are of is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headroles.storage import OpenParts, decode_arrays, encode_arrays

Arrays = dict[str, NDArray[Any]]
Forms = Mapping[str, tuple[type, tuple[int, ...]]]
"""Of arrays of examples: the type of their numbers, and the shape of what each example has."""


@dataclass(frozen=True)
class KeptBatches:
    """Arrays by the names of what they are computed of; nothing is kept without ``parts``."""

    parts: OpenParts | None = None

    def get(self, name: str, compute: Callable[[], Arrays], forms: Forms, n: int) -> Arrays:
        """Return the arrays called ``name`` as they were kept, or compute and keep them.

        Raises StorageError for kept arrays that are not of ``forms`` and of ``n`` examples.
        """
        if self.parts is None:
            return compute()
        if name in self.parts:
            return self.parts.decode(name, lambda content: _decode(content, forms, n))
        arrays = compute()
        self.parts.write(name, encode_arrays(arrays))
        return arrays


def _decode(content: bytes, forms: Forms, n: int) -> Arrays:
    """Read arrays. Raises ValueError for others than those of ``forms``, of ``n`` examples."""
    arrays = decode_arrays(content)
    found = {name: (one.dtype, one.shape) for name, one in arrays.items()}
    needed = {name: (np.dtype(kind), (n, *shape)) for name, (kind, shape) in forms.items()}
    if found != needed:
        raise ValueError(f"it holds {found} instead of {needed}")
    return arrays
