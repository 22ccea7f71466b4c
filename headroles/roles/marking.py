"""Marks of the words and tokens of an example that a role is about, for displays."""

from __future__ import annotations

import numpy as np

from headroles.arrays import BoolArray, IntArray
from headroles.roles.batch import PaddedBatch
from headroles.roles.links import FORTH, Links
from headroles.roles.offsets import Offsets
from headroles.roles.role import Role
from headroles.roles.sets import Sets


def marked_words(role: Role, batch: PaddedBatch) -> tuple[set[int], list[tuple[int, int]]]:
    """Return the words in the role's sieves, and the pairs of words that look for each other.

    The batch holds one example. Words are numbered through the example. Both results are empty if
    the sieve consists of positions or special tokens.
    """
    words = batch.words[0]
    if isinstance(role.sieve, Links):
        queries, keys = (words[ends[:, 0]].tolist() for ends in _ends(role.sieve, batch))
        return set(keys), list(zip(queries, keys, strict=True))
    if isinstance(role.sieve, Sets):
        sets = [shared.keys[0] for shared in batch.of(role.sieve.find)]
        found = words[np.any(sets, axis=0)]
        return set(found[found >= 0].tolist()), []
    return set(), []


def sieve_cells(role: Role, batch: PaddedBatch) -> BoolArray:
    """Mark (N, N) the cells in which query i looks for key j, for a batch of one example.

    A contrast has the cells of its role, without its controls; a quantity that only describes heads
    has no cells.
    """
    cells = np.zeros((batch.width, batch.width), dtype=bool)
    sieve = role.sieve
    if isinstance(sieve, Links):
        for query, key in zip(*_ends(sieve, batch), strict=True):
            cells[slice(query[0], query.sum()), slice(key[0], key.sum())] = True
    elif isinstance(sieve, Sets):
        for queries, keys in batch.of(sieve.find):
            cells |= queries[0][:, None] & keys[0]
    elif isinstance(sieve, Offsets):
        for offset in sieve.offsets:
            cells |= np.eye(batch.width, k=offset, dtype=bool)
    return cells


def _ends(sieve: Links, batch: PaddedBatch) -> tuple[IntArray, IntArray]:
    """Return first piece and number of pieces (L, 2) of query words, then of key words."""
    table = batch.of(sieve.find)
    chosen = np.isin(table.labels, list(sieve.labels))
    first, second = table.first[chosen], table.second[chosen]
    return (first, second) if sieve.direction == FORTH else (second, first)
