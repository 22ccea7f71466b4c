"""Number of examples that a one-sided t-test needs, and the power for a given number."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from headroles.arrays import BoolArray, FloatArray
from headroles.inference.sample import OK, Moments

_LARGE = 1e6
"""Number of clusters from which the t-test is practically the normal test."""
_LARGEST_EFFECT = 1e4
"""Limit of effect sizes; beyond it a few examples suffice, and the power has no precision."""


def power_of(
    n: ArrayLike,
    effect_size: ArrayLike,
    alpha: ArrayLike,
    design_effect: ArrayLike = 1,
    cluster_size: ArrayLike = 1,
) -> FloatArray:
    """Compute the power of the one-sided one-sample t-test of H1: mean > threshold.

    The power is P(T > t_(1 - alpha; df)) with T noncentral t on df = n / cluster_size - 1 degrees
    of freedom, one less than the clusters that `t_test` would count, and noncentrality effect_size
    * sqrt(n / design_effect) (Cohen 1988). This is exact for normal values in clusters of one size,
    or without clusters. For negative effects this is the chance, below alpha, of a wrong rejection.

    All arguments broadcast.

    Args:
        n: number of examples, not necessarily whole.
        effect_size: (mean - threshold) / sd of the population.
        alpha: level of the test, for instance 0.05 divided by the number of tests.
        design_effect: the factor of the variance of the mean due to clusters; 1 without clusters.
        cluster_size: examples per cluster, on average; 1 without clusters.

    Returns:
        Power, in the shape of the arguments broadcast; NaN for fewer than two clusters or
        missing arguments.

    >>> round(float(power_of(27, 0.5, 0.05)), 4)
    0.8118
    >>> round(float(power_of(28, 0.5, 0.05, cluster_size=4)), 4)
    0.7544
    """
    from scipy import stats  # half a second to import

    size, effect, level, design, per_cluster = _side_by_side(
        n, effect_size, alpha, design_effect, cluster_size
    )
    size = np.where(size >= 2 * per_cluster, size, np.nan)
    clusters = size / per_cluster
    shift = effect * np.sqrt(size / design)
    with np.errstate(invalid="ignore"):
        limit = stats.t.isf(level, clusters - 1)
        exact = stats.nct.sf(limit, clusters - 1, shift)
        normal = stats.norm.sf(stats.norm.isf(level) - shift)
    return np.asarray(np.where(clusters < _LARGE, exact, normal))


def design_effect(pilot: Moments) -> FloatArray:
    """Return the factor (tests,) by which a pilot's clusters raise variances; NaN if unknown.

    The factor is SE_robust^2 / (sd^2 / n) (Kish 1965), 1 without clusters. Factors below 1, which
    small pilots have by chance, are set to 1.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        effect = pilot.n * (pilot.standard_error / pilot.sd) ** 2
    # a design effect of 1 plus rounding error must not require one more example
    effect = np.where(np.isclose(effect, 1, rtol=1e-9), 1, np.maximum(effect, 1))
    return np.where(pilot.status == OK, effect, np.nan)


def smallest_n(
    effect_size: ArrayLike,
    alpha: ArrayLike,
    power: float,
    design_effect: ArrayLike = 1,
    cluster_size: ArrayLike = 1,
) -> FloatArray:
    """Return the smallest whole n, with at least two clusters, at which power reaches ``power``.

    The arguments are those of ``power_of`` and broadcast; effects must be above 0.
    """
    from scipy import stats  # half a second to import

    effect, level, design, per_cluster = _side_by_side(
        effect_size, alpha, design_effect, cluster_size
    )
    effect = np.minimum(effect, _LARGEST_EFFECT)

    def enough(n: FloatArray) -> BoolArray:
        return power_of(n, effect, level, design, per_cluster) >= power

    # start from the normal test, which knows the variance and so never needs more examples
    distance = np.maximum(stats.norm.isf(level) + stats.norm.ppf(power), 0)
    high = np.ceil(np.maximum(2 * per_cluster, design * (distance / effect) ** 2))
    low, step = high - 1, np.ceil(per_cluster)
    while (short := ~enough(high)).any():
        low, high, step = np.where(short, high, low), np.where(short, high + step, high), 2 * step
    # beyond 2^53 not every whole number is a float: stop if there is none in between
    while (((middle := np.floor((low + high) / 2)) > low) & (middle < high)).any():
        reached = enough(middle)
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return np.asarray(high)


def _side_by_side(*arguments: ArrayLike) -> tuple[FloatArray, ...]:
    """Convert all to floats, broadcast to one shape."""
    return tuple(np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in arguments)))
