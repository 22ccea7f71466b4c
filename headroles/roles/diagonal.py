"""Contrasts of links between a source and a target, for cross-attention.

Most translations keep the order of words more or less, so a head that looks along the diagonal
finds many of the words that it should. The contrast with the distance subtracts from the attention
of every pair of pieces of a link the mean attention of the same head over its controls: pairs of a
word of the target and one of the source that are as many words apart, and that no link joins.

A head may also look for the nearest noun, or for the nearest of two equal words. The contrasts with
words of the same class (`headroles.roles.competitors`) measure distances along the diagonal: from
the word of the other text at the same part of the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from headroles.arrays import IntArray
from headroles.reach import SOURCE, TARGET
from headroles.role_names import BEYOND_OFFSET, NEAR, NEAR_BACK
from headroles.roles.batch import PaddedBatch, Scope
from headroles.roles.competitors import beyond_competitors
from headroles.roles.contrasts import contrast_readout, contrast_with
from headroles.roles.pairs import FindLinks, Pairs, find_pieces, find_weights
from headroles.roles.role import Role
from headroles.roles.score import divide
from headroles.roles.sieve import KeySets, SieveReadout
from headroles.roles.weights import PairsOfExamples, spread


def contrasts_across(role: Role, classes: str) -> Iterator[Role]:
    """Yield the contrasts of a role of links across: with the distance, and with competitors.

    ``classes`` names the column or feature that gives words their classes.
    """
    pairs = role.sieve
    assert isinstance(pairs, Pairs)
    yield contrast_with(
        role,
        BEYOND_OFFSET,
        words="distance",
        needs="other words at the offset of a link",
        sieve=BeyondDiagonal(pairs.find, pairs.labels, pairs.direction),
    )
    for contrast in (NEAR, NEAR_BACK):
        yield beyond_competitors(role, contrast, classes)


@dataclass(frozen=True)
class BeyondDiagonal(Pairs):
    """Contrast of links with words that are as many words apart and that no link joins."""

    def readout(self, alike: Sequence[Pairs], scope: Scope, key_sets: KeySets) -> SieveReadout:
        """Find the weights of all links with controls, and of their controls."""
        batch, pieces = scope.batch, scope.of(find_pieces, self.find)
        at, shares = scope.of(find_controls, self.find)
        of_links, of_controls = _cells(batch, pieces.at), _cells(batch, at)
        n_cells = 2 * batch.size * _most_words(batch)
        totals = np.bincount(of_controls, weights=shares, minlength=n_cells)
        is_scored = pieces.is_scored.copy()
        is_scored[pieces.links[totals[of_links] == 0]] = False
        weights, limits, counts = find_weights(alike, scope, pieces, is_scored)
        # the mean of a cell has the weights of all pairs of links in it
        taken = divide(weights.sums_by(of_links, n_cells), totals[:, None])
        return contrast_readout(
            batch,
            (pieces.at, weights),
            (at, spread(taken, of_controls, shares)),
            limits,
            counts,
        )


def _cells(batch: PaddedBatch, pairs: PairsOfExamples) -> IntArray:
    """Return the number of the cell of each pair: one for each example and offset in words."""
    owners, queries, keys = pairs
    places = batch.words[owners, queries] - batch.words_before[owners]
    offsets = batch.words[owners, keys] - places
    cells: IntArray = (2 * owners + 1) * _most_words(batch) + offsets
    return cells


def _most_words(batch: PaddedBatch) -> int:
    """Return the number of words of the longest example, which no offset reaches."""
    return max(len(example.starts) for example in batch.examples)


def find_controls(scope: Scope, find: FindLinks) -> tuple[PairsOfExamples, np.ndarray]:
    """Find the pairs of pieces of target and source words that no link joins, and their shares.

    Two words count once, however many pieces they have.
    """
    batch = scope.batch
    free = scope.seen & ~batch.of(find.joined)
    free &= (batch.segments == TARGET)[:, :, None] & (batch.segments == SOURCE)[:, None]
    at = PairsOfExamples(*np.nonzero(free))
    n_pieces = batch.n_pieces
    return at, 1 / (n_pieces[at.owners, at.queries] * n_pieces[at.owners, at.keys])
