"""First choices: the candidates among which they are made, and how often a fixed offset hits.

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

from dataclasses import dataclass

import numpy as np

from headroles.arrays import BoolArray, Float32Array, IntArray
from headroles.roles.batch import PaddedBatch

EVERY, TOKENS, WORDS = "every token", "tokens of words", "words"
ATTENDING = "words that attend"
FARTHEST = 5
OFFSETS = tuple(k for k in range(-FARTHEST, FARTHEST + 1) if k)
"""Offsets in words that are tried."""


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
    places = batch.word_places
    example, token = np.nonzero(batch.first_pieces)
    n_words = max(1, int(places.max(initial=0)) + 1)
    word = places[example, token]
    starts = np.zeros((batch.size, n_words), dtype=np.int64)
    starts[example, word] = token
    n_pieces = np.zeros((batch.size, n_words), dtype=np.float32)
    n_pieces[example, word] = batch.n_pieces[example, token]
    example, token = np.nonzero(batch.in_words)
    word = places[example, token]
    rank = token - starts[example, word]
    pieces = np.stack([example, token, word])
    extra_pieces = tuple(pieces[:, rank == k] for k in range(1, 1 + int(rank.max(initial=0))))
    return Candidates(~batch.in_words, starts, np.maximum(places, 0), n_pieces, extra_pieces)


def queries_among(batch: PaddedBatch, among: str) -> BoolArray:
    """Mark as (B, N) the queries whose choices are read; a word's choice is at its first piece."""
    if among in (WORDS, ATTENDING):
        return batch.first_pieces
    return batch.real if among == EVERY else batch.in_words


def find_offset_shares(
    batch: PaddedBatch, owners: IntArray, queries: IntArray, keys: IntArray, counted: BoolArray
) -> Float32Array:
    """Return, as (B, r, offsets), the share of links whose other end is at each of `OFFSETS`.

    The L links are given by ``owners`` (their examples), ``queries`` and ``keys`` (one piece of
    each end), all (L,); ``counted`` (L, r) tells for which roles each link counts. The share is NaN
    without links.
    """
    n_roles = counted.shape[1]
    link, role = np.nonzero(counted)
    totals = np.zeros((batch.size, n_roles))
    np.add.at(totals, (owners[link], role), 1)
    hits = np.zeros((batch.size, n_roles, 2 * FARTHEST + 1))
    offsets = (batch.words[owners, keys] - batch.words[owners, queries])[link]
    near = np.abs(offsets) <= FARTHEST
    np.add.at(hits, (owners[link[near]], role[near], offsets[near] + FARTHEST), 1)
    with np.errstate(invalid="ignore"):  # 0 / 0 gives the NaN that is wanted
        shares = hits[:, :, [k + FARTHEST for k in OFFSETS]] / totals[:, :, None]
    return shares.astype(np.float32)
