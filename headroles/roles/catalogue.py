"""Roles of tokens and words, and quantities that describe heads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, ClassVar
from unicodedata import category

import numpy as np
from msgspec import Meta

from headroles.arrays import BoolArray, FloatArray
from headroles.corpus import MISSING, Sentence, read_lines
from headroles.encoding import EncodedExample
from headroles.errors import CorpusError, UsageError
from headroles.options import Convert, Options, PresetOptions, path_text, whole_number
from headroles.role_names import offset_in_words
from headroles.roles.batch import TOKENS_OF_WORDS, WORDS, PaddedBatch, Scope
from headroles.roles.pairs import Offsets
from headroles.roles.role import SENTENCE_PAIRS, Context, OnlyFor, Role
from headroles.roles.score import BIAS, EXCESS, HIT, divide
from headroles.roles.sieve import (
    Array,
    Evenness,
    KeySets,
    Layer,
    RowWise,
    Sets,
    Shared,
    Sieve,
    SieveReadout,
    TimesEntropy,
    sets_of_sentences,
)
from headroles.wording import shortened

# Positions in the sequence

POSITION = "position"
_USUAL = (-1, 1)
"""Offsets of the group ``position``: the neighbours."""
_IN_WINDOW = ": partly architecture"


@dataclass(frozen=True, kw_only=True)
class LocalOptions(PresetOptions):
    """Options of the local role."""

    title: ClassVar[str] = "Roles"

    window: Annotated[int, Meta(ge=0), OnlyFor("local")] = 2
    """Reach of the local sieve, in tokens."""


def local_roles(options: LocalOptions, context: Context) -> Iterator[Role]:
    """Yield the role whose tokens look for those in a window around them, themselves included.

    The published preset takes the size of the window as in the released notebooks, which is one too
    large for the last tokens.
    """
    window, published_edge = options.window, options.is_published
    yield Role(
        id="local",
        words="neighbouring words",
        meaning={"window": window, "published_edge": published_edge},
        in_window=_IN_WINDOW,
        sieve=Offsets(-window, window, published_edge),
    )


def position_roles(options: Options, context: Context) -> Iterator[Role]:
    """Yield roles that look a fixed number of places on: the usual ones, and those of the options.

    Tokens without a token there are no queries.
    """
    names = getattr(options, "roles", None) or ()
    for offset in sorted({*_USUAL, *(offset_of(name) for name in names if is_position(name))}):
        yield Role(
            f"{POSITION}:{offset:+d}",
            words=offset_in_words(offset),
            in_window=_IN_WINDOW,
            sieve=Offsets(offset, offset),
        )


def is_position(name: str) -> bool:
    """Tell whether a name has the form of a positional role, even with an invalid offset."""
    return name.startswith(f"{POSITION}:")


def offset_of(name: str) -> int:
    """Return the offset in a name such as ``position:-1``. Raises UsageError for others."""
    try:
        offset = int(name.removeprefix(f"{POSITION}:"))
    except ValueError:
        offset = 0
    if not offset:
        raise UsageError(
            f"the role {name!r} has no valid offset; write position:-1, position:+2 or another "
            "number of tokens other than 0"
        )
    return offset


def check_offsets(names: Iterable[str], max_tokens: int) -> None:
    """Raise UsageError for the id of a role that looks beyond the longest input of a model."""
    for name in names:
        if is_position(name) and abs(offset_of(name)) >= max_tokens:
            raise UsageError(
                f"the role {name} looks farther than the model reads ({max_tokens} tokens); choose "
                "a smaller offset"
            )


# Words of the same sentence of a pair

EVENNESS = "block:evenness"
_THRESHOLD_OF_HITS = 0.9
"""Threshold of hits. About half of all words are in the sentence of the query, so a head that
chooses at random hits half of the time, and a head that looks at nearby words almost always.
"""


def block_roles(options: PresetOptions, context: Context) -> Iterator[Role]:
    """Yield the role: ``block:ratio`` for the bias score, ``block`` for the other scores.

    The published ``block``, the bias score times the entropy of each row, is for the published
    preset alone: heads with random weights have it too. With ``excess``, a second measure says how
    evenly a head spreads over the words of the sentence.
    """
    sieve = RowWise(own_segment)
    limits: dict[str, float] = {}
    if options.is_published:
        sieve = TimesEntropy(own_segment)
    elif context.score == HIT:
        limits, sieve = {HIT.name: _THRESHOLD_OF_HITS}, RowWise(own_segment, among=TOKENS_OF_WORDS)
    is_ratio = context.score == BIAS and not options.is_published
    yield Role(
        "block:ratio" if is_ratio else "block",
        words="the same sentence",
        needs=SENTENCE_PAIRS,
        thresholds=limits,
        sieve=sieve,
    )
    if context.score == EXCESS:
        words = "evenness within the same sentence"
        yield Role(EVENNESS, measure_of="block", words=words, sieve=Evenness(own_segment))


def own_segment(batch: PaddedBatch) -> list[Shared]:
    """Return, for each segment, its words as keys and its tokens as queries.

    The first separator and all tokens after it belong to the second segment, all before to the
    first.
    """
    in_second = np.cumsum(batch.separators, axis=1) > 0
    first_words, second_words = (batch.segments == segment for segment in (0, 1))
    # an example needs words in both segments and a separator between them to have a block score
    paired = first_words.any(axis=1, keepdims=True) & second_words.any(axis=1, keepdims=True)
    paired &= ~(second_words & ~in_second).any(axis=1, keepdims=True)
    queries = batch.real & paired
    return [
        Shared(queries & ~in_second, first_words),
        Shared(queries & in_second, second_words),
    ]


# Words of some kind


def punctuation_roles(options: Options, context: Context) -> Iterator[Role]:
    """Yield the punctuation role. Raises CorpusError for a corpus without parts of speech."""
    if all(upos == MISSING for sentence in context.sentences for upos in sentence.upos):
        raise CorpusError(
            "no word of the corpus has a part of speech (UPOS), which the role punctuation needs; "
            "remove the role from `roles`, or give a treebank with that column"
        )
    marks = "punctuation marks"
    sieve = Sets(find_marks, WORDS)
    yield Role("punctuation", unit="words", words="punctuation", needs=marks, sieve=sieve)


def find_marks(batch: PaddedBatch) -> list[Shared]:
    """Find punctuation marks as the keys of all words."""
    marks = [  # the last: no word
        np.append(marks_in(example), False)[words]
        for example, words in zip(batch.examples, batch.words, strict=True)
    ]
    return [Shared(batch.in_words, np.stack(marks))]


def marks_in(example: EncodedExample) -> BoolArray:
    """Tell of each word (W,) whether it is punctuation."""
    return np.array([mark for marks in map(marks_of, example.sentences) for mark in marks], bool)


def marks_of(sentence: Sentence) -> list[bool]:
    """Tell of each word whether it is punctuation: by its part of speech, else its characters."""
    return [
        upos == "PUNCT" if upos != MISSING else all(category(c).startswith("P") for c in word)
        for word, upos in zip(sentence.words, sentence.upos, strict=True)
    ]


# The rarest word of a sentence

FREQUENT = 500
"""Number of most frequent words that are not rare; a sentence of them alone has no rare word."""


@dataclass(frozen=True, kw_only=True)
class FrequencyOptions(Options):
    """Options that choose the source of word frequencies."""

    title: ClassVar[str] = "Roles"

    frequencies: Annotated[str | None, Convert(path_text), OnlyFor("rare")] = None
    """File of word frequencies, for rare words: a word, a tab and its count in each line; left out:
    those of the corpus.

    Words that are not in the file count as the
    rarest; upper and lower case are the same.
    """


def count_words(options: FrequencyOptions, sentences: Iterable[Sentence]) -> Counter[str]:
    """Count words without case: read the file of the options, or count the sentences.

    Raises CorpusError for a file that cannot be read.
    """
    if options.frequencies is not None:
        return read_frequencies(Path(options.frequencies))
    return Counter(word.casefold() for sentence in sentences for word in sentence.words)


def read_frequencies(file: Path) -> Counter[str]:
    """Read counts by word from a file. Raises CorpusError that names the file and the line."""
    counts: Counter[str] = Counter()
    for number, line in enumerate(read_lines(file), start=1):
        word, _, count = line.rpartition("\t")
        times = whole_number(count.strip())
        if not word or times is None:
            raise CorpusError(
                f"{file}, line {number}: {shortened(line)!r} is not a word, a tab and a count; "
                "correct the line"
            )
        counts[word.casefold()] += times
    return counts


def rare_roles(options: FrequencyOptions, context: Context) -> Iterator[Role]:
    """Yield the role of the least frequent word of a sentence (Voita et al. 2019).

    Raises CorpusError for frequencies that cannot be read.
    """
    counts = count_words(options, context.sentences)
    source = "of the corpus"
    if options.frequencies:
        lines = "\n".join(f"{word}\t{count}" for word, count in sorted(counts.items()))
        source = blake2b(lines.encode(), digest_size=8).hexdigest()
    yield Role(
        "rare",
        unit="words",
        words="the rarest word of the sentence",
        needs=f"sentences with a word beyond the {FREQUENT} most frequent",
        meaning={"frequencies": source},
        sieve=Sets(partial(sets_of_sentences, find=find_rarest(counts)), WORDS),
    )


def find_rarest(counts: Counter[str]) -> Callable[[Sentence], tuple[int, ...]]:
    """Return a finder of the place of a sentence's rarest word, the first of equally rare ones.

    It finds none if all words of the sentence are frequent.
    """
    frequent = {word for word, _ in counts.most_common(FREQUENT)}

    def find(sentence: Sentence) -> tuple[int, ...]:
        words = [word.casefold() for word in sentence.words]
        place = min(range(len(words)), key=lambda k: counts.get(words[k], 0))
        return () if words[place] in frequent else (place,)

    return find


# Quantities that describe any head and are never tested; none depends on the score


@dataclass(frozen=True)
class RowQuantity(Sieve):
    """Mean over rows of the quantity ``name`` of a layer, each row weighted by ``weigh``."""

    name: str
    weigh: Callable[[Scope], FloatArray]

    def readout(
        self, alike: Sequence[RowQuantity], scope: Scope, key_sets: KeySets
    ) -> SieveReadout:
        """Find the weights of all rows."""
        weights = self.weigh(scope)
        counts = (weights > 0).sum(axis=1)[:, None]
        limits = np.repeat(np.array([0, np.nan, np.nan], dtype=np.float32), scope.batch.size)
        return SieveReadout(
            function=_by_rows,
            arrays=(self.name, divide(weights, counts).astype(np.float32), ~scope.batch.in_words),
            limits=limits.reshape(3, -1, 1),
            counts=counts,
        )


def _by_rows(layer: Layer, name: str, weights: Array, barred: Array) -> Array:
    """Return sums over rows under ``weights`` (B, N); keys ``barred`` (B, N) are no candidates."""
    rows = layer.largest(barred) if name == "largest" else getattr(layer, name)
    return (rows * weights[:, None]).sum(-1, keepdims=True)


def _of_words(scope: Scope) -> FloatArray:
    return (scope.batch.in_words & (scope.row_lengths > 0)).astype(np.float64)


def _of_rows(scope: Scope) -> FloatArray:
    return (scope.batch.real & (scope.row_lengths > 0)).astype(np.float64)


def _of_rows_within(scope: Scope) -> FloatArray:
    """Between two sequences there is no distance in tokens."""
    return _of_rows(scope) * (not scope.reach.is_across)


def _of_shares(scope: Scope) -> FloatArray:
    return divide(scope.batch.real, np.log(np.maximum(scope.row_lengths, 1)))


# Roles that are the same for all options and corpora


def _tokens(name: str, batch: PaddedBatch) -> list[Shared]:
    return [Shared(batch.real, getattr(batch, name))]


SELF = (Role("self", words="the token itself", sieve=Offsets(0, 0)),)
"""The token itself."""
DELIMITERS = (
    Role("delimiter", words="special tokens", sieve=Sets(partial(_tokens, "special"))),
    Role("delimiter:cls", words="[CLS]", sieve=Sets(partial(_tokens, "classifier"))),
    Role("delimiter:sep", words="[SEP]", sieve=Sets(partial(_tokens, "separators"))),
)
"""Special tokens: all, the first, or separators."""
CONFIDENCE = (
    Role(
        "confidence",
        words="largest weight of a row",
        is_described=True,
        sieve=RowQuantity("largest", _of_words),
    ),
)
"""The mean of the largest weights of rows, without special tokens (Voita et al. 2019)."""
ENTROPIES = (
    Role(
        "entropy",
        words="entropy of a row",
        is_described=True,
        sieve=RowQuantity("entropies", _of_rows),
    ),
    Role(
        "entropy:share",
        words="entropy of a row, as a share of the largest",
        is_described=True,
        sieve=RowQuantity("entropies", _of_shares),
    ),
)
"""The mean entropy of rows in nats, and as a share of that of a uniform row."""
DISTANCE = (
    Role(
        "distance",
        words="distance to what is attended to",
        is_described=True,
        sieve=RowQuantity("distances", _of_rows_within),
    ),
)
"""The mean distance of keys in tokens, weighted by the row."""
