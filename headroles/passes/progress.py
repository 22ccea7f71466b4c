"""Progress of work, in one round or several."""

from __future__ import annotations

from math import ceil

from headroles.passes.options import OnProgress


class Progress:
    """Report of the work done out of ``total``; work repeated for lack of memory counts once."""

    def __init__(self, on_progress: OnProgress | None, total: int) -> None:
        self._on_progress, self._total = on_progress, total
        self._done = 0

    def __call__(self, done: float) -> None:
        """Report ``done``, unless as much was reported before."""
        self._done = max(self._done, int(done))
        if self._on_progress is not None:
            self._on_progress(self._done, self._total)


class Rounds:
    """Report of several rounds of work as one, whose total is expected and may change."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self._on_progress = on_progress
        self._before = self._round = self._total = 0.0

    def expect(self, amount: float) -> None:
        """Expect that much work after the present round."""
        self._total = self._before + self._round + amount

    def start(self, amount: float) -> Progress:
        """Return the report of the next round, which has that much work."""
        self._before, self._round = self._before + self._round, amount
        self._total = max(self._total, self._before + amount)
        return Progress(self._report, ceil(amount))

    def _report(self, done: int, _: int) -> None:
        if self._on_progress is not None:
            self._on_progress(int(self._before + done), ceil(self._total))
