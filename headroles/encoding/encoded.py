"""What is known of an input once it is cut into word pieces: arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from headroles.corpus import Sentence

IntArray = NDArray[np.int64]

SPECIAL = -1
"""Segment of a token that the tokenizer added: a classifier token or a separator."""


@dataclass(frozen=True, slots=True)
class EncodedExample:
    """One input of the model, with n tokens, W words and their tree.

    Of the tokens (n,): ``segments`` is 0 or 1 for pieces of the first or second sentence,
    ``SPECIAL`` otherwise; ``words`` is the number of the token's word within the example, -1 for
    special tokens.

    Of the words (W,): ``starts`` is the first piece and ``sizes`` the number of pieces, which stand
    next to each other; ``governors`` is the number of the governor, -1 for roots; ``relations`` is
    the label of the arc to it. ``sentences`` are what it was made of, for whatever else is to be
    known of words; they take no part in the digest.
    """

    id: str
    document: str
    input_ids: IntArray
    token_type_ids: IntArray | None
    segments: IntArray
    words: IntArray
    starts: IntArray
    sizes: IntArray
    governors: IntArray
    relations: tuple[str, ...]
    sentences: tuple[Sentence, ...] = ()

    def __len__(self) -> int:
        return len(self.input_ids)

    @property
    def digest(self) -> str:
        """16 hexadecimal digits that tell whether two examples of one name are the same.

        They stand for the input of the model, its words and their tree with its relations.
        """
        type_ids = self.token_type_ids
        types = np.zeros_like(self.segments) if type_ids is None else type_ids
        content = blake2b(digest_size=8)
        for array in (self.input_ids, types, self.segments, self.words, self.governors):
            # The length first: no array can then pass for the end of the one before it.
            content.update(np.concatenate([[array.size], array]).astype("<i8").tobytes())
        content.update("\n".join(self.relations).encode())
        return content.hexdigest()


def pad(rows: Sequence[IntArray], filler: int) -> IntArray:
    """(B, N): ``rows`` side by side, filled up to the longest."""
    padded = np.full((len(rows), max(len(row) for row in rows)), filler, dtype=np.int64)
    for target, row in zip(padded, rows, strict=True):
        target[: len(row)] = row
    return padded
