"""AlignedEncoder: examples -> word pieces that are known already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from headroles.corpus import Example
from headroles.encoding.encoded import SPECIAL, IntArray
from headroles.encoding.encoder import Cut, ExampleEncoder
from headroles.errors import TokenizerError

Alignment: TypeAlias = Sequence[int | None]
"""The number of its word, from 0, for each piece of a sentence; None for a special token."""


class AlignedEncoder(ExampleEncoder):
    """Turns sentences into pieces by the ``alignment`` of each id.

    Pieces have the number 1 and special tokens 0, as nothing else is known of them.
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
        """Word of each piece. Raises TokenizerError where pieces and words do not fit."""
        if len(example.sentences) > 1:
            raise TokenizerError(
                f"the alignment is of single sentences, and {example.id!r} has two; pass "
                'pairing="none", or a tokenizer as the alignment'
            )
        if example.id not in self._alignment:
            raise TokenizerError(f"the alignment lacks the sentence {example.id!r}; add its pieces")
        given = self._alignment[example.id]
        n_words = len(example.sentences[0].words)
        for number in given:
            if number is not None and (int(number) != number or not 0 <= number < n_words):
                raise TokenizerError(
                    f"the alignment of {example.id!r} names the word {number!r}; its words are 0 "
                    f"to {n_words - 1}, and a special token has None"
                )
        words = np.array([-1 if number is None else number for number in given], dtype=np.int64)
        places = np.flatnonzero(words >= 0)
        if (np.diff(places) > 1).any() or (np.diff(words[places]) < 0).any():
            raise TokenizerError(
                f"the alignment of {example.id!r} has words that go back, or a special token "
                "between words; pieces must be in the order of the words, side by side"
            )
        return words
