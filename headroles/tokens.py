"""What the scorer knows of an input once it is cut into word pieces: arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]

SPECIAL = -1
"""Segment of a token that the tokenizer added: a classifier token or a separator."""


@dataclass(frozen=True, slots=True)
class EncodedExample:
    """One input of the model, with n tokens.

    ``segments`` (n,) is 0 or 1 for pieces of the first or second sentence, ``SPECIAL`` otherwise.
    ``arcs`` (arcs, 5) has a row per dependency arc of a chosen relation between words that have
    pieces: first piece and number of pieces of the dependent, the same of the governor, and the
    index of the relation. Pieces of a word stand next to each other.

    ``words`` (n,) is the number of each token's word within the example, -1 for special tokens,
    and ``governors`` (words,) the number of each word's governor, whatever the relation, -1 for
    roots.
    """

    id: str
    document: str
    input_ids: IntArray
    token_type_ids: IntArray | None
    segments: IntArray
    arcs: IntArray
    words: IntArray
    governors: IntArray

    def __len__(self) -> int:
        return len(self.input_ids)

    @property
    def digest(self) -> str:
        """16 hexadecimal digits that tell whether two examples of one name are the same.

        The first eight stand for the input of the model, its words and their tree; the last eight
        for the arcs, which depend on the relations that were chosen.
        """
        type_ids = self.token_type_ids
        types = np.zeros_like(self.segments) if type_ids is None else type_ids
        example = (self.input_ids, types, self.segments, self.words, self.governors)
        return _digest(*example) + _digest(self.arcs)


def _digest(*arrays: IntArray) -> str:
    content = blake2b(digest_size=4)
    for array in arrays:
        # The length first: no array can then pass for the end of the one before it.
        content.update(np.concatenate([[array.size], array.ravel()]).astype("<i8").tobytes())
    return content.hexdigest()


def pad(rows: Sequence[IntArray], filler: int) -> IntArray:
    """(B, N): ``rows`` side by side, filled up to the longest."""
    padded = np.full((len(rows), max(len(row) for row in rows)), filler, dtype=np.int64)
    for target, row in zip(padded, rows, strict=True):
        target[: len(row)] = row
    return padded
