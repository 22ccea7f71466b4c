"""Corpora as they are given: sentences that can be read from the start again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from headroles.corpus.sentence import Sentence

Skipped = Counter[str]
"""What was left out, as counts by reason; the reasons are for people to read."""

_BETWEEN_TELLING = 256


@dataclass(frozen=True)
class Corpus:
    """Parsed text, not yet read: from `read_conllu`, `read_text`, `read_pairs`, `make_corpus`.

    Iterating reads the sources from the start, one sentence at a time. ``source`` describes
    where the sentences come from and goes into the provenance of every result. ``undivided`` are
    the documents of a treebank that are nothing but its files: those that name no documents.
    """

    source: dict[str, Any]
    read: Callable[[Skipped], Iterator[Sentence]] = field(repr=False)
    undivided: frozenset[str] = field(default=frozenset(), repr=False)

    def __iter__(self) -> Iterator[Sentence]:
        return self.read(Counter())

    def watched(self, on_read: Callable[[int], None]) -> Corpus:
        """The same corpus, which tells now and then how many sentences were read."""

        def read(skipped: Skipped) -> Iterator[Sentence]:
            for count, sentence in enumerate(self.read(skipped), start=1):
                if count % _BETWEEN_TELLING == 0:
                    on_read(count)
                yield sentence

        return replace(self, read=read)
