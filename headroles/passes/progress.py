"""How much of a round of work is done."""

from __future__ import annotations

from headroles.passes.options import OnProgress


class Progress:
    """Tells how much is done of ``total``; what is done again where memory ran out counts once."""

    def __init__(self, on_progress: OnProgress | None, total: int) -> None:
        self._on_progress, self._total = on_progress, total
        self._done = 0

    def __call__(self, done: float) -> None:
        """So much is done, if it was not said before."""
        self._done = max(self._done, int(done))
        if self._on_progress is not None:
            self._on_progress(self._done, self._total)
