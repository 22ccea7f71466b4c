"""Rare-word heads: attention to the least frequent word of a sentence (Voita et al. 2019)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b

from headroles.corpus import Sentence
from headroles.roles.batch import PaddedBatch
from headroles.roles.frequencies import FrequencyOptions, count_words, fold
from headroles.roles.key_sets import Shared
from headroles.roles.role import Context, Role
from headroles.roles.word_sets import WordSets, sets_of_sentences

FREQUENT = 500
"""Number of most frequent words that are not rare; a sentence of them alone has no rare word."""


def roles(options: FrequencyOptions, context: Context) -> Iterator[Role]:
    """Yield the rare-word role. Raises CorpusError for frequencies that cannot be read."""
    counts = count_words(options, context.sentences)
    yield Role(
        "rare",
        "the rarest word of the sentence",
        unit="words",
        needs=f"sentences with a word beyond the {FREQUENT} most frequent",
        meaning={"frequencies": _digest(counts) if options.frequencies else "of the corpus"},
        sieve=WordSets(Rarest(counts)),
    )


def _digest(counts: Mapping[str, int]) -> str:
    """Return 16 hexadecimal digits that identify these frequencies."""
    lines = "\n".join(f"{word}\t{count}" for word, count in sorted(counts.items()))
    return blake2b(lines.encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, eq=False)
class Rarest:
    """Finder of the rarest word of each sentence, the first if several are equally rare."""

    counts: Mapping[str, int] = field(repr=False)

    @cached_property
    def _frequent(self) -> set[str]:
        return {word for word, _ in Counter(self.counts).most_common(FREQUENT)}

    def __call__(self, batch: PaddedBatch) -> list[Shared]:
        """Find each sentence's rarest word as the key of its words."""
        return sets_of_sentences(batch, self.rarest)

    def rarest(self, sentence: Sentence) -> tuple[int, ...]:
        """Return the place of the rarest word; empty if all words are frequent."""
        words = [fold(word) for word in sentence.words]
        place = min(range(len(words)), key=lambda k: self.counts.get(words[k], 0))
        return () if words[place] in self._frequent else (place,)
