"""Names met before and their numbers, in little memory for very many names."""

from __future__ import annotations

import numpy as np

from headroles.arrays import IntArray

_RECENT = 2**16
_SHARE = 32  # names not yet sorted in are at most one in so many


class Places:
    """Map from names to integers that takes 16 bytes a name, however long names are.

    Names are compared by 64 bits of a hash: the chance that two of a hundred million different
    names collide is 0.0003.
    """

    def __init__(self) -> None:
        self._recent: dict[int, int] = {}
        self._hashes: IntArray = np.empty(0, np.int64)  # sorted
        self._places: IntArray = np.empty(0, np.int64)

    def __len__(self) -> int:
        return len(self._recent) + len(self._hashes)

    def setdefault(self, name: str, place: int) -> int:
        """Return the number of a name; a new name gets the number ``place``."""
        key = hash(name)
        older = int(np.searchsorted(self._hashes, key))
        if older < len(self._hashes) and self._hashes[older] == key:
            return int(self._places[older])
        found = self._recent.setdefault(key, place)
        if len(self._recent) > max(_RECENT, len(self._hashes) // _SHARE):
            self._sort_in()
        return found

    def _sort_in(self) -> None:
        hashes = np.fromiter(self._recent.keys(), np.int64, len(self._recent))
        places = np.fromiter(self._recent.values(), np.int64, len(self._recent))
        self._recent = {}
        order = np.argsort(hashes)
        where = np.searchsorted(self._hashes, hashes[order])
        self._hashes = np.insert(self._hashes, where, hashes[order])
        self._places = np.insert(self._places, where, places[order])
