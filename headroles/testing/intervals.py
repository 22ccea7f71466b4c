"""Confidence intervals of the means of hypotheses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headroles import inference
from headroles.errors import UsageError
from headroles.inference import Intervals
from headroles.testing.answers import NO, YES
from headroles.testing.catalogue import FCR, INTERVALS, SIMULTANEOUS
from headroles.testing.hypotheses import Hypotheses
from headroles.testing.options import TestOptions


def find_intervals(
    hypotheses: Hypotheses, options: TestOptions, answers: NDArray[np.str_] | None = None
) -> Intervals:
    """Compute confidence intervals of the means, at level 1 - alpha.

    Intervals adjusted for selection need the ``answers`` (T,) by which tests were selected.
    """
    if options.interval == FCR:
        if answers is None:
            raise UsageError(
                f"interval {FCR!r} needs tests with answers; pass another interval (--interval)"
            )
        return _intervals_of_selected(hypotheses, options.alpha, answers)
    asked = INTERVALS[options.interval]
    resampling = {"n_resamples": options.resamples, "seed": options.seed}
    together = options.interval == SIMULTANEOUS
    low, high = np.full((2, hypotheses.n_tests), np.nan)
    for columns in hypotheses.columns_by_family if together else hypotheses.sample.column_slices:
        found = asked.find(
            hypotheses.sample.take(columns),
            confidence=1 - options.alpha,
            **(resampling if asked.is_resampled else {}),
        )
        low[columns], high[columns] = found.ci_low, found.ci_high
    return Intervals(low, high)


def _intervals_of_selected(
    hypotheses: Hypotheses, alpha: float, answers: NDArray[np.str_]
) -> Intervals:
    """Compute t intervals of tests with an answer; on average at most ``alpha`` of them miss.

    If R of m tests of a family are selected by having one answer, their intervals have level 1 - R
    * alpha / m: the false coverage rate of Benjamini and Yekutieli (2005).
    """
    low, high = np.full((2, hypotheses.n_tests), np.nan)
    for columns in hypotheses.columns_by_family:
        for given in (YES, NO):
            selected = columns[(answers[columns] == given) & hypotheses.is_tested[columns]]
            if len(selected):
                share = len(selected) / hypotheses.is_tested[columns].sum()
                found = inference.t_interval(
                    hypotheses.sample.take(selected), confidence=1 - alpha * share
                )
                low[selected], high[selected] = found.ci_low, found.ci_high
    return Intervals(low, high)
