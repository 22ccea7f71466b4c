"""A user's own roles: a Python function names, for each sentence, the words to look at.

The function takes a `Sentence` and returns pairs of words or a set of words, by their places in the
sentence from 0. With pairs ``(one, other)``, the first word looks for the second, and the second
for the first in the role ``...:back``; with pairs ``{one, other}`` each looks for the other, in one
role; with a set of places, every word of the sentence looks for the words in it. Roles of pairs
have contrasts with other words at the same offset, as those of arcs have.
"""

from __future__ import annotations

import importlib
import numbers
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, permutations
from pathlib import Path
from typing import Any, TypeAlias

from headroles.corpus import Sentence
from headroles.errors import UsageError
from headroles.roles.first_choices import WORDS
from headroles.roles.pairs import BACK, FORTH, FindLinks, Link, Pairs
from headroles.roles.role import ARCS, Context, Role
from headroles.roles.sets import Sets, sets_of_sentences
from headroles.roles.syntactic import beyond_offset
from headroles.wording import as_given, shortened, with_type

_MOST_REPEATED = 10_000
"""Number of repeated places or pairs that a function may return for one sentence."""
Find: TypeAlias = Callable[[Sentence], Iterable[Any]]
"""Function from a sentence to pairs of places of words, or to places of words."""


def own_roles(name: str, context: Context, with_contrasts: bool) -> Iterator[Role]:
    """Yield the roles of a function called ``module:function``, and their contrasts.

    Raises UsageError if the function does not exist, fails, or finds nothing in the whole corpus.
    """
    function: Find = load_function(name)
    find = Finder(name, function)
    first = next((one for sentence in context.sentences for one in find.raw(sentence)), None)
    if first is None:
        raise UsageError(
            f"the role {name} finds nothing in any sentence of the corpus; correct the function"
        )
    find = Finder(name, function, kind=type(first))
    if find.kind is int:
        sets = partial(sets_of_sentences, find=find.of)
        yield Role(name, "its words", "words", sieve=Sets(sets, WORDS))
        return
    words = "its pairs of words" + ", both ways" * (find.kind is frozenset)
    own = [Role(name, words, ARCS, sieve=Pairs(find, frozenset([0]), FORTH))]
    if find.kind is tuple:
        back = "its pairs of words, backwards"
        own.append(Role(f"{name}:back", back, ARCS, sieve=Pairs(find, frozenset([0]), BACK)))
    yield from own
    if with_contrasts:
        yield from map(beyond_offset, own)


def load_function(name: str, subject: str = "role") -> Callable[..., Any]:
    """Load the Python function ``module:function``, which defines a ``subject``.

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
            f"the {subject} {shortened(name)!r} cannot be loaded: {with_type(error)}; give a "
            f"{subject} of headroles, or the MODULE:FUNCTION of a Python function that is "
            "installed or in this folder"
        ) from error
    finally:
        with suppress(ValueError):  # the module may have removed the entry itself
            sys.path.remove(here)
    if not callable(function):
        raise UsageError(f"{name} is a {type(function).__name__}; it must be a function")
    found: Callable[..., Any] = function
    return found


@dataclass(frozen=True)
class Finder(FindLinks):
    """Caller of a user's function that checks the returned places; pairs of them are links.

    ``kind`` is the type of the places found in other sentences: an int for a word, a tuple for a
    pair, a frozenset for a pair without order; None if not yet known.
    """

    name: str
    function: Find = field(compare=False)
    kind: type | None = None

    def of_sentence(self, sentence: Sentence) -> list[Link]:
        """Return the pairs of places as links with the label 0."""
        return [(first, second, 0) for first, second in self.of(sentence)]

    def of(self, sentence: Sentence) -> list[Any]:
        """Return the places, or the pairs of places, those without order both ways."""
        return [
            both
            for one in self.raw(sentence)
            for both in (permutations(sorted(one)) if isinstance(one, frozenset) else (one,))
        ]

    def raw(self, sentence: Sentence) -> list[Any]:
        """Return the places or the pairs of places that the function finds, without repeats."""
        most = len(sentence.words) ** 2 + _MOST_REPEATED
        try:
            given = list(islice(iter(self.function(sentence)), most + 1))
        except BaseException as error:  # a user's function may raise anything
            if isinstance(error, KeyboardInterrupt):
                raise
            raise UsageError(
                f"the role {self.name} fails at sentence {sentence.id!r}: {with_type(error)}; "
                "correct the function"
            ) from error
        if len(given) > most:
            raise UsageError(
                f"the role {self.name} returns more than {most} places or pairs for sentence "
                f"{sentence.id!r}; make the function stop earlier"
            )
        found = list(dict.fromkeys(self._checked(one, sentence) for one in given))
        if len({type(one) for one in found} | ({self.kind} - {None})) > 1:
            raise UsageError(
                f"the role {self.name} returns words, pairs (one, other) and pairs {{one, other}} "
                f"mixed (sentence {sentence.id!r}); return one kind only"
            )
        return found

    def _checked(self, one: Any, sentence: Sentence) -> int | tuple[int, ...] | frozenset[int]:
        """Return a place or a pair of places as Python integers. Raises UsageError for others."""
        has_order = isinstance(one, tuple)
        is_pair = (has_order and len(one) == 2) or isinstance(one, set | frozenset)
        places = tuple(one) if is_pair else (one,)
        n_words = len(sentence.words)
        is_known = all(_is_whole(place) and 0 <= place < n_words for place in places)
        if not is_known or len(places) != 1 + is_pair:
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
        if not is_pair:
            return found[0]
        return found if has_order else frozenset(found)


def _is_whole(place: object) -> bool:
    """Tell whether a place is a Python or NumPy integer; True and False are not."""
    return isinstance(place, numbers.Integral) and not isinstance(place, bool)
