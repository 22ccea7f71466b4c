"""Corpora as the user gives them: sentences that can be read repeatedly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from headroles.corpus.sentence import Sentence

Skipped = Counter[str]
"""Counts of skipped sentences or examples by reason, in words."""

_BETWEEN_TELLING = 256


@dataclass(frozen=True)
class Corpus:
    """Parsed text that is read when iterated, from `read_conllu`, `read_text`, `make_corpus`, ...

    Iterating reads the sources from the start, one sentence at a time. ``source`` describes the
    origin of the sentences and becomes part of the record of every result. ``undivided`` are the
    documents of a treebank that are whole files because the files name no documents. ``frequent``
    are frequent words, in lower case, of the language that a parser takes the text for.
    """

    source: dict[str, Any]
    read: Callable[[Skipped], Iterator[Sentence]] = field(repr=False)
    undivided: frozenset[str] = field(default=frozenset(), repr=False)
    frequent: frozenset[str] = field(default=frozenset(), repr=False)

    def __iter__(self) -> Iterator[Sentence]:
        return self.read(Counter())

    def watched(self, on_read: Callable[[int], None]) -> Corpus:
        """Return the same corpus, which reports the number of sentences read from time to time."""

        def read(skipped: Skipped) -> Iterator[Sentence]:
            for count, sentence in enumerate(self.read(skipped), start=1):
                if count % _BETWEEN_TELLING == 0:
                    on_read(count)
                yield sentence

        return replace(self, read=read)
