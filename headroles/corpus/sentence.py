"""A parsed sentence, and what makes its tree a tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headroles.wording import listed

ANNOTATIONS = ("lemma", "upos", "xpos", "feats", "deps", "misc")
"""What else CoNLL-U says of words, column by column, as it stands there."""
MISSING = "_"

_FEW = 10  # words that a message names

ROOT = -1
"""Governor of a word that depends on no other word."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """Words of one sentence with their dependency arcs.

    ``governors[k]`` is the index (from 0) of the word that word ``k`` depends on, or ``ROOT``;
    ``relations[k]`` is the label of that arc. ``position`` counts the sentences of ``document``
    from 0: two sentences are adjacent when it differs by one.

    ``annotations`` has, for each of `ANNOTATIONS` that is known, the texts of all words, ``_``
    where there is nothing. ``n_multiword`` is the number of multiword tokens, such as "im", whose
    words are among them. Both are no part of what makes two sentences equal.
    """

    id: str
    document: str
    position: int
    words: tuple[str, ...]
    governors: tuple[int, ...]
    relations: tuple[str, ...]
    annotations: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict, compare=False, repr=False
    )
    n_multiword: int = field(default=0, compare=False, repr=False)

    @property
    def lemmas(self) -> tuple[str, ...]:
        """The lemma of each word, ``_`` where there is none."""
        return self._column("lemma")

    @property
    def upos(self) -> tuple[str, ...]:
        """The universal part of speech of each word, ``_`` where there is none."""
        return self._column("upos")

    @property
    def feats(self) -> tuple[Mapping[str, str], ...]:
        """The features of each word, such as ``Number`` and ``Plur``."""
        return tuple(map(_pairs, self._column("feats")))

    @property
    def misc(self) -> tuple[Mapping[str, str], ...]:
        """What MISC says of each word, by key."""
        return tuple(map(_pairs, self._column("misc")))

    def _column(self, name: str) -> tuple[str, ...]:
        return self.annotations.get(name) or (MISSING,) * len(self.words)

    def __post_init__(self) -> None:
        if not len(self.words) == len(self.governors) == len(self.relations):
            raise ValueError(
                f"sentence {self.id!r}: words, governors and relations differ in length"
            )


def _pairs(text: str) -> dict[str, str]:
    """``Key=Value|Key=Value`` as a mapping; a key alone has an empty value."""
    parts = (part.partition("=") for part in text.split("|") if text != MISSING)
    return {key: value for key, _, value in parts}


def find_cycle(governors: tuple[int, ...]) -> tuple[int, ...]:
    """Word indices of the first cycle, in ascending order; empty if there is none."""
    done = [False] * len(governors)
    for start in range(len(governors)):
        places: dict[int, int] = {}  # of the words on the way up from the first
        word = start
        while word != ROOT and not done[word]:
            if word in places:
                return tuple(sorted(list(places)[places[word] :]))
            places[word] = len(places)
            word = governors[word]
        for word in places:
            done[word] = True
    return ()


def tree_defect(governors: tuple[int, ...], n_trees: int = 1) -> str | None:
    """What keeps ``governors`` from being a tree with a single root, or None if it is one.

    Of ``n_trees`` trees there may be as many roots.

    Word numbers in the answer count from 1, as in a CoNLL-U file.
    """
    for word, governor in enumerate(governors):
        if not ROOT <= governor < len(governors):
            return (
                f"word {word + 1} has head {governor + 1}, "
                f"but the sentence has {len(governors)} words"
            )
    if cycle := find_cycle(governors):
        numbers = [word + 1 for word in cycle]
        through = " and ".join(map(str, numbers)) if len(cycle) <= _FEW else listed(numbers, _FEW)
        return f"has a cycle through {'words' if len(cycle) > 1 else 'word'} {through}"
    roots = [word + 1 for word, governor in enumerate(governors) if governor == ROOT]
    if len(roots) > n_trees:
        return f"has {len(roots)} roots (words {listed(roots, _FEW)}) instead of one"
    return None
