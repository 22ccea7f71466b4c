"""Windows of a corpus: examples that can be read and scored without the others."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar, cast

from headroles.corpus import Example, PreparedCorpus, make_examples
from headroles.errors import CorpusError

WINDOW_EXAMPLES, WINDOW_WORDS, WINDOW_BYTES = 1024, 2**15, 2**26
"""Most examples and words of a window, and most bytes of its scores.

Examples of a window are sorted by length, scored and saved together: enough for batches of similar
lengths, and so few that memory does not grow with the corpus, and that an interrupted run of a slow
model loses minutes.
"""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Window:
    """Adjacent examples of a corpus; ``first`` is the number of sentences before them."""

    number: int
    first: int
    examples: list[Example]

    @property
    def n_sentences(self) -> int:
        """Number of sentences in the window."""
        return sum(len(example.sentences) for example in self.examples)


def windows_of(
    corpus: PreparedCorpus, pairing: str, n_examples: int = WINDOW_EXAMPLES
) -> Iterator[Window]:
    """Yield windows of ``n_examples`` at most.

    Raises CorpusError for two examples with one id.
    """
    seen: set[int] = set()  # hashes of ids, which take less memory
    n_words = 0
    window = Window(0, 0, [])
    for example in make_examples(corpus, pairing):
        if hash(example.id) in seen:
            raise CorpusError(
                f"two examples would have the id {example.id!r}; rename their sentences so that "
                "ids joined by + differ"
            )
        seen.add(hash(example.id))
        n_more = sum(len(sentence.words) for sentence in example.sentences)
        n_words += n_more
        if window.examples and (len(window.examples) >= n_examples or n_words > WINDOW_WORDS):
            yield window
            window = Window(window.number + 1, window.first + window.n_sentences, [])
            n_words = n_more
        window.examples.append(example)
    if window.examples:
        yield window


def one_ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield ``items``, making the next one in a thread while the caller uses the current one."""
    end = object()
    with ThreadPoolExecutor(1, "headroles-ahead") as worker:
        coming = worker.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = worker.submit(next, items, end)
            yield cast(T, item)
