"""Ratios of sums as means: precision, recall and error rates that are counted over a corpus."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headroles.arrays import FloatArray


def ratio_values(tops: NDArray[np.number], bottoms: NDArray[np.number]) -> FloatArray:
    """Return a value (examples, tests) of each example for sum(tops) / sum(bottoms).

    The mean of the values is the ratio R, and the error of this mean that of the ratio by
    linearisation, r + n (top - R * bottom) / sum(bottoms): the infinitesimal jackknife (Efron
    1982). Tests of means, clustered ones too, are thus tests of ratios, and differences of the
    values of two ratios are paired.

    Args:
        tops: (examples, tests), what the numerators are sums of.
        bottoms: the same of the denominators.

    Returns:
        NaN in columns whose bottoms are all 0.

    >>> values = ratio_values(np.array([[1], [1]]), np.array([[1], [3]]))
    >>> values.tolist(), float(values.mean())
    ([[0.75], [0.25]], 0.5)
    """
    total = bottoms.sum(axis=0, dtype=np.float64)
    total[total == 0] = np.nan
    ratio = tops.sum(axis=0, dtype=np.float64) / total
    return np.asarray(ratio + (tops - ratio * bottoms) * (len(tops) / total))
