"""Tokens that stand earlier in the same sequence: the first one, copies, and what followed copies.

Heads of decoders are known by these targets; all of them are defined for encoders as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from headroles.arrays import BoolArray
from headroles.encoding import pad
from headroles.roles.batch import TOKENS_OF_WORDS, PaddedBatch, Scope
from headroles.roles.pairs import by_sum
from headroles.roles.role import Role
from headroles.roles.score import divide
from headroles.roles.sieve import KeySets, Sets, Shared, Sieve, SieveReadout
from headroles.roles.weights import PairsOfExamples, Weights


def first_token(batch: PaddedBatch) -> list[Shared]:
    """Find the first token of each sequence as the key of all."""
    return [Shared(batch.real, batch.firsts)]


def copies(batch: PaddedBatch) -> PairsOfExamples:
    """Find the pairs of a token of a word and an earlier copy of it."""
    return PairsOfExamples(*np.nonzero(_has_copies(batch)))


def after_copies(batch: PaddedBatch) -> PairsOfExamples:
    """Find the pairs of a token of a word and the token of a word after an earlier copy of it."""
    has_copies = _has_copies(batch)
    after = np.zeros_like(has_copies)
    after[:, :, 1:] = has_copies[:, :, :-1]
    place = np.arange(batch.width)
    # where a token follows its copy at once, the token after the copy is itself
    after &= batch.in_words[:, None] & (place < place[:, None])
    return PairsOfExamples(*np.nonzero(after))


def _has_copies(batch: PaddedBatch) -> BoolArray:
    """Tell for each query (B, N, N) which earlier keys are the same token."""
    ids = pad([example.input_ids for example in batch.examples], -1)
    place = np.arange(batch.width)
    same = (ids[:, :, None] == ids[:, None]) & (place < place[:, None])
    same &= np.array([example.has_text for example in batch.examples])[:, None, None]
    return np.asarray(same & batch.in_words[:, :, None] & batch.in_words[:, None])


@dataclass(frozen=True)
class PairsOfTokens(Sieve):
    """Sieve of the tokens that ``find`` pairs with each query; others are no queries."""

    find: Callable[[PaddedBatch], PairsOfExamples]

    def readout(
        self, alike: Sequence[PairsOfTokens], scope: Scope, key_sets: KeySets
    ) -> SieveReadout:
        """Find the weights of the pairs within reach."""
        batch, every = scope.batch, scope.batch.of(self.find)
        seen = np.flatnonzero(scope.sees(*every))
        pairs = PairsOfExamples(*(ends[seen] for ends in every))
        sizes = np.zeros((batch.size, batch.width), dtype=np.int64)
        np.add.at(sizes, (pairs.owners, pairs.queries), 1)
        rows = scope.row_values(sizes)
        counts = rows.scored.sum(axis=1)
        weights = divide(rows.slopes * rows.scored, counts[:, None])
        limits = divide((rows.limits * rows.scored).sum(axis=-1), counts)[..., None]
        return SieveReadout(
            function=by_sum,
            arrays=pairs.padded(batch, Weights.for_one_role(weights[pairs.owners, pairs.queries])),
            limits=limits.astype(np.float32),
            counts=counts[:, None],
            among=TOKENS_OF_WORDS,
        )

    def cells(self, scope: Scope) -> BoolArray:
        """Mark the pairs."""
        cells = super().cells(scope)
        pairs = scope.batch.of(self.find)
        cells[pairs.queries, pairs.keys] = True
        return cells


FIRST = (Role("first", words="the first token", sieve=Sets(first_token)),)
"""The first token, where many heads put the attention that they have no use for."""
DUPLICATE = (
    Role(
        "duplicate",
        words="an earlier copy of the token",
        needs="tokens that occur twice",
        sieve=PairsOfTokens(copies),
    ),
)
"""Earlier copies of the token."""
INDUCTION = (
    Role(
        "induction",
        words="what followed an earlier copy",
        needs="tokens that occur twice",
        sieve=PairsOfTokens(after_copies),
    ),
)
"""The tokens after earlier copies (Olsson et al. 2022)."""
