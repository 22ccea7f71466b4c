"""Examples side by side, padded to one width: the batches that sieves are found in.

The first choice is the key with the most attention in a row; ties go to the first. Roles about
words compare words: attention to a word is the sum over its pieces, attention from a word the mean
over its pieces (Clark et al. 2019), and the word itself is not a candidate. Roles about tokens
exclude special tokens as queries and as keys (Voita et al. 2019); the token itself is a candidate.
If the sieve consists of special tokens, every token is a candidate.

By columns, the direction is reversed: the first choice of a word is the word that attends most to
it.

Most arcs are short, so a head that always looks one word back finds many governors. A claim that a
head knows syntax has to state how much better it does than the best fixed offset (Voita et al.
2019; Clark et al. 2019).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from headroles.arrays import BoolArray, Float32Array, IntArray
from headroles.corpus import Sentence
from headroles.encoding import SPECIAL, EncodedExample, pad
from headroles.reach import SOURCE, TARGET, Reach
from headroles.roles.score import RowValues, Score

T = TypeVar("T")

EVERY, TOKENS_OF_WORDS, WORDS = "every token", "tokens of words", "words"
ATTENDING = "words that attend"
FARTHEST = 5
OFFSETS = tuple(k for k in range(-FARTHEST, FARTHEST + 1) if k)
"""Offsets in words that are tried."""
OFFSETS_ACROSS = tuple(range(-FARTHEST, FARTHEST))
"""As many offsets from the same part of a source, which is one of them."""
PADDING = -2  # beside the segments 0, 1 and SPECIAL


@dataclass(frozen=True, kw_only=True)
class Cached:
    """Base of settings that keep the results of functions of them."""

    _results: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def of(self, find: Callable[..., T], *arguments: Hashable) -> T:
        """Return ``find(self, *arguments)``, computed once and then cached."""
        key = (find, *arguments)
        if key not in self._results:
            self._results[key] = find(self, *arguments)
        result: T = self._results[key]
        return result


@dataclass(frozen=True)
class PaddedBatch(Cached):
    """B examples padded to N tokens."""

    examples: Sequence[EncodedExample]

    @property
    def size(self) -> int:
        """Number of examples, B."""
        return len(self.examples)

    @property
    def width(self) -> int:
        """Number of tokens of the longest example, N."""
        return int(self.segments.shape[1])

    @cached_property
    def segments(self) -> IntArray:
        """(B, N): segment of each token, 0, 1 or ``SPECIAL``; ``PADDING`` beyond the end."""
        return pad([example.segments for example in self.examples], PADDING)

    @cached_property
    def real(self) -> BoolArray:
        """(B, N): True for tokens, False for padding."""
        return np.asarray(self.segments != PADDING)

    @cached_property
    def lengths(self) -> IntArray:
        """(B,): number of tokens of each example."""
        return np.array([len(example) for example in self.examples])

    def part(self, sequence: int) -> tuple[IntArray, IntArray]:
        """Return, as (B, 1), the first token of a sequence and the one after its last.

        An example of one sequence is a source.
        """
        lengths = self.lengths
        middle = [
            n if example.n_source is None else example.n_source
            for n, example in zip(lengths, self.examples, strict=True)
        ]
        starts = np.array(middle)[:, None]
        return (starts, lengths[:, None]) if sequence == TARGET else (0 * starts, starts)

    @cached_property
    def special(self) -> BoolArray:
        """(B, N): True for special tokens, which the tokenizer added."""
        return np.asarray(self.segments == SPECIAL)

    @cached_property
    def firsts(self) -> BoolArray:
        """(B, N): True for the first token of each sequence."""
        place, (start, _) = np.arange(self.width), self.part(TARGET)
        return np.asarray((place == 0) | ((place == start) & self.real))

    @cached_property
    def classifier(self) -> BoolArray:
        """(B, N): True for the first token of a sequence, if it is special."""
        return self.special & self.firsts

    @cached_property
    def words_before(self) -> IntArray:
        """(B,): number of words of the first sentence, after which those of a target count."""
        return np.array([len(example.sentences[0].words) for example in self.examples])

    @cached_property
    def n_words(self) -> IntArray:
        """(B,): number of words of each example."""
        return np.array([len(example.starts) for example in self.examples])

    @cached_property
    def in_words(self) -> BoolArray:
        """(B, N): True for pieces of words."""
        return np.asarray(self.words >= 0)

    @cached_property
    def words(self) -> IntArray:
        """(B, N): number of each token's word in its example, -1 for tokens outside of words."""
        return pad([example.words for example in self.examples], -1)

    @cached_property
    def first_pieces(self) -> BoolArray:
        """(B, N): True for the first piece of each word."""
        before = np.roll(self.words, 1, axis=1)
        before[:, 0] = -1
        return np.asarray(self.in_words & (self.words != before))

    @cached_property
    def word_ranks(self) -> IntArray:
        """(B, N): rank of each token's word among the words with pieces, -1 outside of words."""
        return np.where(self.in_words, np.cumsum(self.first_pieces, axis=1) - 1, -1)

    @cached_property
    def n_pieces(self) -> IntArray:
        """(B, N): number of pieces of each token's word, 0 outside of words."""
        return self.count_in_words(self.in_words) * self.in_words

    def count_in_words(self, tokens: BoolArray) -> IntArray:
        """Count, of each token's word, the pieces that are among ``tokens`` (B, N)."""
        n_words = int(self.word_ranks.max(initial=0)) + 1
        ids = np.arange(self.size)[:, None] * n_words + np.maximum(self.word_ranks, 0)
        pieces = np.bincount(ids[tokens & self.in_words], minlength=self.size * n_words)
        return np.asarray(pieces[ids])

    @cached_property
    def separators(self) -> BoolArray:
        """(B, N): True for special tokens other than the first."""
        return self.special & ~self.classifier


@dataclass(frozen=True)
class Scope(Cached):
    """The setting that sieves are read in: a batch, the reach of a layer's attention, a score.

    Every query sees one span of keys. Keys beyond it belong to no row and no sieve.
    """

    batch: PaddedBatch
    reach: Reach
    score: Score

    @cached_property
    def spans(self) -> tuple[IntArray, IntArray]:
        """(B, N): the first key that each query can attend to, and the one after the last."""
        width, (low, high) = self.batch.width, self.batch.part(self.reach.keys)
        back, ahead = (2 * width if limit is None else limit for limit in self.reach[:2])
        firsts = np.clip(self.home - back, low, high)
        ends = np.clip(self.home + ahead + 1, firsts, high)
        first, end = self.batch.part(self.reach.queries)
        # tokens of the other sequence see nothing
        attends = (np.arange(width) >= first) & ((np.arange(width) < end) | self.is_single)
        return firsts, np.where(attends, ends, firsts)

    @cached_property
    def seen(self) -> BoolArray:
        """(B, N, N): True where a query sees a key."""
        place, (firsts, ends) = np.arange(self.batch.width), self.spans
        return np.asarray((place >= firsts[:, :, None]) & (place < ends[:, :, None]))

    @cached_property
    def home(self) -> IntArray:
        """(B, N): the key at the place of each query in its own sequence."""
        moved = self.batch.part(self.reach.keys)[0] - self.batch.part(self.reach.queries)[0]
        return np.arange(self.batch.width) + moved

    @property
    def is_single(self) -> bool:
        """Whether examples have one sequence."""
        return self.reach.queries == self.reach.keys == SOURCE

    def sees(self, examples: IntArray, queries: IntArray, keys: IntArray) -> BoolArray:
        """Tell for each pair of a query and a key of an example whether it is within reach."""
        firsts, ends = self.spans
        return np.asarray((keys >= firsts[examples, queries]) & (keys < ends[examples, queries]))

    def sees_words(self, examples: IntArray, queries: IntArray, keys: IntArray) -> BoolArray:
        """Tell for pairs of words whether any piece of the query sees any piece of the key.

        ``queries`` and ``keys`` (L, 2) are first pieces and numbers of pieces.
        """
        firsts, ends = self.spans
        (first, size), (key, n_pieces) = queries.T, keys.T
        is_before_end = key < ends[examples, first + size - 1]
        return np.asarray(is_before_end & (key + n_pieces > firsts[examples, first]))

    @cached_property
    def row_lengths(self) -> IntArray:
        """(B, N): number of keys that each query can attend to."""
        return self.count(self.batch.real)

    def count(self, keys: BoolArray, n_queries: IntArray | int = 1) -> IntArray:
        """Return, as (B, N), how many of ``keys`` (B, N) each query can attend to.

        With ``n_queries`` (B, N), as many queries from each on can attend to them together.
        """
        totals: IntArray = np.cumsum(keys, axis=1)
        totals = np.concatenate([np.zeros_like(totals[:, :1]), totals], axis=1)
        (firsts, ends), width = self.spans, self.batch.width
        last_queries = np.minimum(np.arange(width) + n_queries - 1, width - 1)
        ends = np.take_along_axis(ends, np.broadcast_to(last_queries, ends.shape), axis=1)
        counts: IntArray = np.take_along_axis(totals, ends, axis=1)
        return counts - np.take_along_axis(totals, firsts, axis=1)

    def row_values(self, sizes: IntArray) -> RowValues:
        """Return the coefficients of all rows, given the ``sizes`` (B, N) of their sieves."""
        return self.score.row_values(self.row_lengths, sizes)


def placed_sentences(example: EncodedExample) -> Iterator[tuple[int, Sentence]]:
    """Yield each sentence of an example with the number of words before it."""
    before = 0
    for sentence in example.sentences:
        yield before, sentence
        before += len(sentence.words)


@dataclass(frozen=True)
class Candidates:
    """Arrays for finding the first choices of B examples with N tokens and up to W words.

    ``barred`` (B, N) marks tokens outside of words. ``starts`` (B, W) is the first piece of each
    word with pieces, ``n_pieces`` (B, W) the number of its pieces, ``words`` (B, N) the place of
    each token's word among these words; all are 0 where undefined. ``extra_pieces`` has the
    examples, tokens and words (3, P) of all second pieces, then of all third ones, and so on.
    """

    barred: BoolArray
    starts: IntArray
    words: IntArray
    n_pieces: Float32Array
    extra_pieces: tuple[IntArray, ...]


def find_candidates(batch: PaddedBatch) -> Candidates:
    """Find the candidates of a batch."""
    columns = batch.word_ranks
    example, token = np.nonzero(batch.first_pieces)
    n_words = max(1, int(columns.max(initial=0)) + 1)
    word = columns[example, token]
    starts = np.zeros((batch.size, n_words), dtype=np.int64)
    starts[example, word] = token
    n_pieces = np.zeros((batch.size, n_words), dtype=np.float32)
    n_pieces[example, word] = batch.n_pieces[example, token]
    example, token = np.nonzero(batch.in_words)
    word = columns[example, token]
    rank = token - starts[example, word]
    pieces = np.stack([example, token, word])
    extra_pieces = tuple(pieces[:, rank == k] for k in range(1, 1 + int(rank.max(initial=0))))
    return Candidates(~batch.in_words, starts, np.maximum(columns, 0), n_pieces, extra_pieces)
