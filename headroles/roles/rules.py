"""Rules that know no tree: the word at a fixed offset, the nearest word of a class.

First choices between words are compared with such rules. "The nearest verb to the left" finds the
verb of most objects, so a head that finds as many need not know any syntax. A rule looks from the
query for the nearest word of one class, to the left, to the right or on either side, of two as near
for the left one. The words are those of the query's sentence that have pieces and are in view.

Between a source and a target, rules start at the word of the source at the same part of the
sentence as the query, which is the nearest one if it is of the class.

A rule finds only partners of its class, so that the classes of most partners of a role in the
corpus have its best rule.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headroles.arrays import BoolArray, Float32Array, IntArray
from headroles.roles.batch import OFFSETS, OFFSETS_ACROSS, PaddedBatch, Scope
from headroles.roles.weights import Weights
from headroles.roles.word_classes import UPOS, Words, find_words

SIDES = ("to the left", "to the right", "on either side")
N_CLASSES = 4
"""Classes whose rules are tried for each role: those of most partners."""
N_RULES = N_CLASSES * len(SIDES)
_IN_WORDS = {
    "ADJ": "adjective",
    "ADP": "adposition",
    "ADV": "adverb",
    "AUX": "auxiliary",
    "CCONJ": "coordinating conjunction",
    "DET": "determiner",
    "INTJ": "interjection",
    "NOUN": "noun",
    "NUM": "number",
    "PART": "particle",
    "PRON": "pronoun",
    "PUNCT": "punctuation mark",
    "SCONJ": "subordinating conjunction",
    "SYM": "symbol",
    "VERB": "verb",
    "X": "word (X)",
}


class Nearest(NamedTuple):
    """The rule that looks for the nearest word of a class on one of `SIDES`."""

    word_class: str
    side: str

    def __str__(self) -> str:
        name = _IN_WORDS.get(self.word_class, self.word_class.removeprefix("_ "))
        return f"nearest {name} {self.side}"


@dataclass(frozen=True)
class ClassRules:
    """Rules to compare a role with: the nearest word of each of the ``classes``, on each side.

    ``source`` is where classes come from, as in `classes_in`.
    """

    classes: tuple[str, ...] = ()
    source: str = UPOS

    @property
    def rules(self) -> list[Nearest]:
        """The rules, in the order of their hits."""
        return [Nearest(name, side) for name in self.classes for side in SIDES]


NO_RULES = ClassRules()


def most_frequent(counts: Counter[str]) -> tuple[str, ...]:
    """Return the classes of most partners; of several as frequent, the first by name."""
    order = sorted(counts, key=lambda name: (-counts[name], name))
    return tuple(order[:N_CLASSES])


class Places(NamedTuple):
    """Where the words of each class stand in a batch, for finding the nearest ones.

    ``sorted`` are places in examples of all words with pieces, plus ``n_words`` times the number of
    their group: the words of one class in one sentence.
    """

    words: Words
    sorted: IntArray

    @property
    def n_words(self) -> int:
        """Number of words of the longest example."""
        return int(self.words.sizes.shape[1])

    def groups(self, owners: IntArray, words: IntArray, classes: IntArray) -> IntArray:
        """Return the groups of words of some ``classes`` in the sentences of these words."""
        sentences = 2 * owners + self.words.sentences[owners, words]
        return sentences * len(self.words.numbers) + classes

    def nearest(
        self, owners: IntArray, homes: IntArray, classes: IntArray, with_home: bool
    ) -> tuple[IntArray, IntArray]:
        """Return the nearest words of ``classes`` to the left and the right, -1 without one.

        A home itself is found if ``with_home``.
        """
        groups = self.groups(owners, homes, classes)
        at, last = groups * self.n_words + homes, len(self.sorted) - 1
        left = np.searchsorted(self.sorted, at + with_home, "left") - 1
        right = np.searchsorted(self.sorted, at - with_home, "right")
        found = []
        for index in (left, right):
            of_group, word = np.divmod(self.sorted[index.clip(0, last)], self.n_words)
            is_there = (index >= 0) & (index <= last) & (of_group == groups)
            found.append(np.where(is_there, word, -1))
        return found[0], found[1]

    def ends(self, owners: IntArray, words: IntArray) -> IntArray:
        """Return the first piece and the number of pieces (n, 2) of words."""
        return np.stack([self.words.starts[owners, words], self.words.sizes[owners, words]], axis=1)


def find_places(batch: PaddedBatch, source: str) -> Places:
    """Find where the words of each class stand."""
    words = batch.of(find_words, source)
    places = Places(words, np.zeros(0, dtype=np.int64))
    owners, own = np.nonzero(words.sizes)
    groups = places.groups(owners, own, words.classes[owners, own])
    return places._replace(sorted=np.sort(groups * places.n_words + own))


Ends: TypeAlias = tuple[IntArray, IntArray, IntArray]
"""Examples, query words and partners of pairs of words (P,)."""


def find_class_hits(
    scope: Scope, ends: Ends, weights: Weights, rules: Sequence[ClassRules]
) -> NDArray[np.uint16]:
    """Count, as (B, r, `N_RULES`), the pairs of words that each rule finds.

    ``weights`` tell for which roles each pair counts, and ``rules`` are those of each role; the
    counts beyond them are 0.
    """
    owners, _, partners = ends
    shape = scope.batch.size, len(rules), N_CLASSES, len(SIDES)
    hits = np.zeros(shape, dtype=np.int64)
    pair, role = weights.pairs, weights.roles
    for source in dict.fromkeys(of_role.source for of_role in rules if of_role.classes):
        places = scope.batch.of(find_places, source)
        slots = _slots(rules, source, places.words.numbers)
        slot = slots[role, places.words.classes[owners, partners][pair]]
        for side, is_hit in enumerate(_sides_that_hit(scope, places, ends)):
            chosen = (slot >= 0) & is_hit[pair]
            at = owners[pair[chosen]], role[chosen], slot[chosen]
            hits[..., side] += _count(shape[:-1], *at)
    return hits.reshape(*shape[:2], N_RULES).astype(np.uint16)


def _slots(rules: Sequence[ClassRules], source: str, numbers: Mapping[str, int]) -> IntArray:
    """Return the place of each class (r, classes) among those of each role, -1 if it has none."""
    slots = np.full((len(rules), len(numbers)), -1)
    for row, of_role in zip(slots, rules, strict=True):
        for slot, name in enumerate(of_role.classes if of_role.source == source else ()):
            if name in numbers:
                row[numbers[name]] = slot
    return slots


def _sides_that_hit(scope: Scope, places: Places, ends: Ends) -> list[BoolArray]:
    """Tell for each of `SIDES` whether the nearest word of the partner's class is the partner."""
    owners, queries, partners = ends
    classes = places.words.classes[owners, partners]
    return [found == partners for found in _in_view(scope, places, owners, queries, classes)]


def nearest_words(scope: Scope, rules: ClassRules) -> IntArray:
    """Return the word (rules, W) that each rule finds for each word of the one example of a batch.

    -1 stands for no word.
    """
    places = scope.batch.of(find_places, rules.source)
    queries = np.arange(places.n_words)
    found = []
    for name in rules.classes:
        by_side = [np.full(len(queries), -1)] * len(SIDES)
        if (number := places.words.numbers.get(name)) is not None:
            classes = np.full(len(queries), number)
            by_side = _in_view(scope, places, 0 * queries, queries, classes)
        found += by_side
    return np.array(found, dtype=np.int64).reshape(-1, len(queries))


def _in_view(
    scope: Scope, places: Places, owners: IntArray, queries: IntArray, classes: IntArray
) -> list[IntArray]:
    """Return the words in view of queries that rules of some ``classes`` find, for each side."""
    of_queries, homes, seen = places.ends(owners, queries), find_homes(scope, owners, queries), []
    for found in places.nearest(owners, homes, classes, scope.reach.is_across):
        is_seen = scope.sees_words(owners, of_queries, places.ends(owners, found))
        seen.append(np.where(is_seen, found, -1))
    left, right = seen
    return [left, right, nearer(homes, left, right)]


def find_homes(scope: Scope, owners: IntArray, words: IntArray) -> IntArray:
    """Return the words that distances are measured from: the words themselves.

    Between a source and a target these are the words of the other text at the same part of it.
    """
    if not scope.reach.is_across:
        return words
    n_source, n_words = scope.batch.words_before[owners], scope.batch.n_words[owners]
    is_target, n_target = words >= n_source, n_words - n_source
    own, other = np.where(is_target, n_target, n_source), np.where(is_target, n_source, n_target)
    place = words - np.where(is_target, n_source, 0)
    homes: IntArray = (2 * place + 1) * other // (2 * own) + np.where(is_target, 0, n_source)
    return homes


def nearer(homes: IntArray, left: IntArray, right: IntArray) -> IntArray:
    """Return the nearer of two words, of two as near the left one; -1 stands for no word."""
    is_left = (right < 0) | ((left >= 0) & (homes - left <= right - homes))
    return np.where(is_left, left, right)


def find_offset_shares(
    scope: Scope, ends: Ends, weights: Weights, totals: IntArray
) -> Float32Array:
    """Return, as (B, r, offsets), the share of pairs whose partner is at each of `OFFSETS`.

    Between a source and a target these are `OFFSETS_ACROSS`, from the same part of the sentence.

    ``weights`` tell for which roles each pair counts, ``totals`` (B, r) how many do. The share is
    NaN without pairs.
    """
    owners, queries, partners = ends
    offsets = OFFSETS_ACROSS if scope.reach.is_across else OFFSETS
    distances = partners - find_homes(scope, owners, queries)
    is_at = np.equal.outer(distances[weights.pairs], offsets)
    entry, number = np.nonzero(is_at)
    at = owners[weights.pairs[entry]], weights.roles[entry], number
    hits = _count((*totals.shape, len(OFFSETS)), *at)
    with np.errstate(invalid="ignore"):  # 0 / 0 gives the NaN that is wanted
        return (hits / totals[..., None]).astype(np.float32)


def _count(shape: tuple[int, ...], *at: IntArray) -> IntArray:
    """Count how often each cell of an array of this shape is among the places ``at``."""
    cells = np.ravel_multi_index(at, shape)
    return np.bincount(cells, minlength=math.prod(shape)).reshape(shape)
