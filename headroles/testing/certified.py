"""Answers that need no assumption beside independent units: by betting, beside those of a test."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headroles.inference import YES
from headroles.testing.answers import answer
from headroles.testing.evidence import bet_on, find_p_values
from headroles.testing.hypotheses import FloatArray, Hypotheses
from headroles.testing.options import BETTING, TestOptions

CORRECTION = "fdr_bh"
"""Of 1 / E, that is e-BH (Wang and Ramdas 2022): valid whatever the dependence between tests."""


@dataclass(frozen=True)
class Certified:
    """``answers`` (T,), empty texts where the bounds of values are not known.

    ``mean`` (T,) is the weighted mean that they speak of, NaN where there is no answer.
    """

    answers: NDArray[np.str_]
    mean: FloatArray


def certify(hypotheses: Hypotheses, options: TestOptions) -> Certified:
    """What betting answers at the level, and over the families, of ``options``."""
    if not hypotheses.has_bounds:
        return Certified(
            np.full(hypotheses.n_tests, "", dtype=f"U{len(YES)}"),
            np.full(hypotheses.n_tests, np.nan),
        )
    asked = replace(options, test=BETTING, correction=CORRECTION)
    above = find_p_values(hypotheses, asked, "greater")
    below = find_p_values(hypotheses, asked, "less")
    mean = bet_on(hypotheses, "greater").mean
    return Certified(answer(hypotheses, above, below, options.alpha), mean)
