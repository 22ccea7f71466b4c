"""Answers by betting while values come: after any part of them, at the cost of that part."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headroles.inference import Bounds, RunningBets, Sample
from headroles.testing.answers import answer
from headroles.testing.evidence import of_bets
from headroles.testing.hypotheses import FloatArray, IntArray, families_of
from headroles.testing.options import LevelOptions


class RunningAnswers:
    """Running answers: those of `find_p_values` by betting, and `answer`, for all values so far.

    They may be read after every part: betting keeps its level however often one looks. Columns that
    vary only by rounding are bet on too; such bets win and lose nothing.

    Args:
        threshold: (T,), as in `Hypotheses`.
        labels: (T,), as in `Hypotheses`.
        options: level, correction and family.
        n_population: as in `Hypotheses`; parts then come in the order of drawing.
    """

    def __init__(
        self,
        threshold: FloatArray,
        labels: IntArray,
        options: LevelOptions,
        n_population: int | None = None,
    ) -> None:
        self._bets = RunningBets(threshold, n_population)
        self._families = families_of(labels, options.family)
        self._options = options

    def add(
        self, values: NDArray[np.floating], bounds: Bounds, clusters: IntArray | None = None
    ) -> None:
        """Add values (examples, T) of new units, their bounds, and their clusters if any."""
        self._bets.add(Sample.of(values, clusters), bounds)

    def look(self) -> NDArray[np.str_]:
        """Return the answers (T,) so far."""
        above, below = (
            of_bets(self._bets.test(side).log_e, self._families, self._options)
            for side in ("greater", "less")
        )
        return answer(above, below, self._options.alpha)
