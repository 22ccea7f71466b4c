"""Map from names to integers, in little memory for very many names."""

from __future__ import annotations

import numpy as np

from headroles.arrays import IntArray

_RECENT = 2**16
_SHARE = 32  # names not yet sorted in are at most one in so many


class IdMap:
    """Map from names to integers that takes 16 bytes a name, however long names are.

    Names are compared by 64 bits of a hash: the chance that two of a hundred million different
    names collide is 0.0003.
    """

    def __init__(self) -> None:
        self._recent: dict[int, int] = {}
        self._sorted: IntArray = np.empty((2, 0), np.int64)  # hashes in ascending order, numbers

    def __len__(self) -> int:
        return len(self._recent) + len(self._sorted[0])

    def setdefault(self, name: str, number: int) -> int:
        """Return the number of a name; a new name gets ``number``."""
        key = hash(name)
        hashes, numbers = self._sorted
        older = int(np.searchsorted(hashes, key))
        if older < len(hashes) and hashes[older] == key:
            return int(numbers[older])
        found = self._recent.setdefault(key, number)
        if len(self._recent) > max(_RECENT, len(hashes) // _SHARE):
            recent = np.array(sorted(self._recent.items()), np.int64).T
            self._sorted = np.insert(
                self._sorted, np.searchsorted(hashes, recent[0]), recent, axis=1
            )
            self._recent = {}
        return found
