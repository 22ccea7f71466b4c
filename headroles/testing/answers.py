"""Answers from tests, in any words; certified ones by betting."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headroles.errors import StatisticsError
from headroles.testing.catalogue import BETTING
from headroles.testing.evidence import PValues
from headroles.testing.options import TestOptions

YES, NO, UNDECIDED, UNTESTABLE = ANSWERS = ("yes", "no", "undecided", "untestable")
POSITIONAL = "positional"
"""Answer about a role of pairs of words: as much attention to any word at that distance."""
ROLE_ANSWERS = (YES, POSITIONAL, NO, UNDECIDED, UNTESTABLE)


def answers(
    significant: ArrayLike, direction: ArrayLike, words: tuple[str, str] = (YES, NO)
) -> NDArray[np.str_]:
    """Return the first word for each significant test (T,) above, the second for those below.

    The answer is ``"undecided"`` if a test is not significant, or ``direction`` is 0 or NaN.

    >>> answers([True, True, False], [2.0, -1.0, 3.0], ("worse", "better")).tolist()
    ['worse', 'better', 'undecided']
    """
    shown, side = np.asarray(significant, dtype=bool), np.asarray(direction)
    return np.select([shown & (side > 0), shown & (side < 0)], words, UNDECIDED)


def answer(above: PValues, below: PValues, alpha: float) -> NDArray[np.str_]:
    """Decide whether each mean is above its threshold, from tests in both directions.

    The answer is ``"yes"`` if the mean is shown to be above the threshold, ``"no"`` if it is shown
    to be below, ``"undecided"`` if the data show neither, ``"untestable"`` if a p-value is missing.
    Not rejecting H0: mean <= threshold is no evidence for H0, so that "no" needs a test too.

    A true mean is on one side only, so wrong answers come from one of the two directions only, and
    each direction keeps the level of its own correction: family-wise error or false discovery rate
    at most alpha among the "yes", and at most alpha among the "no".

    Of m tests, Benjamini-Hochberg keeps alpha * m0 / m in a direction in which m0 H0 are true. A
    mean that is not at the threshold makes only one of its two H0 true, so that both directions
    together keep alpha, as the directional procedure of Benjamini and Yekutieli (2005) does.

    Raises StatisticsError for a test that is rejected in both directions.
    """
    yes, no = above.shows(alpha), below.shows(alpha)
    if (yes & no).any():
        first = int(np.flatnonzero(yes & no)[0])
        raise StatisticsError(
            f"test {first} is rejected in both directions; give p-values of the same data"
        )
    missing = np.isnan(above.adjusted) & np.isnan(above.by_bound)
    return np.where(missing, UNTESTABLE, answers(yes | no, yes * 1.0 - no))


CORRECTION: Final = "fdr_bh"
"""Correction of 1 / E: e-BH (Wang and Ramdas 2022), valid under any dependence between tests."""


def by_betting(options: TestOptions) -> TestOptions:
    """Return the options of the tests behind certified answers, at the level of ``options``."""
    return replace(options, test=BETTING, correction=CORRECTION)
