"""Certified answers: by betting, which assumes only independent units, beside those of a test."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headroles.testing.answers import UNTESTABLE, answer
from headroles.testing.catalogue import BETTING
from headroles.testing.evidence import find_p_values
from headroles.testing.hypotheses import FloatArray, Hypotheses
from headroles.testing.options import TestOptions

CORRECTION = "fdr_bh"
"""Correction of 1 / E: e-BH (Wang and Ramdas 2022), valid under any dependence between tests."""


@dataclass(frozen=True)
class Certified:
    """Certified ``answers`` (T,), empty texts if the bounds of values are unknown.

    ``mean`` (T,) is the weighted mean that was tested, NaN without an answer.
    """

    answers: NDArray[np.str_]
    mean: FloatArray


def by_betting(options: TestOptions) -> TestOptions:
    """Return the options of the tests behind certified answers, at the level of ``options``."""
    return replace(options, test=BETTING, correction=CORRECTION)


def certify(hypotheses: Hypotheses, options: TestOptions) -> Certified:
    """Answer by betting, at the level and over the families of ``options``."""
    if not hypotheses.has_bounds:
        nothing = np.full(hypotheses.n_tests, "", dtype=f"U{len(UNTESTABLE)}")
        return Certified(nothing, np.full(hypotheses.n_tests, np.nan))
    asked = by_betting(options)
    above, below = (find_p_values(hypotheses, asked, side) for side in ("greater", "less"))
    return Certified(answer(above, below, options.alpha), hypotheses.betting.test("greater").mean)
