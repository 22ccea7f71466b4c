"""Windows of a corpus: examples that can be read and scored without the others."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from headroles.corpus import Example, Places, PreparedCorpus, Sentence, make_examples
from headroles.errors import CorpusError

WINDOW_EXAMPLES = 192
"""Number of examples of a window, which are sorted by length, scored and saved together.

Large enough for batches of similar lengths; small enough that memory does not depend on the size of
the corpus, and that an interrupted run loses little.
"""


@dataclass(frozen=True, slots=True)
class Window:
    """Adjacent examples of a corpus.

    ``first`` is the number of sentences before them, ``place`` that of their first sentence in the
    spool.
    """

    number: int
    first: int
    place: int
    n_sentences: int
    n_words: int


def windows_of(
    corpus: PreparedCorpus, pairing: str, n_examples: int = WINDOW_EXAMPLES
) -> Iterator[tuple[Window, list[Example]]]:
    """Yield windows of ``n_examples`` each (the last may be smaller) with their examples.

    Raises CorpusError for two examples with one id.
    """
    waiting: deque[tuple[int, Sentence]] = deque()

    def read() -> Iterator[Sentence]:
        for place, sentence in corpus.with_places():
            waiting.append((place, sentence))
            yield sentence

    seen = Places()
    examples: list[Example] = []
    number = first = n_sentences = n_words = place = 0
    for example in make_examples(read(), pairing):
        _refuse_repeat(example.id, seen)
        own = [waiting.popleft() for _ in example.sentences]
        place = place if examples else own[0][0]
        examples.append(example)
        n_sentences += len(own)
        n_words += sum(len(sentence.words) for _, sentence in own)
        if len(examples) == n_examples:
            yield Window(number, first, place, n_sentences, n_words), examples
            number, first = number + 1, first + n_sentences
            examples, n_sentences, n_words = [], 0, 0
    if examples:
        yield Window(number, first, place, n_sentences, n_words), examples


def examples_of(corpus: PreparedCorpus, window: Window, pairing: str) -> list[Example]:
    """Return the examples of a window, without reading other sentences."""
    return list(make_examples(corpus.span(window.first, window.place, window.n_sentences), pairing))


def _refuse_repeat(name: str, seen: Places) -> None:
    """Raise CorpusError for an id that is in ``seen``; add it."""
    place = len(seen)
    if seen.setdefault(name, place) != place:
        raise CorpusError(
            f"two examples would have the id {name!r}; rename their sentences so that ids joined "
            "by + differ"
        )
