"""Examples, the unit of every test: one sentence, or two adjacent sentences of a document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from headroles.corpus.sentence import Sentence

PAIRINGS = ("adjacent", "none")


@dataclass(frozen=True, slots=True)
class Example:
    """One input of the model, with one or two sentences as its segments."""

    sentences: tuple[Sentence, ...]

    @property
    def id(self) -> str:
        """Ids of the sentences, joined by ``+``."""
        return "+".join(sentence.id for sentence in self.sentences)

    @property
    def document(self) -> str:
        """Document of all sentences of the example."""
        return self.sentences[0].document


def make_examples(sentences: Iterable[Sentence], pairing: str) -> Iterator[Example]:
    """Group ``sentences`` (in corpus order) into examples.

    ``"adjacent"`` pairs the sentences of a document without overlap, 1+2, 3+4 and so on; a sentence
    left over, at the end or beside a skipped sentence, stays alone. ``"none"`` makes every sentence
    an example.
    """
    waiting: Sentence | None = None
    for sentence in sentences:
        if pairing == "none":
            yield Example((sentence,))
        elif waiting is not None and _adjacent(waiting, sentence):
            yield Example((waiting, sentence))
            waiting = None
        else:
            if waiting is not None:
                yield Example((waiting,))
            waiting = sentence
    if waiting is not None:
        yield Example((waiting,))


def _adjacent(first: Sentence, second: Sentence) -> bool:
    return first.document == second.document and first.position + 1 == second.position
