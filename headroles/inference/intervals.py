"""Confidence intervals of means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headroles.inference._columns import DEGENERATE, FloatArray
from headroles.inference.sample import Sample


@dataclass(frozen=True)
class Intervals:
    """Limits (tests,): NaN for untestable columns, the mean itself for degenerate ones."""

    ci_low: FloatArray
    ci_high: FloatArray


def open_intervals(sample: Sample) -> Intervals:
    """Intervals with the limits of testable columns still to be filled in."""
    low = np.where(sample.moments.status == DEGENERATE, sample.moments.mean, np.nan)
    return Intervals(low, low.copy())
