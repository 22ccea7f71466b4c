"""Encoded examples: the arrays that describe an input once it is cut into word pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from headroles.arrays import IntArray
from headroles.corpus import Sentence

SPECIAL = -1
"""Segment of a special token, which the tokenizer added: a classifier token or a separator."""


@dataclass(frozen=True, slots=True)
class EncodedExample:
    """One input of the model, with n tokens, W words and their dependency tree.

    Of the tokens (n,): ``segments`` is 0 or 1 for pieces of the first or second sentence,
    ``SPECIAL`` otherwise; ``words`` is the number of the token's word within the example, -1 for
    special tokens.

    Of the words (W,): ``starts`` is the first piece and ``sizes`` the number of pieces, which are
    adjacent; ``governors`` is the number of the governor, -1 for roots; ``relations`` is the label
    of the arc to it. ``sentences`` are the source of the example, for other annotations of words;
    the digest ignores them.
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
        """Digest of 16 hexadecimal digits by which examples with one id are compared.

        It covers the input of the model, its words, and their tree with its relations.
        """
        type_ids = self.token_type_ids
        types = np.zeros_like(self.segments) if type_ids is None else type_ids
        content = blake2b(digest_size=8)
        for array in (self.input_ids, types, self.segments, self.words, self.governors):
            # the length comes first, so that different splits into arrays give different digests
            content.update(np.concatenate([[array.size], array]).astype("<i8").tobytes())
        content.update("\n".join(self.relations).encode())
        return content.hexdigest()


def pad(rows: Sequence[IntArray], filler: int) -> IntArray:
    """Stack ``rows`` as (B, N), padding each with ``filler`` to the longest."""
    padded = np.full((len(rows), max(len(row) for row in rows)), filler, dtype=np.int64)
    for target, row in zip(padded, rows, strict=True):
        target[: len(row)] = row
    return padded
