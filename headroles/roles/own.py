"""Roles of one's own: a Python function says of each sentence which words heads would look at.

A function is given a `Sentence` and returns pairs of words, or a set of words, by their places in
the sentence from 0. With pairs the first word looks for the second, and back for the role
``...:back``; with a set every word of the sentence looks for the words in it.
"""

from __future__ import annotations

import importlib
import numbers
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from headroles.corpus import Sentence
from headroles.encoding import EncodedExample
from headroles.errors import UsageError
from headroles.roles.batch import Batch, placed_sentences
from headroles.roles.key_sets import Shared
from headroles.roles.links import BACK, FORTH, Links, LinkTable
from headroles.roles.role import ARCS, Context, Role
from headroles.roles.word_sets import WordSets, sets_of_sentences
from headroles.wording import as_given, in_one_line, shortened

_MOST_REPEATED = 10_000
"""Places or pairs that a function may give beyond all that a sentence has: it may repeat some."""

Find: TypeAlias = Callable[[Sentence], Iterable[Any]]
"""From a sentence to pairs of places of words, or to places of words."""


def own_roles(name: str, context: Context) -> Iterator[Role]:
    """The roles of a function called ``module:function``.

    Raises UsageError if there is none, if it fails, and if it finds nothing in the whole corpus.
    """
    function: Find = load_function(name)
    found = Finder(name, function)
    first = next((one for sentence in context.sentences for one in found.of(sentence)), None)
    if first is None:
        raise UsageError(f"the role {name} finds nothing in any sentence of the corpus; check it")
    found = Finder(name, function, is_of_pairs=isinstance(first, tuple))
    if found.is_of_pairs:
        find = FindPairs(found)
        yield Role(name, "its pairs of words", ARCS, sieve=Links(find, frozenset([0]), FORTH))
        back = "its pairs of words, looked along backwards"
        yield Role(f"{name}:back", back, ARCS, sieve=Links(find, frozenset([0]), BACK))
    else:
        yield Role(name, "its words", "words", sieve=WordSets(FindWords(found)))


def load_function(name: str, what: str = "role") -> Callable[..., Any]:
    """The Python function ``module:function``, which is to be a role or another thing.

    Raises UsageError if there is none.
    """
    module, _, attribute = name.partition(":")
    here = str(Path.cwd())
    sys.path.insert(0, here)  # as python does for its own scripts
    try:
        function = getattr(importlib.import_module(module), attribute)
    except BaseException as error:  # a module may raise anything, SystemExit too
        if isinstance(error, KeyboardInterrupt):
            raise
        raise UsageError(
            f"the {what} {shortened(name)!r} cannot be loaded: {told(error)}; give a {what} that "
            "headroles has, or the MODULE:FUNCTION of a Python function that is installed or in "
            "this folder"
        ) from error
    finally:
        with suppress(ValueError):  # the module may have removed it itself
            sys.path.remove(here)
    if not callable(function):
        raise UsageError(f"{name} is a {type(function).__name__}; it must be a function")
    found: Callable[..., Any] = function
    return found


def told(error: BaseException) -> str:
    """An error of foreign code, in one line."""
    return f"{type(error).__name__}: {in_one_line(error)}"


@dataclass(frozen=True)
class Finder:
    """Calls a function of a user, and checks what it gives.

    ``is_of_pairs`` says what the function gives for other sentences, None before that is known.
    """

    name: str
    function: Find = field(compare=False)
    is_of_pairs: bool | None = None

    def of(self, sentence: Sentence) -> list[Any]:
        """What it finds: pairs of places, or places, each once."""
        most = len(sentence.words) ** 2 + _MOST_REPEATED
        try:
            given = list(islice(iter(self.function(sentence)), most + 1))
        except BaseException as error:  # whatever is wrong in it, the user is to know where
            if isinstance(error, KeyboardInterrupt):
                raise
            raise UsageError(
                f"the role {self.name} fails at sentence {sentence.id!r}: {told(error)}; correct "
                "the function"
            ) from error
        if len(given) > most:
            raise UsageError(
                f"the role {self.name} gives more than {most} places or pairs for sentence "
                f"{sentence.id!r}; let the function come to an end"
            )
        found = list(dict.fromkeys(self._checked(one, sentence) for one in given))
        if len({isinstance(one, tuple) for one in found} | self._known) > 1:
            raise UsageError(
                f"the role {self.name} gives pairs of words and single words (sentence "
                f"{sentence.id!r}); let the function give one kind"
            )
        return found

    @property
    def _known(self) -> set[bool]:
        return set() if self.is_of_pairs is None else {self.is_of_pairs}

    def _checked(self, one: Any, sentence: Sentence) -> int | tuple[int, ...]:
        """A place or a pair of them, as integers of Python."""
        is_pair = isinstance(one, tuple) and len(one) == 2
        places = one if is_pair else (one,)
        n_words = len(sentence.words)
        if not all(_is_whole(place) and 0 <= place < n_words for place in places):
            raise UsageError(
                f"the role {self.name} gives {as_given(one)} for sentence {sentence.id!r}; it must "
                f"give places of words from 0 to {n_words - 1}, or pairs of them"
            )
        found = tuple(map(int, places))
        if is_pair and found[0] == found[1]:
            raise UsageError(
                f"the role {self.name} joins word {found[0]} of sentence {sentence.id!r} to "
                "itself; it must join two words"
            )
        return found if is_pair else found[0]


def _is_whole(place: object) -> bool:
    """Whether a place is an integer, of Python or NumPy; True and False are none."""
    return isinstance(place, numbers.Integral) and not isinstance(place, bool)


@dataclass(frozen=True)
class FindPairs:
    """Links from the pairs of a function."""

    find: Finder

    def __call__(self, batch: Batch) -> LinkTable:
        """The links of all examples."""
        tables = [self._of(example) for example in batch.examples]
        links = np.concatenate(tables)
        owners = np.repeat(np.arange(batch.size), [len(table) for table in tables])
        whole = (links[:, 1] > 0) & (links[:, 3] > 0)
        return LinkTable(
            owners=owners[whole],
            first=links[whole, 0:2],
            second=links[whole, 2:4],
            labels=np.zeros(int(whole.sum()), dtype=np.int64),
            n_labels=1,
            n_lost=int((~whole).sum()),
        )

    def _of(self, example: EncodedExample) -> np.ndarray[Any, np.dtype[np.int64]]:
        """(links, 4): first piece and number of pieces of both ends."""
        pairs = [
            (before + one, before + other)
            for before, sentence in placed_sentences(example)
            for one, other in self.find.of(sentence)
        ]
        ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        columns = [own[ends[:, k]] for k in (0, 1) for own in (example.starts, example.sizes)]
        return np.column_stack(columns)


@dataclass(frozen=True)
class FindWords:
    """Key sets from the words of a function: each sentence looks for its own."""

    find: Finder

    def __call__(self, batch: Batch) -> list[Shared]:
        """Those of all examples."""
        return sets_of_sentences(batch, self.find.of)
