"""Among which keys the first choice of a query is looked for.

The first choice is the key that gets the most attention of a row, the first of several. A role that
speaks of words reads it between words: attention to a word is the sum over its pieces, attention
from a word the mean over its pieces (Clark et al. 2019), and the word itself is no candidate. One
that speaks of tokens leaves out special tokens, as queries and as keys (Voita et al. 2019); the
token itself is a candidate. Where the sieve is made of special tokens, every token is.

By columns it is the other way round: the first choice of a word is what attends most to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headroles.encoding import IntArray
from headroles.roles.batch import Batch, Scope
from headroles.roles.rows import BoolArray, FloatArray

EVERY, TOKENS, WORDS = "every token", "tokens of words", "words"
COLUMNS = "words that attend"


@dataclass(frozen=True)
class Candidates:
    """What it takes to find the first choices of B examples, of N tokens and up to W words.

    ``barred`` (B, N) tokens are no words. ``starts`` (B, W) is the first piece of each word that
    has pieces, ``words`` (B, N) the place of each token's word among them, both 0 where there is
    none; ``of_words`` (B, N, W) is 1 where a token is a piece of a word.
    """

    barred: BoolArray
    starts: IntArray
    words: IntArray
    of_words: FloatArray


def find_candidates(batch: Batch) -> Candidates:
    """The candidates of a batch."""
    places = batch.word_places
    example, token = np.nonzero(batch.first_pieces)
    n_words = max(1, int(places.max(initial=0)) + 1)
    starts = np.zeros((batch.size, n_words), dtype=np.int64)
    starts[example, places[example, token]] = token
    of_words = np.zeros((batch.size, batch.width, n_words), dtype=np.float32)
    example, token = np.nonzero(places >= 0)
    of_words[example, token, places[example, token]] = 1
    return Candidates(~batch.in_words, starts, np.maximum(places, 0), of_words)


def among_in(scope: Scope, among: str) -> str | None:
    """What a part reads: choices ``among`` candidates if that is the score, else attention."""
    return among if scope.score.of_first_choice else None


def queries_among(batch: Batch, among: str) -> BoolArray:
    """(B, N): the queries whose choices are read; that of a word stands at its first piece."""
    if among in (WORDS, COLUMNS):
        return batch.first_pieces
    return batch.real if among == EVERY else batch.in_words
