"""Progress of a round of work."""

from __future__ import annotations

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
