"""Shares of a corpus: its windows, dealt out to parts and to processes, the last ones divided.

Scores of an example depend, in their last bits, on the batch that it runs in. So the batches of a
window are those of a run over the whole corpus, whoever runs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from headroles.scoring.scores import HeadScores

if TYPE_CHECKING:
    from headroles.scoring.windows import Window


@dataclass(frozen=True)
class Share:
    """Batches of a window that are scored together: all, or some of a divided window.

    ``divisions`` are pairs (first, step): of the batches, every ``step``-th from ``first`` on, of
    those again, and so on.
    """

    window: Window
    divisions: tuple[tuple[int, int], ...] = ()

    @property
    def name(self) -> str:
        """Name among saved shares: the number of the window, and of its divisions."""
        numbers = (f"{first + 1}of{step}" for first, step in self.divisions)
        return "-".join([str(self.window.number), *numbers])

    @property
    def is_first(self) -> bool:
        """Whether this is the whole window, or the first share of it, which has its counts."""
        return not any(first for first, _ in self.divisions)

    def divided(self, n: int) -> list[Share]:
        """Divide by ``n``; the whole share for 1."""
        if n == 1:
            return [self]
        return [replace(self, divisions=(*self.divisions, (k, n))) for k in range(n)]

    def batches_of(self, batches: Sequence[list[int]]) -> list[list[int]]:
        """Return the batches of the share, of all those of its window.

        Windows begin with different shares, since small ones have fewer batches than takers.
        """
        some = list(batches)
        for first, step in self.divisions:
            some = some[(first - self.window.number) % step :: step]
        return some

    def places(self, batches: Sequence[list[int]]) -> list[int]:
        """Return the places of its examples among all of the window, in ascending order."""
        return sorted(chain.from_iterable(self.batches_of(batches)))


def deal(shares: Iterator[Share], n_takers: int) -> Iterator[tuple[Share, list[Share | None]]]:
    """Yield one share after the other with what each taker gets of it.

    Each share goes to one taker, in turn; the last ones, which may be too few for all, are divided
    among all takers.
    """
    waiting: list[Share] = []
    for share in shares:
        if len(waiting) == n_takers:
            for taker, whole in enumerate(waiting):
                yield whole, [whole if k == taker else None for k in range(n_takers)]
            waiting = []
        waiting.append(share)
    for share in waiting:
        yield share, [*share.divided(n_takers)]


def put_together(parts: Sequence[HeadScores], places: Sequence[Sequence[int]]) -> HeadScores:
    """Join the scores of shares of one window, whose examples have these ``places`` in it."""
    first, *others = parts
    if not others:
        return first
    joined = HeadScores.joined(parts, first.record.plus(*(part.record for part in others)))
    return joined.select(np.argsort(np.concatenate([np.array(rows, int) for rows in places])))
