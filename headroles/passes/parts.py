"""What is computed of batches, kept until the study that they are of is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from headroles.storage import OpenParts, decode_arrays, encode_arrays

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class KeptBatches:
    """Arrays by the names of what they are computed of; nothing is kept without ``parts``."""

    parts: OpenParts | None = None

    def get(self, name: str, compute: Callable[[], Arrays]) -> Arrays:
        """The arrays called ``name`` as they were kept, or as they are computed now and kept."""
        if self.parts is None:
            return compute()
        if name in self.parts:
            return self.parts.decode(name, decode_arrays)
        arrays = compute()
        self.parts.write(name, encode_arrays(arrays))
        return arrays
