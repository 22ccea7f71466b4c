"""Block heads: attention that stays in the own one of two sentences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headroles.options import Options
from headroles.roles.batch import Batch
from headroles.roles.candidates import TOKENS
from headroles.roles.key_sets import Evenness, RowWise, Shared
from headroles.roles.role import PAIRS, Context, Role
from headroles.roles.scores import BIAS, HIT

EVENNESS = "block:evenness"
THRESHOLD_OF_HITS = 0.9
"""About half of all words are in the own one of two sentences: a head that chooses among them at
random hits half of the time, and one that looks at what is near almost always."""


def roles(options: Options, context: Context) -> Iterator[Role]:
    """``block``, and beside it what tells the entropy in it from the attention in it.

    The bias score of ``block`` is published with each row times its entropy; ``block:ratio`` is
    without. Other scores leave the entropy out, and for ``excess`` how evenly a head spreads over
    the words of the sentence that it stays in is a measure of its own.
    """
    words = "words of the own sentence"
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
        evenness = "how evenly a head spreads over the own sentence"
        yield Role(EVENNESS, evenness, measure_of="block", sieve=Evenness(own_segment))


def own_segment(batch: Batch) -> list[Shared]:
    """The words of each segment as keys, and the tokens that belong to it as queries.

    The first separator and all after it belong to the second segment, all before to the first.
    """
    in_second = np.cumsum(batch.separators, axis=1) > 0
    first_words, second_words = (batch.segments == segment for segment in (0, 1))
    # without words in both, and a separator between them, there are no two segments to stay in
    paired = first_words.any(axis=1, keepdims=True) & second_words.any(axis=1, keepdims=True)
    paired &= ~(second_words & ~in_second).any(axis=1, keepdims=True)
    queries = batch.real & paired
    return [
        Shared(queries & ~in_second, first_words),
        Shared(queries & in_second, second_words),
    ]
