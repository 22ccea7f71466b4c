"""From adjusted p-values in both directions to an answer: yes, no, undecided, untestable."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headroles.errors import StatisticsError
from headroles.inference._columns import check_share

YES, NO, UNDECIDED, NO_ANSWER = ANSWERS = ("yes", "no", "undecided", "untestable")


def decide(p_above: ArrayLike, p_below: ArrayLike, alpha: float = 0.05) -> NDArray[np.str_]:
    """Answer for every test whether its mean is above the threshold.

    ``"yes"`` if the mean is shown to be above the threshold, ``"no"`` if it is shown to be below,
    ``"undecided"`` if the data show neither, ``"untestable"`` if a p-value is missing. Not to
    reject H0: mean <= threshold is no evidence for it, which is why "no" asks for a test too.

    A true mean can only be on one side, so a wrong answer can only come from one of the two
    directions, and each keeps the level of its own correction: family-wise error or false
    discovery rate at most alpha among the "yes", and at most alpha among the "no".

    Of m tests Benjamini-Hochberg keeps alpha * m0 / m in a direction of which m0 H0 are true. A
    mean that is not at the threshold makes one of its two H0 true, so that both directions together
    keep alpha, as the directional procedure of Benjamini and Yekutieli (2005) does.

    Args:
        p_above: (tests,) adjusted p-values of H1: mean > threshold.
        p_below: (tests,) adjusted p-values of H1: mean < threshold.
        alpha: level of each direction; p <= alpha rejects.

    Raises:
        StatisticsError: shapes that differ, p-values outside [0, 1], alpha outside (0, 1), or a
            test that is rejected in both directions.

    >>> decide([0.01, 0.9, 0.3, np.nan], [1.0, 0.02, 0.8, np.nan]).tolist()
    ['yes', 'no', 'undecided', 'untestable']
    """
    check_share(alpha, "alpha")
    above, below = np.asarray(p_above, dtype=np.float64), np.asarray(p_below, dtype=np.float64)
    if above.shape != below.shape:
        raise StatisticsError(
            f"p-values above have shape {above.shape} but those below {below.shape}"
        )
    if any(((p < 0) | (p > 1)).any() for p in (above, below)):
        raise StatisticsError("p-values must lie between 0 and 1")
    missing, yes, no = np.isnan(above) | np.isnan(below), above <= alpha, below <= alpha
    if (yes & no).any():
        first = int(np.flatnonzero(yes & no)[0])
        raise StatisticsError(
            f"test {first} is rejected in both directions; were p-values of the same data given?"
        )
    return np.select([missing, yes, no], [NO_ANSWER, YES, NO], default=UNDECIDED)
