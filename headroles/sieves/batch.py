"""Examples side by side, padded to one width: what the sieves of all roles are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headroles.sieves.rows import BoolArray, RowValues, row_values
from headroles.tokens import SPECIAL, EncodedExample, IntArray, pad

# The key sets, in the order of the last axis of `Batch.key_sets`.
DELIMITERS, CLASSIFIER, SEPARATORS, WORDS_0, WORDS_1 = range(5)

PADDING = -2  # beside the segments 0, 1 and SPECIAL


@dataclass(frozen=True)
class Batch:
    """B examples padded to N tokens.

    ``real`` (B, N) tells tokens from padding; ``key_sets`` (B, N, K) the tokens of each set;
    ``row_lengths`` (B, N) is the number of keys that each query can attend to, and ``set_sizes``
    (B, N, K) how many of these are in each key set.
    """

    real: BoolArray
    key_sets: BoolArray
    row_lengths: IntArray
    set_sizes: IntArray
    reach: int | None
    score: str

    @classmethod
    def of(cls, examples: Sequence[EncodedExample], reach: int | None, score: str) -> Batch:
        """The batch of ``examples`` under attention of this reach, for scores of this kind."""
        segments = pad([example.segments for example in examples], PADDING)
        real = segments != PADDING
        key_sets = _key_sets(segments)
        in_reach = _sums_in_reach(np.concatenate([real[..., None], key_sets], axis=-1), reach)
        return cls(real, key_sets, in_reach[..., 0], in_reach[..., 1:], reach, score)

    @property
    def size(self) -> int:
        """B."""
        return int(self.real.shape[0])

    @property
    def width(self) -> int:
        """N."""
        return int(self.real.shape[1])

    def row_values(self, sizes: IntArray) -> RowValues:
        """Values of all rows, for sieves of ``sizes`` (B, N)."""
        return row_values(self.score, self.row_lengths, sizes)


def _key_sets(segments: IntArray) -> BoolArray:
    """(B, N, K): the tokens of each key set."""
    special = segments == SPECIAL
    classifier = special.copy()
    classifier[:, 1:] = False
    return np.stack(
        [special, classifier, special & ~classifier, segments == 0, segments == 1], axis=-1
    )


def _sums_in_reach(members: BoolArray, reach: int | None) -> IntArray:
    """(B, N, K): for every query, how many members (B, N, K) lie within its reach."""
    totals = np.cumsum(members, axis=1)
    if reach is None:
        return np.broadcast_to(totals[:, -1:], totals.shape)
    width = members.shape[1]
    padded = np.concatenate([np.zeros_like(totals[:, :1]), totals], axis=1)
    query = np.arange(width)
    after = padded[:, np.minimum(query + reach + 1, width)]
    before = padded[:, np.maximum(query - reach, 0)]
    sums: IntArray = after - before
    return sums
