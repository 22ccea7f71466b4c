"""Which words of an example a role is about, for people who read it."""

from __future__ import annotations

import numpy as np

from headroles.roles.batch import Batch
from headroles.roles.key_sets import SharedSieve
from headroles.roles.links import FORTH, Links
from headroles.roles.role import Role
from headroles.roles.word_sets import WordSets


def marked_words(role: Role, batch: Batch) -> tuple[set[int], list[tuple[int, int]]]:
    """The words in sieves of a batch of one example, and the pairs that look for each other.

    Words are numbered through the example. Both are empty where the sieve is one of places, or of
    special tokens.
    """
    words = batch.words[0]
    if isinstance(role.sieve, Links):
        table = batch.of(role.sieve.find)
        chosen = np.isin(table.labels, list(role.sieve.labels))
        ends = [words[own[chosen, 0]].tolist() for own in (table.first, table.second)]
        queries, keys = ends if role.sieve.direction == FORTH else ends[::-1]
        return set(keys), list(zip(queries, keys, strict=True))
    if isinstance(role.sieve, SharedSieve | WordSets):
        sets = [shared.keys[0] for shared in batch.of(role.sieve.find)]
        found = words[np.any(sets, axis=0)]
        return set(found[found >= 0].tolist()), []
    return set(), []
