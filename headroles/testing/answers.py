"""p-values -> answers; where nothing varies the mean decides."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headroles.inference import DEGENERATE, NO, UNDECIDED, YES, decide, resolution_of
from headroles.testing.evidence import PValues
from headroles.testing.hypotheses import Hypotheses


def answer(
    hypotheses: Hypotheses, above: PValues, below: PValues, alpha: float
) -> NDArray[np.str_]:
    """Whether each mean is above its threshold: `decide`, or the mean where nothing varies.

    Betting needs no variance: where it tested such a column, the test decides.
    """
    tested = decide(above.adjusted, below.adjusted, alpha)
    untested = (hypotheses.moments.status == DEGENERATE) & np.isnan(above.adjusted)
    return np.where(untested, side_of(hypotheses), tested)


def side_of(hypotheses: Hypotheses) -> NDArray[np.str_]:
    """On which side of its threshold each mean lies: yes above, no below, undecided at it."""
    mean, threshold = hypotheses.moments.mean, hypotheses.threshold
    tolerance = hypotheses.rounding + resolution_of(hypotheses.sample.values) * np.abs(threshold)
    at_threshold = np.abs(mean - threshold) <= tolerance
    return np.select([at_threshold, mean > threshold], [UNDECIDED, YES], NO)


def differs(hypotheses: Hypotheses, two_sided: PValues, alpha: float) -> NDArray[np.bool_]:
    """Whether each mean was shown to differ from 0; where nothing varies the mean decides."""
    alike = hypotheses.moments.status == DEGENERATE
    by_mean = alike & (np.abs(hypotheses.moments.mean) > hypotheses.rounding)
    return np.asarray((two_sided.adjusted <= alpha) | by_mean)


def is_equivalent(
    hypotheses: Hypotheses, equivalence: PValues, margin: float, alpha: float
) -> NDArray[np.bool_]:
    """Whether each mean was shown to be near 0; where nothing varies the mean decides."""
    alike = hypotheses.moments.status == DEGENERATE
    by_mean = alike & (np.abs(hypotheses.moments.mean) < margin)
    return np.asarray((equivalence.adjusted <= alpha) | by_mean)
