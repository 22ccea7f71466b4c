"""Attention that follows a rule: what a head can do without any tree, and two rules with one.

A rule gives each word weights over the other words of its sentence, or each word piece over the
pieces. What a rule does not use goes to the first token, as heads of encoders do with attention
that they do not need. Rules see words, their classes and places, and how frequent words are in the
corpus; only those of the kind *tree* see arcs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np

from headroles.arrays import BoolArray, FloatArray, IntArray
from headroles.corpus import Sentence
from headroles.corpus.sentence import ROOT
from headroles.roles.word_classes import classes_in

LEFT, EITHER, RIGHT = -1, 0, 1
CONTENT = ("NOUN", "VERB", "ADJ", "ADV")
Rule: TypeAlias = "Callable[[View], FloatArray]"
"""From a sentence to weights (words, words), or (pieces, pieces) of rules in pieces."""


@dataclass(frozen=True)
class View:
    """What rules see of a sentence: its words, and the word of each piece (None: special)."""

    sentence: Sentence
    words_of_pieces: Sequence[int | None]
    frequencies: Mapping[str, int]

    @property
    def n_words(self) -> int:
        """Number of words."""
        return len(self.sentence.words)

    @cached_property
    def words(self) -> list[str]:
        """The words in small letters."""
        return [word.casefold() for word in self.sentence.words]

    @cached_property
    def classes(self) -> Any:
        """Classes of words, an array (words,) of texts."""
        return np.array(classes_in(self.sentence))

    def are(self, *classes: str) -> BoolArray:
        """Tell which words (words,) are of one of the classes."""
        return np.isin(self.classes, classes)

    @cached_property
    def counts(self) -> FloatArray:
        """How often each word stands in the corpus (words,)."""
        return np.array([self.frequencies[word] for word in self.words], dtype=float)

    @cached_property
    def offsets(self) -> FloatArray:
        """Places of keys less places of queries (words, words)."""
        return offsets_of(self.n_words)

    @cached_property
    def governed(self) -> BoolArray:
        """Whether the key governs the query (words, words)."""
        governors = np.array(self.sentence.governors)
        return np.asarray(governors[:, None] == np.arange(self.n_words))


def offsets_of(n: int) -> FloatArray:
    """Return places of keys less places of queries (n, n)."""
    place = np.arange(n, dtype=float)
    return place - place[:, None]


def only(targets: Any, offsets: FloatArray) -> FloatArray:
    """Put all weight of a row on one key; ``targets`` are keys, or costs (n, n) of which the
    smallest in each row counts, infinite for keys that the rule does not allow.
    """
    costs = np.where(offsets == 0, np.inf, np.broadcast_to(targets, offsets.shape))
    weights = np.zeros(costs.shape)
    has = np.isfinite(costs).any(axis=1)
    weights[has, costs[has].argmin(axis=1)] = 1
    return weights


def nearest(members: BoolArray, view: View, side: int = EITHER, rank: int = 0) -> FloatArray:
    """Look at the nearest of some words, on a side; with ``rank`` 1 at the second nearest.

    Of two words at the same distance, at the left one.
    """
    offsets = view.offsets
    allowed = members & (offsets != 0) & (offsets * side >= 0)
    costs = np.where(allowed, np.abs(offsets) + 0.25 * (offsets > 0), np.inf)
    for _ in range(rank):
        costs[only(costs, offsets) > 0] = np.inf
    return only(costs, offsets)


def of_class(view: View, classes: Sequence[str], side: int = EITHER, rank: int = 0) -> FloatArray:
    """Look at the nearest word of the classes."""
    return nearest(view.are(*classes), view, side, rank)


def one_for_all(view: View, costs: FloatArray) -> FloatArray:
    """Let all words look at the word with the smallest of costs (words,)."""
    best = np.arange(view.n_words) != costs.argmin()
    return only(np.where(best, np.inf, 0.0), view.offsets)


def at(offset: int, offsets: FloatArray) -> FloatArray:
    """Look at the place with the offset."""
    return (offsets == offset) * 1.0


def within(low: int, high: int, offsets: FloatArray) -> FloatArray:
    """Look at all places between two offsets."""
    return ((offsets >= low) & (offsets <= high) & (offsets != 0)) * 1.0


def bell(centre: float, width: float, offsets: FloatArray) -> FloatArray:
    """Look at places around an offset."""
    return np.where(offsets == 0, 0.0, np.exp(-(((offsets - centre) / width) ** 2) / 2))


PLACES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "next": partial(at, 1),
    "previous": partial(at, -1),
    "second next": partial(at, 2),
    "second previous": partial(at, -2),
    "next three": partial(within, 1, 3),
    "previous three": partial(within, -3, -1),
    "around +1.5": partial(bell, 1.5, 1.0),
    "around 0": partial(bell, 0.0, 2.0),
}
"""Rules about offsets, of words or of pieces."""


def in_words(view: View, place: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Follow a rule about offsets of words."""
    return place(view.offsets)


def in_pieces(view: View, place: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Follow a rule about offsets of pieces."""
    return place(offsets_of(len(view.words_of_pieces)))


def end_of_nouns(view: View) -> FloatArray:
    """Look at the last noun of the next run of nouns."""
    is_noun = view.are("NOUN")
    return nearest(is_noun & ~np.append(is_noun[1:], False), view, RIGHT)


def by_classes(view: View) -> FloatArray:
    """Look where the class of the query has its governor most often, by class and side."""
    weights = np.zeros((view.n_words, view.n_words))
    for classes, targets, side in (
        (("DET", "ADJ", "ADP", "NUM"), ("NOUN",), RIGHT),
        (("PRON", "AUX", "PART", "SCONJ"), ("VERB",), RIGHT),
        (("NOUN", "ADV", "PUNCT"), ("VERB",), LEFT),
        (("CCONJ", "INTJ"), CONTENT, RIGHT),
        (("VERB",), ("VERB",), LEFT),
    ):
        is_query = view.are(*classes)
        weights[is_query] = of_class(view, targets, side)[is_query]
    return weights


def same_clause(view: View) -> FloatArray:
    """Look at the verbs between the same two punctuation marks."""
    clause = np.cumsum(view.are("PUNCT"))
    return ((clause == clause[:, None]) & view.are("VERB") & (view.offsets != 0)) * 1.0


def main_verb(view: View) -> FloatArray:
    """Look at the first verb that no subjunction stands before, else at the first one."""
    after = np.cumsum(view.are("SCONJ")) > 0
    place = np.arange(view.n_words)
    costs = np.where(view.are("VERB"), place + view.n_words * after, np.inf)
    return one_for_all(view, costs) if np.isfinite(costs).any() else 0 * view.offsets


def first_of(view: View, name: str, back: bool = False) -> FloatArray:
    """Look at the first, or the last, word of a class."""
    place = np.arange(view.n_words)
    costs = np.where(view.are(name), -place if back else place, np.inf)
    return one_for_all(view, costs) if np.isfinite(costs).any() else 0 * view.offsets


def all_of_class(view: View, classes: Sequence[str], reach: int = 10**6) -> FloatArray:
    """Look at all words of the classes, at most so far away."""
    return np.where(np.abs(view.offsets) <= reach, view.are(*classes) * 1.0, 0.0)


def same_class(view: View) -> FloatArray:
    """Look at all words of the query's class."""
    return (view.classes == view.classes[:, None]) * 1.0


def by_frequency(view: View, exponent: float, reach: int = 10**6) -> FloatArray:
    """Look at words by a power of their frequency."""
    return np.where(np.abs(view.offsets) <= reach, view.counts**exponent, 0.0)


def root(view: View) -> FloatArray:
    """Look at the root of the sentence, which a parse tells; at nothing else of it."""
    return one_for_all(view, (np.array(view.sentence.governors) != ROOT) * 1.0)


SIDES = {"": EITHER, " to the left": LEFT, " to the right": RIGHT}
NEAREST = {
    "verb": ("VERB",),
    "noun": ("NOUN",),
    "adjective": ("ADJ",),
    "pronoun": ("PRON",),
    "content word": CONTENT,
}
IN_PIECES, TREE = "a place, in pieces", "the tree"
RULES: dict[str, dict[str, Rule]] = {
    "a place, in words": {
        **{f"{name} word": partial(in_words, place=place) for name, place in PLACES.items()},
        "first word": lambda view: one_for_all(view, np.arange(view.n_words)),
        "middle word": lambda view: one_for_all(
            view, np.abs(np.arange(view.n_words) - view.n_words // 2)
        ),
        "last word": lambda view: one_for_all(view, -np.arange(view.n_words)),
    },
    IN_PIECES: {f"{name} piece": partial(in_pieces, place=place) for name, place in PLACES.items()},
    "the nearest of a class": {
        f"nearest {name}{side}": partial(of_class, classes=classes, side=number)
        for name, classes in NEAREST.items()
        for side, number in SIDES.items()
    }
    | {
        "nearest punctuation": partial(of_class, classes=("PUNCT",)),
        "verbs within 3 words": partial(all_of_class, classes=("VERB",), reach=3),
        "by class and side": by_classes,
    },
    "all words of a class": {
        "all verbs": partial(all_of_class, classes=("VERB",)),
        "all nouns": partial(all_of_class, classes=("NOUN",)),
        "all content words": partial(all_of_class, classes=CONTENT),
        "all punctuation": partial(all_of_class, classes=("PUNCT",)),
        "words of the same class": same_class,
        "verbs of the clause": same_clause,
    },
    "one word for all": {
        "most frequent word": lambda view: one_for_all(view, -view.counts),
        "rarest word": lambda view: one_for_all(view, view.counts),
        "longest word": lambda view: one_for_all(view, -np.array([*map(len, view.words)])),
        "by frequency": partial(by_frequency, exponent=1.0),
        "by rarity, within 3 words": partial(by_frequency, exponent=-1.0, reach=3),
        "first verb": partial(first_of, name="VERB"),
        "last verb": partial(first_of, name="VERB", back=True),
        "first noun": partial(first_of, name="NOUN"),
        "main verb, by subjunctions": main_verb,
        "root": root,
    },
    "beyond the nearest of a class": {
        "second nearest verb": partial(of_class, classes=("VERB",), rank=1),
        "second nearest noun": partial(of_class, classes=("NOUN",), rank=1),
        "second nearest verb to the left": partial(of_class, classes=("VERB",), side=LEFT, rank=1),
        "last noun of the next run of nouns": end_of_nouns,
    },
    TREE: {
        "governor": lambda view: view.governed * 1.0,
        "dependents": lambda view: view.governed.T * 1.0,
    },
}
"""All rules, by kind."""


def frequencies_in(sentences: Iterable[Sentence]) -> Counter[str]:
    """Count words in small letters."""
    return Counter(word.casefold() for sentence in sentences for word in sentence.words)


def of_pieces(weights: FloatArray, words_of_pieces: Sequence[int | None]) -> FloatArray:
    """Return attention between pieces (..., pieces, pieces) by weights of words (..., n, n).

    The attention to a word is divided among its pieces.
    """
    words = np.array([-1 if word is None else word for word in words_of_pieces])
    sizes = np.bincount(words[words >= 0], minlength=weights.shape[-1])
    # of special tokens: index -1 is set to 0 by `attending`
    return weights[..., words[:, None], words] / sizes[words]


def attending(weights: FloatArray, words_of_pieces: Sequence[int | None]) -> FloatArray:
    """Return attention (..., pieces, pieces) whose rows sum to 1.

    Special tokens, and pieces for which the rule has no key, attend to the first token alone.
    """
    is_special = np.array([word is None for word in words_of_pieces])
    kept = np.where(is_special[:, None] | is_special, 0.0, weights)
    totals = kept.sum(axis=-1, keepdims=True)
    attention = np.divide(kept, totals, out=np.zeros_like(kept), where=totals > 0)
    attention[..., 0] += np.maximum(0, 1 - attention.sum(axis=-1))
    return attention


@dataclass(frozen=True)
class Ruled(Mapping[str, Any]):
    """Attention by rules of every sentence, made when it is asked for, by id.

    ``make`` returns the attention (layers, heads, pieces, pieces) of what rules see.
    """

    sentences: Mapping[str, Sentence]
    words_of_pieces: Mapping[str, Sequence[int | None]]
    make: Callable[[View], FloatArray]

    @cached_property
    def frequencies(self) -> Counter[str]:
        """How often each word stands in the corpus."""
        return frequencies_in(self.sentences.values())

    def __getitem__(self, name: str) -> Any:
        view = View(self.sentences[name], self.words_of_pieces[name], self.frequencies)
        return self.make(view).astype(np.float32)

    def __iter__(self) -> Iterator[str]:
        return iter(self.sentences)

    def __len__(self) -> int:
        return len(self.sentences)


STRENGTHS = {"all": 1.0, "half": 0.5, "a quarter": 0.25}
"""Shares of the attention that follow a rule; the rest is uniform. Each share is a layer."""
NAMES = [(kind, name) for kind, rules in RULES.items() for name in rules]
"""Kind and name of each rule; each is a head."""


def by_rules(view: View) -> FloatArray:
    """Follow every rule (a head each) with every strength (a layer each)."""
    heads = []
    for kind, name in NAMES:
        weights = RULES[kind][name](view)
        if kind != IN_PIECES:
            weights = of_pieces(weights, view.words_of_pieces)
        heads.append(attending(weights, view.words_of_pieces))
    strength = np.array([*STRENGTHS.values()])[:, None, None, None]
    return strength * np.stack(heads) + (1 - strength) / len(view.words_of_pieces)


def in_view(view: View) -> FloatArray:
    """Follow every rule as far as each token sees itself and earlier ones; the rest is uniform.

    What a rule gives to later tokens goes to the first.
    """
    earlier = np.tril(np.ones((len(view.words_of_pieces),) * 2))
    heads = []
    for kind, name in NAMES:
        weights = RULES[kind][name](view)
        if kind != IN_PIECES:
            weights = of_pieces(weights, view.words_of_pieces)
        heads.append(attending(weights * earlier, view.words_of_pieces))
    strength = np.array([*STRENGTHS.values()])[:, None, None, None]
    uniform = earlier / earlier.sum(axis=-1, keepdims=True)
    return strength * np.stack(heads) + (1 - strength) * uniform


N_RANDOM, FARTHEST, STRENGTH = 50, 8, 0.6
"""Heads of each random kind, the largest offset of kernels, and the share that follows them."""
RANDOM = {
    "offset": 0,
    "offset and place in the sentence": 1,
    "offset and frequency": 2,
    "offset and class": 3,
    "offset in pieces": 4,
    "nearest of a class, and offset": 5,
}
"""The kinds of random heads, each a layer; the last has noise of its own in each sentence."""
UNIFORM = "nothing, with noise"
WITHOUT_WORDS = (UNIFORM, "offset", "offset and place in the sentence", "offset in pieces")
"""Kinds of random heads of decoders, each a layer, that know no words; the first is uniform on
average."""
CLASSES = "NOUN VERB ADJ ADV PRON DET ADP AUX CCONJ SCONJ PART PUNCT NUM SYM X INTJ".split()


def mixed(ways: FloatArray, view: View, seen: FloatArray) -> FloatArray:
    """Return attention that follows some ways to `STRENGTH`, and else is uniform over what is seen.

    ``seen`` (pieces, pieces) is 1 for the keys that a query sees.
    """
    attention = attending(ways * seen, view.words_of_pieces)
    return STRENGTH * attention + (1 - STRENGTH) * seen / seen.sum(axis=-1, keepdims=True)


@dataclass(frozen=True)
class RandomHeads:
    """Random heads that know offsets, places, frequencies and classes, and no tree."""

    kernels: FloatArray
    of_place: FloatArray
    of_frequency: FloatArray
    of_class: FloatArray
    targets: IntArray
    sides: IntArray

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> RandomHeads:
        """Draw `N_RANDOM` heads of each kind."""
        shape = (len(RANDOM), N_RANDOM)
        kernels = np.stack([random_kernel(rng, k % 5) for k in range(len(RANDOM) * N_RANDOM)])
        return cls(
            kernels.reshape(*shape, -1),
            rng.normal(0, 1.5, (N_RANDOM, 2)),
            rng.uniform(0.2, 1.2, N_RANDOM) * rng.choice([1, 1, 1, -1], N_RANDOM),
            rng.normal(0, 2, (N_RANDOM, len(CLASSES) + 1)),
            rng.integers(0, 5, N_RANDOM),
            rng.choice([LEFT, EITHER, RIGHT], N_RANDOM),
        )

    def __call__(self, view: View) -> FloatArray:
        """Return attention (kinds, heads, pieces, pieces)."""
        return mixed(self._ways(view), view, np.ones((len(view.words_of_pieces),) * 2))

    def in_view(self, view: View) -> FloatArray:
        """Return that of the kinds of `WITHOUT_WORDS` if tokens see themselves and earlier ones."""
        n = len(view.words_of_pieces)
        ways = self._ways(view)[[RANDOM[kind] for kind in WITHOUT_WORDS[1:]]]
        noise = np.random.default_rng(n).gamma(2.0, 1.0, (1, N_RANDOM, n, n))
        return mixed(np.concatenate([noise, ways]), view, np.tril(np.ones((n, n))))

    def _ways(self, view: View) -> FloatArray:
        """Return weights (kinds, heads, pieces, pieces)."""
        weights = self._kernel_of(range(len(RANDOM)), view.offsets)
        place = np.arange(view.n_words) / max(1, view.n_words - 1)
        waves = np.cos(np.pi * np.stack([place, 2 * place]))
        weights[1] *= np.exp(self.of_place @ waves)[:, None]
        weights[2] *= (1 + view.counts) ** -self.of_frequency[:, None, None]
        numbers = [CLASSES.index(one) if one in CLASSES else -1 for one in view.classes]
        weights[3] *= np.exp(self.of_class[:, numbers])[:, None]
        weights[5] = self._nearest(view, weights[5])
        ways = of_pieces(weights, view.words_of_pieces)
        ways[4] = self._kernel_of([4], offsets_of(len(view.words_of_pieces)))[0]
        return ways

    def _kernel_of(self, kinds: Sequence[int], offsets: FloatArray) -> FloatArray:
        """Return weights (kinds, heads, n, n) by offset."""
        places = np.clip(offsets, -FARTHEST, FARTHEST).astype(int) + FARTHEST
        kernels = self.kernels[[*kinds]][:, :, places]
        return np.asarray(np.where(np.abs(offsets) <= FARTHEST, kernels, 0.0))

    def _nearest(self, view: View, kernels: FloatArray) -> FloatArray:
        """Look at the nearest of a class, mixed with the kernel, times noise of the sentence."""
        names, rng = [*NEAREST.values()], np.random.default_rng(len("".join(view.words)))
        rules = [
            of_class(view, names[target], side)
            for target, side in zip(self.targets.tolist(), self.sides.tolist(), strict=True)
        ]
        noise = rng.gamma(0.5, 1.0, kernels.shape)
        return (0.7 * np.stack(rules) + 0.3 * kernels) * noise


def random_kernel(rng: np.random.Generator, shape: int) -> FloatArray:
    """Draw weights of the offsets up to `FARTHEST`, of one of five shapes."""
    offsets = np.arange(-FARTHEST, FARTHEST + 1.0)
    if shape == 0:
        kernel = bell(rng.normal(0, 2), rng.uniform(0.3, 3), offsets)
    elif shape == 1:
        sides = rng.uniform(0, 1, 2)
        kernel = np.exp(-np.abs(offsets) / rng.uniform(0.5, 4)) * sides[(offsets > 0) * 1]
    elif shape == 2:
        kernel = rng.gamma(0.2, 1.0, len(offsets))
    elif shape == 3:
        kernel = at(int(rng.choice([-3, -2, -1, 1, 2, 3])), offsets) + 0.02
    else:
        kernel = np.where(offsets > 0, 1.0, 0.1) * (np.abs(offsets) <= rng.integers(1, 5)) + 1e-3
    kernel[FARTHEST] = 0
    return np.asarray(kernel / kernel.sum())
