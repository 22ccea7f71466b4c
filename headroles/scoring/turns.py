"""Scoring of one window by several models in turns, with the time that each takes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from headroles.corpus import Example
from headroles.scoring.block_scoring import Launched, LaunchedBlock
from headroles.scoring.blocks import ScoreBlock
from headroles.scoring.pipeline import PreparedWindow, WindowScorer
from headroles.scoring.windows import Window

Clock = Callable[[], float]


def score_in_turns(
    scorers: Sequence[WindowScorer],
    window: Window,
    examples: list[Example],
    clock: Clock,
) -> list[tuple[ScoreBlock | None, float]]:
    """Return the scores of a window from each scorer, with the seconds that its model took.

    The scorers take turns batch by batch, each begins every second turn, so that what slows the
    machine down slows all of them. The shortest batch, run before, warms up and does not count.
    """
    turns = [_Turns(scorer, scorer.prepare(window, examples), clock) for scorer in scorers]
    for one in turns:
        one.warm_up()
    unfinished = turns
    while unfinished:
        unfinished = [one for one in unfinished if one.take()][::-1]
    return [(one.scores(), one.seconds) for one in turns]


class _Turns:
    """The batches of a window, of which one scorer runs one at each of its turns."""

    def __init__(self, scorer: WindowScorer, prepared: PreparedWindow, clock: Clock) -> None:
        self._scorer, self._prepared, self._clock = scorer, prepared, clock
        self._read: list[Launched] = []
        self._coming: Iterator[Launched] = iter(())
        if prepared.block is not None:
            self._coming = scorer.scorer.run(prepared.block)
        self.seconds = 0.0

    def warm_up(self) -> None:
        """Run the shortest batch."""
        block = self._prepared.block
        if block is not None:
            deque(self._scorer.scorer.run(replace(block, batches=[*block.batches][-1:])), maxlen=0)

    def take(self) -> bool:
        """Run the next batch and wait for its scores; False if there is none."""
        start = self._clock()
        launched = next(self._coming, None)
        if launched is None:
            return False
        launched[1]()
        self.seconds += self._clock() - start
        self._read.append(launched)
        return True

    def scores(self) -> ScoreBlock | None:
        """Return the scores of the window, once all batches have run; None without examples."""
        block = self._prepared.block
        launched = None if block is None else LaunchedBlock(block.examples, self._read)
        return self._scorer.fetch(self._prepared, launched).block
