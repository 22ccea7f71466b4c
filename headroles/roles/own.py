"""A user's own roles: a Python function names, for each sentence, the words to look at.

The function takes a `Sentence` and returns pairs of words or a set of words, by their places in the
sentence from 0. With pairs, the first word looks for the second, and the second for the first in
the role ``...:back``; with a set, every word of the sentence looks for the words in it.
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
from headroles.encoding import EncodedExample, IntArray
from headroles.errors import UsageError
from headroles.roles.batch import Batch, placed_sentences
from headroles.roles.key_sets import Shared
from headroles.roles.links import BACK, FORTH, Links, LinkTable
from headroles.roles.role import ARCS, Context, Role
from headroles.roles.word_sets import WordSets, sets_of_sentences
from headroles.wording import as_given, in_one_line, shortened

_MOST_REPEATED = 10_000
"""Number of repeated places or pairs that a function may return for one sentence."""

Find: TypeAlias = Callable[[Sentence], Iterable[Any]]
"""Function from a sentence to pairs of places of words, or to places of words."""


def own_roles(name: str, context: Context) -> Iterator[Role]:
    """Yield the roles of a function called ``module:function``.

    Raises UsageError if the function does not exist, fails, or finds nothing in the whole corpus.
    """
    function: Find = load_function(name)
    found = Finder(name, function)
    first = next((one for sentence in context.sentences for one in found.of(sentence)), None)
    if first is None:
        raise UsageError(
            f"the role {name} finds nothing in any sentence of the corpus; correct the function"
        )
    found = Finder(name, function, is_of_pairs=isinstance(first, tuple))
    if found.is_of_pairs:
        find = FindPairs(found)
        yield Role(name, "its pairs of words", ARCS, sieve=Links(find, frozenset([0]), FORTH))
        back = "its pairs of words, backwards"
        yield Role(f"{name}:back", back, ARCS, sieve=Links(find, frozenset([0]), BACK))
    else:
        yield Role(name, "its words", "words", sieve=WordSets(FindWords(found)))


def load_function(name: str, what: str = "role") -> Callable[..., Any]:
    """Load the Python function ``module:function``, which defines a role or the like (``what``).

    Raises UsageError if there is none.
    """
    module, _, attribute = name.partition(":")
    here = str(Path.cwd())
    sys.path.insert(0, here)  # as Python does for its own scripts
    try:
        function = getattr(importlib.import_module(module), attribute)
    except BaseException as error:  # a module may raise anything, SystemExit too
        if isinstance(error, KeyboardInterrupt):
            raise
        raise UsageError(
            f"the {what} {shortened(name)!r} cannot be loaded: {told(error)}; give a {what} of "
            "headroles, or the MODULE:FUNCTION of a Python function that is installed or in "
            "this folder"
        ) from error
    finally:
        with suppress(ValueError):  # the module may have removed the entry itself
            sys.path.remove(here)
    if not callable(function):
        raise UsageError(f"{name} is a {type(function).__name__}; it must be a function")
    found: Callable[..., Any] = function
    return found


def told(error: BaseException) -> str:
    """Format an error of a user's code in one line."""
    return f"{type(error).__name__}: {in_one_line(error)}"


@dataclass(frozen=True)
class Finder:
    """Caller of a user's function that checks the returned places.

    ``is_of_pairs`` says what the function returns for other sentences, None if not yet known.
    """

    name: str
    function: Find = field(compare=False)
    is_of_pairs: bool | None = None

    def of(self, sentence: Sentence) -> list[Any]:
        """Return the pairs of places, or the places, that the function finds, without repeats."""
        most = len(sentence.words) ** 2 + _MOST_REPEATED
        try:
            given = list(islice(iter(self.function(sentence)), most + 1))
        except BaseException as error:  # whatever fails in it, name the sentence to the user
            if isinstance(error, KeyboardInterrupt):
                raise
            raise UsageError(
                f"the role {self.name} fails at sentence {sentence.id!r}: {told(error)}; correct "
                "the function"
            ) from error
        if len(given) > most:
            raise UsageError(
                f"the role {self.name} returns more than {most} places or pairs for sentence "
                f"{sentence.id!r}; make the function stop earlier"
            )
        found = list(dict.fromkeys(self._checked(one, sentence) for one in given))
        if len({isinstance(one, tuple) for one in found} | self._known) > 1:
            raise UsageError(
                f"the role {self.name} returns both pairs of words and single words (sentence "
                f"{sentence.id!r}); return one kind only"
            )
        return found

    @property
    def _known(self) -> set[bool]:
        return set() if self.is_of_pairs is None else {self.is_of_pairs}

    def _checked(self, one: Any, sentence: Sentence) -> int | tuple[int, ...]:
        """Return a place or a pair of places as Python integers. Raises UsageError for others."""
        is_pair = isinstance(one, tuple) and len(one) == 2
        places = one if is_pair else (one,)
        n_words = len(sentence.words)
        if not all(_is_whole(place) and 0 <= place < n_words for place in places):
            raise UsageError(
                f"the role {self.name} returns {as_given(one)} for sentence {sentence.id!r}; "
                f"return places of words from 0 to {n_words - 1}, or pairs of them"
            )
        found = tuple(map(int, places))
        if is_pair and found[0] == found[1]:
            raise UsageError(
                f"the role {self.name} joins word {found[0]} of sentence {sentence.id!r} to "
                "itself; join two different words"
            )
        return found if is_pair else found[0]


def _is_whole(place: object) -> bool:
    """Tell whether a place is a Python or NumPy integer; True and False are not."""
    return isinstance(place, numbers.Integral) and not isinstance(place, bool)


@dataclass(frozen=True)
class FindPairs:
    """Finder of links from the pairs of a user's function."""

    find: Finder

    def __call__(self, batch: Batch) -> LinkTable:
        """Find the links of all examples."""
        return LinkTable.of(batch, self._of)

    def _of(self, example: EncodedExample) -> IntArray:
        """Return the places of both words of each link, and 0 (links, 3)."""
        pairs = [
            (before + one, before + other, 0)
            for before, sentence in placed_sentences(example)
            for one, other in self.find.of(sentence)
        ]
        return np.array(pairs, dtype=np.int64).reshape(-1, 3)


@dataclass(frozen=True)
class FindWords:
    """Finder of key sets from the words of a user's function, a set for each sentence."""

    find: Finder

    def __call__(self, batch: Batch) -> list[Shared]:
        """Find the key sets of all examples."""
        return sets_of_sentences(batch, self.find.of)
