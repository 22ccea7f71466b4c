"""Answers that need no assumption beside independent units: by betting, beside those of a test."""

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
"""Of 1 / E, that is e-BH (Wang and Ramdas 2022): valid whatever the dependence between tests."""


@dataclass(frozen=True)
class Certified:
    """``answers`` (T,), empty texts where the bounds of values are not known.

    ``mean`` (T,) is the weighted mean that they speak of, NaN where there is no answer.
    """

    answers: NDArray[np.str_]
    mean: FloatArray


def by_betting(options: TestOptions) -> TestOptions:
    """The tests behind certified answers, at the level, and over the families, of ``options``."""
    return replace(options, test=BETTING, correction=CORRECTION)


def certify(hypotheses: Hypotheses, options: TestOptions) -> Certified:
    """What betting answers at the level, and over the families, of ``options``."""
    if not hypotheses.has_bounds:
        nothing = np.full(hypotheses.n_tests, "", dtype=f"U{len(UNTESTABLE)}")
        return Certified(nothing, np.full(hypotheses.n_tests, np.nan))
    asked = by_betting(options)
    above, below = (find_p_values(hypotheses, asked, side) for side in ("greater", "less"))
    return Certified(answer(above, below, options.alpha), hypotheses.betting.test("greater").mean)
