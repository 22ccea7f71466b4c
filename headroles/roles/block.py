"""Block heads: attention to words of the same sentence of a pair."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headroles.options import Options
from headroles.roles.batch import PaddedBatch
from headroles.roles.first_choices import TOKENS
from headroles.roles.key_sets import Evenness, RowWise, Shared
from headroles.roles.role import PAIRS, Context, Role
from headroles.roles.scores import BIAS, HIT

EVENNESS = "block:evenness"
THRESHOLD_OF_HITS = 0.9
"""Threshold of hits. About half of all words are in the sentence of the query, so a head that
chooses at random hits half of the time, and a head that looks at nearby words almost always.
"""


def roles(options: Options, context: Context) -> Iterator[Role]:
    """Yield ``block``, and roles that separate its two factors, attention and entropy.

    The published bias score of ``block`` multiplies each row by its entropy; ``block:ratio`` does
    not. Other scores do not use entropy. With ``excess``, a second measure says how evenly a head
    spreads over the words of the sentence.
    """
    words = "words of the same sentence"
    if context.score == BIAS:
        with_entropy = f"{words}, evenly (times entropy)"
        yield Role(
            "block", with_entropy, needs=PAIRS, sieve=RowWise(own_segment, times_entropy=True)
        )
        yield Role("block:ratio", words, needs=PAIRS, sieve=RowWise(own_segment))
    elif context.score == HIT:
        sieve = RowWise(own_segment, among=TOKENS)
        limits = {HIT.name: THRESHOLD_OF_HITS}
        yield Role("block", words, needs=PAIRS, thresholds=limits, sieve=sieve)
    else:
        yield Role("block", words, needs=PAIRS, sieve=RowWise(own_segment))
        evenness = "how evenly a head spreads over the same sentence"
        yield Role(EVENNESS, evenness, measure_of="block", sieve=Evenness(own_segment))


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
