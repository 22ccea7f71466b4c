"""Treebanks that withhold their text, as its licence demands: ``_`` stands in place of words."""

from __future__ import annotations

from collections.abc import Iterable

from headroles.corpus.sentence import MISSING
from headroles.errors import CorpusError

_MOST = 0.5
"""Largest share of words that may be ``_`` in text: a form that is ``_`` itself is a word."""


class WithheldText:
    """Count of the words of a ``source`` that stand there as ``_`` alone."""

    def __init__(self, source: object) -> None:
        self._source, self._n_words, self._n_withheld = source, 0, 0

    def count(self, words: Iterable[str]) -> None:
        """Count these words of the source."""
        for word in words:
            self._n_words += 1
            self._n_withheld += not word.strip(MISSING)

    def check(self) -> None:
        """Raise CorpusError for a source without text, once its words are counted."""
        if self._n_withheld > _MOST * self._n_words:
            raise CorpusError(
                f"{self._source}: {self._n_withheld:,} of {self._n_words:,} words are _, because "
                "the treebank withholds its text; get the text as the README of the treebank says "
                "(Universal Dependencies: https://github.com/UniversalDependencies), or leave the "
                "treebank out"
            )
