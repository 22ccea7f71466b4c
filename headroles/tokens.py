"""What the scorer knows of an input once it is cut into word pieces: arrays."""

from __future__ import annotations

from dataclasses import dataclass

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
    """

    id: str
    document: str
    input_ids: IntArray
    token_type_ids: IntArray | None
    segments: IntArray
    arcs: IntArray

    def __len__(self) -> int:
        return len(self.input_ids)
