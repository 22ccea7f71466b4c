"""Bound for the rounding error of computed sums, the only one in the package.

Processors add the terms of a sum in different orders, so two machines agree up to this bound and
not to the bit. Smaller differences are treated as 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from headroles.arrays import FloatArray

EPSILON = float(np.finfo(np.float32).eps)
"""Distance from 1 to the next larger float32 number, 1.2e-7."""

MODEL_TERMS = 1024
"""Number of terms that a model adds up for each number it returns, an attention weight or a loss:
the width of its layers, which is 1024 in large encoders.
"""

_DEVIATIONS = 6.0
"""Number of deviations beyond which errors have a probability of at most 2 exp(-6^2 / 2) = 3e-8."""


def rounding_bound(size: ArrayLike, terms: ArrayLike, epsilon: float = EPSILON) -> FloatArray:
    """Bound the rounding error of sums, which are broadcast from ``size`` and ``terms``.

    An addition is off by at most half an ``epsilon`` of the sum so far, and so of ``size``. If the
    errors of n additions are independent and have mean 0, Hoeffding's inequality says that their
    sum exceeds t * sqrt(n) * epsilon / 2 * size with a probability of at most 2 exp(-t^2 / 2); here
    t is 6 (Higham and Mary 2019). The worst case, n * epsilon / 2 * size, never occurs with sums of
    thousands of terms, which are added in several parts.

    Args:
        size: What the absolute values of the terms add up to. For a difference of sums, give the
            sum of both: what cancels leaves its rounding behind.
        terms: How many numbers were added. If the terms are themselves sums, add the terms of one
            of these; `MODEL_TERMS` stands for those behind every number that a model returns.
        epsilon: The relative spacing of the numbers that were added.
    """
    spread = np.sqrt(np.asarray(terms, dtype=np.float64)) * epsilon / 2
    return np.asarray(_DEVIATIONS * spread * np.asarray(size, dtype=np.float64))
