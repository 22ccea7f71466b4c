"""What the procedures that give intervals but no t-test return."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headroles.inference._columns import DEGENERATE, FloatArray
from headroles.inference.one_sample import OneSampleResult


@dataclass(frozen=True)
class Intervals:
    """Confidence intervals of means, all arrays (tests,).

    ``n``, ``n_groups``, ``mean`` and ``status`` are those of ``one_sample_t``. Untestable columns
    have NaN for limits, degenerate ones their mean.
    """

    n: NDArray[np.int64]
    n_groups: NDArray[np.int64]
    mean: FloatArray
    ci_low: FloatArray
    ci_high: FloatArray
    status: NDArray[np.str_]


def open_intervals(described: OneSampleResult) -> Intervals:
    """Intervals with the limits of testable columns still to be filled in."""
    low = np.where(described.status == DEGENERATE, described.mean, np.nan)
    return Intervals(
        n=described.n,
        n_groups=described.n_groups,
        mean=described.mean,
        ci_low=low,
        ci_high=low.copy(),
        status=described.status,
    )
