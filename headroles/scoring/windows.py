"""A corpus in windows of examples, each of which can be read and scored without the others."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from headroles.corpus import Example, Places, PreparedCorpus, Sentence, make_examples
from headroles.errors import CorpusError

WINDOW_EXAMPLES = 192
"""Examples that are sorted by length together, and scored and kept together.

Enough for batches of about equal length, few enough that a small corpus needs as much memory as a
large one, and that little is lost where a run is cut short.
"""


@dataclass(frozen=True, slots=True)
class Window:
    """Adjacent examples of a corpus.

    ``first`` is the number of sentences before them, ``offset`` where the first of theirs stands
    in the spool.
    """

    number: int
    first: int
    offset: int
    n_sentences: int
    n_words: int


def windows_of(
    corpus: PreparedCorpus, pairing: str, n_examples: int = WINDOW_EXAMPLES
) -> Iterator[tuple[Window, list[Example]]]:
    """Windows of ``n_examples`` each, the last one of fewer, with their examples.

    Raises CorpusError for two examples of one id.
    """
    waiting: deque[tuple[int, Sentence]] = deque()

    def read() -> Iterator[Sentence]:
        for offset, sentence in corpus.offsets():
            waiting.append((offset, sentence))
            yield sentence

    seen = Places()
    examples: list[Example] = []
    number = first = n_sentences = n_words = offset = 0
    for example in make_examples(read(), pairing):
        _refuse_repeat(example.id, seen)
        own = [waiting.popleft() for _ in example.sentences]
        offset = offset if examples else own[0][0]
        examples.append(example)
        n_sentences += len(own)
        n_words += sum(len(sentence.words) for _, sentence in own)
        if len(examples) == n_examples:
            yield Window(number, first, offset, n_sentences, n_words), examples
            number, first = number + 1, first + n_sentences
            examples, n_sentences, n_words = [], 0, 0
    if examples:
        yield Window(number, first, offset, n_sentences, n_words), examples


def examples_of(corpus: PreparedCorpus, window: Window, pairing: str) -> list[Example]:
    """The examples of a window, with no other sentence read."""
    return list(
        make_examples(corpus.span(window.first, window.offset, window.n_sentences), pairing)
    )


def _refuse_repeat(name: str, seen: Places) -> None:
    """Raise CorpusError for an id that is in ``seen``; add it."""
    place = len(seen)
    if seen.setdefault(name, place) != place:
        raise CorpusError(
            f"two examples would be called {name!r}; rename their sentences so that "
            "ids joined by + stay different"
        )
