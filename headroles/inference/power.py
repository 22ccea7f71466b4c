"""How many examples a one-sided t-test needs, and the power that a number of them gives."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headroles.inference._columns import OK, FloatArray
from headroles.inference.moments import Moments

_LARGE = 1e6
"""From so many clusters on the t-test is the normal test to all digits that a plan can use."""
_LARGEST_EFFECT = 1e4
"""A larger one is a column that hardly varies; a few examples do, and its power has no digits."""


def power_of(
    n: ArrayLike,
    effect_size: ArrayLike,
    alpha: ArrayLike,
    design_effect: ArrayLike = 1,
    cluster_size: ArrayLike = 1,
) -> FloatArray:
    """Power of the one-sided one-sample t-test of H1: mean > threshold.

    P(T > t_(1 - alpha; df)) with T noncentral t on df = n / cluster_size - 1 degrees of freedom,
    one less than the clusters that `t_test` would count, and noncentrality
    effect_size * sqrt(n / design_effect) (Cohen 1988). This is exact for normal values in
    clusters of one size, or without clusters. For effects that are negative this is the chance,
    below alpha, of a wrong rejection.

    All arguments broadcast.

    Args:
        n: number of examples, not necessarily whole.
        effect_size: (mean - threshold) / sd of the population.
        alpha: level of the test, for instance 0.05 divided by the number of tests.
        design_effect: by what clusters multiply the variance of the mean; 1 without clusters.
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
    """By what the clusters of a pilot multiply the variance of each mean, (tests,); NaN if unknown.

    SE_robust^2 / (sd^2 / n) (Kish 1965), 1 without clusters. What small pilots have below 1 by
    chance is taken as 1.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        found = pilot.n * (pilot.standard_error / pilot.sd) ** 2
    # Rounding of a design effect of 1 must not cost an example.
    found = np.where(np.isclose(found, 1, rtol=1e-9), 1, np.maximum(found, 1))
    return np.where(pilot.status == OK, found, np.nan)


def smallest_n(
    effect_size: ArrayLike,
    alpha: ArrayLike,
    power: float,
    design_effect: ArrayLike = 1,
    cluster_size: ArrayLike = 1,
) -> FloatArray:
    """Smallest whole n, of two clusters at least, at which ``power_of`` reaches ``power``.

    The arguments are those of ``power_of`` and broadcast; effects must be above 0.
    """
    from scipy import stats  # half a second to import

    effect, level, design, per_cluster = _side_by_side(
        effect_size, alpha, design_effect, cluster_size
    )
    effect = np.minimum(effect, _LARGEST_EFFECT)

    def enough(n: FloatArray) -> NDArray[np.bool_]:
        return power_of(n, effect, level, design, per_cluster) >= power

    # The normal test, to which the variance is known, needs no more examples than the t-test.
    distance = np.maximum(stats.norm.isf(level) + stats.norm.ppf(power), 0)
    high = np.ceil(np.maximum(2 * per_cluster, design * (distance / effect) ** 2))
    low, step = high - 1, np.ceil(per_cluster)
    while (short := ~enough(high)).any():
        low, high, step = np.where(short, high, low), np.where(short, high + step, high), 2 * step
    # Whole numbers beyond 2^53 are not all floats: stop where there is none in between.
    while (((middle := np.floor((low + high) / 2)) > low) & (middle < high)).any():
        reached = enough(middle)
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return np.asarray(high)


def _side_by_side(*arguments: ArrayLike) -> tuple[FloatArray, ...]:
    """All as floats, broadcast to one shape."""
    return tuple(np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in arguments)))
