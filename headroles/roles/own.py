"""A user's own roles: a Python function names, for each sentence, the words to look at.

The function takes a `Sentence` and returns pairs of words or a set of words, by their places in the
sentence from 0. With pairs ``(one, other)``, the first word looks for the second, and the second
for the first in the role ``...:back``; with pairs ``{one, other}`` each looks for the other, in one
role; with a set of places, every word of the sentence looks for the words in it. A function of two
sentences takes both texts of a pair, and returns pairs of a word of the first text and a word of
the second. Roles of pairs have the contrasts of those of arcs; across two texts of an encoder, one
contrast with all other words of the other text that the layer can see, and between a source and a
target those of aligned words.
"""

from __future__ import annotations

import importlib
import inspect
import numbers
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice, permutations
from pathlib import Path
from typing import Any, TypeAlias

from headroles.corpus import MISSING, Sentence, make_examples
from headroles.errors import UsageError
from headroles.options import split_names
from headroles.roles.batch import WORDS
from headroles.roles.catalogue import marks_of
from headroles.roles.pairs import BACK, FORTH, FindLinks, Link, Pairs
from headroles.roles.role import ARCS, SENTENCE_PAIRS, Context, Role
from headroles.roles.sieve import Sets, sets_of_sentences
from headroles.roles.syntactic import SyntacticOptions
from headroles.wording import as_given, shortened, with_type

_MOST_REPEATED = 10_000
"""Number of repeated places or pairs that a function may return for one sentence."""
Find: TypeAlias = Callable[..., Iterable[Any]]
"""Function from a sentence, or the two of a pair, to pairs of places of words, or to places."""
SAME = "same"
_SAME_IN_WORDS = (
    "word -> the same word in the second text",
    "word -> the same word in the first text",
)


class OwnName(str):
    """The name ``module:function`` of a role, with the function itself."""

    function: Find

    @classmethod
    def from_function(cls, function: Any) -> OwnName:
        """Return the name of a function; a name stays as it is."""
        if isinstance(function, cls):
            return function
        module = getattr(function, "__module__", None) or "__main__"
        of_type = type(function).__qualname__
        name = cls(f"{module}:{getattr(function, '__qualname__', of_type)}")
        name.function = function
        return name


def names_of_roles(chosen_roles: str | Find | Iterable[str | Find]) -> tuple[str, ...]:
    """Return the names of roles in a text or a sequence; functions have names of their own.

    Raises UsageError for two functions of one name.
    """
    parts = [chosen_roles] if callable(chosen_roles) else chosen_roles
    if isinstance(parts, str) or not isinstance(parts, Iterable):
        return split_names(parts)
    names: dict[str, str] = {}
    for part in parts:
        if not callable(part) and not isinstance(part, OwnName):
            names |= {name: name for name in split_names([part])}
            continue
        name = OwnName.from_function(part)
        if getattr(names.setdefault(name, name), "function", None) is not name.function:
            raise UsageError(f"two functions have the name {name}; rename one of them")
    return tuple(names.values())


def own_roles(name: str, context: Context, options: SyntacticOptions) -> Iterator[Role]:
    """Yield the roles of a function called ``module:function``, and their contrasts.

    Raises UsageError if the function does not exist, fails, or finds nothing in the whole corpus.
    """
    function: Find = getattr(name, "function", None) or load_function(name)
    name = str(name)
    find = Finder(name, function)
    if find.is_across:
        examples = make_examples(context.sentences, "adjacent")
        looked = (example.sentences for example in examples if len(example.sentences) > 1)
    else:
        looked = ((sentence,) for sentence in context.sentences)
    first = next((result for sentences in looked for result in find.raw(*sentences)), None)
    if first is None:
        unit = "pair of sentences" if find.is_across else "sentence"
        raise UsageError(
            f"the role {name} finds nothing in any {unit} of the corpus; correct the function"
        )
    find = Finder(name, function, kind=type(first))
    if find.kind is int:
        sieve = Sets(partial(sets_of_sentences, find=find.of), WORDS)
        yield Role(name, "words", words=name, function=name, sieve=sieve)
        return
    roles = _of_pairs(find, (name, f"{name}:back"), name)
    yield from (*roles, *options.contrasts_of(roles, context))


def same_roles(options: SyntacticOptions, context: Context) -> Iterator[Role]:
    """Yield the roles of words that both texts of a pair have, in both directions."""
    roles = _of_pairs(Finder(SAME, same, kind=tuple), _SAME_IN_WORDS)
    yield from (*roles, *options.contrasts_of(roles, context))


def same(first: Sentence, second: Sentence) -> Iterator[tuple[int, int]]:
    """Yield the words of two texts with the same lemma, or form if lemmas are missing.

    Punctuation is excluded.
    """
    lemmas, others = (
        [
            "" if is_mark else (word if lemma == MISSING else lemma).casefold()
            for word, lemma, is_mark in zip(text.words, text.lemmas, marks_of(text), strict=True)
        ]
        for text in (first, second)
    )
    for k, lemma in enumerate(lemmas):
        yield from ((k, j) for j, other in enumerate(others) if lemma and other == lemma)


def _of_pairs(find: Finder, words: tuple[str, str], function: str = "") -> list[Role]:
    """Return the roles of pairs; ``words`` are those forth and back."""
    forth = Role(
        find.name,
        ARCS,
        words=words[0],
        function=function,
        needs=SENTENCE_PAIRS if find.is_across else "",
        sieve=Pairs(find, frozenset([0]), FORTH),
    )
    roles = [forth]
    if find.kind is tuple:
        back = Pairs(find, frozenset([0]), BACK)
        roles.append(replace(forth, id=f"{find.name}:back", words=words[1], sieve=back))
    return roles


def load_function(name: str, subject: str = "role") -> Callable[..., Any]:
    """Load the Python function ``module:function``, which defines a ``subject``.

    Raises UsageError if there is none.
    """
    module, _, attribute = name.partition(":")
    here = str(Path.cwd())
    sys.path.insert(0, here)  # as Python does for its own scripts
    try:
        function: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
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
    return function


@dataclass(frozen=True)
class Finder(FindLinks):
    """Caller of a user's function that checks the returned places; pairs of them are links.

    ``kind`` is the type of the places found in other sentences: an int for a word, a tuple for a
    pair, a frozenset for a pair without order; None if not yet known.
    """

    name: str
    function: Find = field(compare=False)
    kind: type | None = None

    @cached_property
    def is_across(self) -> bool:
        """Whether the function takes both sentences of a pair."""
        try:
            parameters = inspect.signature(self.function).parameters.values()
        except Exception:  # a user's object may raise anything
            return False
        by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return sum(arg.kind in by_place and arg.default is arg.empty for arg in parameters) > 1

    def of_sentence(self, sentence: Sentence) -> list[Link]:
        """Return the pairs of places as links with the label 0."""
        return [] if self.is_across else [(first, second, 0) for first, second in self.of(sentence)]

    def of_pair(self, first: Sentence, second: Sentence) -> list[Link]:
        """Return the pairs of places in two sentences as links with the label 0."""
        return [(*pair, 0) for pair in self.raw(first, second)] if self.is_across else []

    def of(self, sentence: Sentence) -> list[Any]:
        """Return the places, or the pairs of places, those without order both ways."""
        return [
            both
            for item in self.raw(sentence)
            for both in (permutations(sorted(item)) if isinstance(item, frozenset) else (item,))
        ]

    def raw(self, *sentences: Sentence) -> list[Any]:
        """Return the places or the pairs of places that the function finds, without repeats."""
        sizes = [len(sentence.words) for sentence in sentences for _ in range(3 - len(sentences))]
        where = f"sentence {'+'.join(sentence.id for sentence in sentences)!r}"
        most = sizes[0] * sizes[1] + _MOST_REPEATED
        try:
            returned = list(islice(iter(self.function(*sentences)), most + 1))
        except BaseException as error:  # a user's function may raise anything
            if isinstance(error, KeyboardInterrupt):
                raise
            raise UsageError(
                f"the role {self.name} fails at {where}: {with_type(error)}; correct the function"
            ) from error
        if len(returned) > most:
            raise UsageError(
                f"the role {self.name} returns more than {most} places or pairs for {where}; make "
                "the function stop earlier"
            )
        results = list(dict.fromkeys(self._checked(result, sizes, where) for result in returned))
        if len({type(result) for result in results} | ({self.kind} - {None})) > 1:
            raise UsageError(
                f"the role {self.name} returns words, pairs (one, other) and pairs {{one, other}} "
                f"mixed ({where}); return one kind only"
            )
        return results

    def _checked(
        self, result: Any, sizes: Sequence[int], where: str
    ) -> int | tuple[int, ...] | frozenset[int]:
        """Return a place or a pair of places as Python integers. Raises UsageError for others."""
        has_order = isinstance(result, tuple)
        is_pair = (has_order and len(result) == 2) or isinstance(result, set | frozenset)
        words = tuple(result) if is_pair else (result,)
        is_known = len(words) == 1 + is_pair and all(
            _is_whole(word) and 0 <= word < size for word, size in zip(words, sizes, strict=False)
        )
        if not is_known or (self.is_across and not (is_pair and has_order)):
            wanted = f"places of words from 0 to {sizes[0] - 1}, or pairs of them"
            if self.is_across:
                limits = " and ".join(f"from 0 to {size - 1}" for size in sizes)
                wanted = f"pairs (place in the first text, place in the second), {limits}"
            raise UsageError(
                f"the role {self.name} returns {as_given(result)} for {where}; return {wanted}"
            )
        integers = tuple(map(int, words))
        if is_pair and not self.is_across and integers[0] == integers[1]:
            raise UsageError(
                f"the role {self.name} joins word {integers[0]} of {where} to itself; join two "
                "different words"
            )
        if not is_pair:
            return integers[0]
        return integers if has_order else frozenset(integers)


def _is_whole(place: object) -> bool:
    """Tell whether a place is a Python or NumPy integer; True and False are not."""
    return isinstance(place, numbers.Integral) and not isinstance(place, bool)
