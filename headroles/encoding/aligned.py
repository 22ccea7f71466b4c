"""AlignedEncoder: examples whose word pieces are already known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from headroles.arrays import IntArray
from headroles.corpus import Example
from headroles.encoding.encoded import SPECIAL
from headroles.encoding.encoder import Cut, ExampleEncoder
from headroles.errors import TokenizerError

Alignment: TypeAlias = Sequence[int | None]
"""For each piece of a sentence, the number of its word from 0; None for a special token."""


class AlignedEncoder(ExampleEncoder):
    """Encoder of sentences by the ``alignment`` of each id.

    Pieces get the input id 1 and special tokens 0, since their text is unknown.
    """

    def __init__(self, alignment: Mapping[str, Alignment]) -> None:
        self._alignment = alignment
        self._max_tokens = max(map(len, alignment.values()), default=0)
        self._unknown = None
        self.counts = Counter()

    def _cut(self, examples: list[Example]) -> Iterator[Cut]:
        for example in examples:
            words = self._words_of(example)
            is_piece = words >= 0
            yield Cut(is_piece.astype(np.int64), None, np.where(is_piece, 0, SPECIAL), words)

    def _words_of(self, example: Example) -> IntArray:
        """Return the word of each piece. Raises TokenizerError if pieces and words do not fit."""
        if len(example.sentences) > 1:
            raise TokenizerError(
                f"the alignment is of single sentences, but {example.id!r} is a pair; pass "
                'pairing="none", or a tokenizer as the alignment'
            )
        if example.id not in self._alignment:
            raise TokenizerError(f"the alignment has no sentence {example.id!r}; add its pieces")
        given = self._alignment[example.id]
        n_words = len(example.sentences[0].words)
        for number in given:
            if number is not None and (int(number) != number or not 0 <= number < n_words):
                raise TokenizerError(
                    f"the alignment of {example.id!r} names the word {number!r}; use 0 to "
                    f"{n_words - 1} for words and None for special tokens"
                )
        words = np.array([-1 if number is None else number for number in given], dtype=np.int64)
        places = np.flatnonzero(words >= 0)
        if (np.diff(places) > 1).any() or (np.diff(words[places]) < 0).any():
            raise TokenizerError(
                f"the alignment of {example.id!r} has words out of order, or a special token "
                "between words; list the pieces in the order of the words"
            )
        return words
