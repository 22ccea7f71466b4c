"""How many examples a one-sided t-test needs, and the power that a number of them gives."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from headroles.inference._columns import OK, FloatArray, check_share, check_thresholds
from headroles.inference.one_sample import one_sample_t

_LARGE = 1e6
"""From here on the t-test is the normal test to all digits that a plan can use."""


def power_of(n: ArrayLike, effect_size: ArrayLike, alpha: ArrayLike) -> FloatArray:
    """Power of the one-sided one-sample t-test of H1: mean > threshold.

    P(T > t_(1 - alpha; n - 1)) with T noncentral t on n - 1 degrees of freedom and noncentrality
    effect_size * sqrt(n) (Cohen 1988). For tests of (mean - threshold) / sd that is negative this
    is the chance, below alpha, of a wrong rejection.

    Args:
        n: number of independent examples, not necessarily whole; broadcasts with the others.
        effect_size: (mean - threshold) / sd of the population.
        alpha: level of the test, for instance 0.05 divided by the number of tests.

    Returns:
        Power, in the shape of the arguments broadcast; NaN for n below 2 or missing arguments.

    >>> round(float(power_of(27, 0.5, 0.05)), 4)
    0.8118
    """
    size, effect, level = np.broadcast_arrays(
        *(np.asarray(a, dtype=np.float64) for a in (n, effect_size, alpha))
    )
    size = np.where(size >= 2, size, np.nan)
    shift = effect * np.sqrt(size)
    with np.errstate(invalid="ignore"):
        limit = stats.t.isf(level, size - 1)
        exact = stats.nct.sf(limit, size - 1, shift)
        normal = stats.norm.sf(stats.norm.isf(level) - shift)
    return np.where(size < _LARGE, exact, normal)


def required_examples(
    pilot_values: ArrayLike,
    threshold: ArrayLike,
    alpha_per_test: float,
    power: float = 0.8,
    groups: ArrayLike | None = None,
) -> FloatArray:
    """Examples (tests,) that the one-sided t-test of each column would need.

    The smallest whole n of at least 2 at which ``power_of`` reaches ``power`` if the effect is
    that of the pilot. With clusters n is multiplied by the design effect
    SE_robust^2 / (sd^2 / n) of the pilot (Kish 1965) and rounded up: it counts examples in
    clusters of the pilot's kind. A design effect below 1, which small pilots give by chance, is
    taken as 1. The pilot's effect is itself uncertain, and one that was picked for being large
    is too large: read the answer as a lower bound.

    Args:
        pilot_values: (examples, tests); NaN where an example has no value.
        threshold: the mean under H0, at its limit: a number, or (tests,) one for each test.
        alpha_per_test: level of each test, for instance 0.05 divided by the number of tests.
        power: the probability to aim for.
        groups: (examples,) integer or string label of each example's cluster, or None.

    Returns:
        Numbers of examples as floats; infinity where the pilot mean is not above the threshold;
        NaN for columns that are untestable or degenerate in ``one_sample_t``.

    Raises:
        StatisticsError: ``alpha_per_test`` or ``power`` outside (0, 1), or input that
            ``one_sample_t`` refuses.
    """
    check_share(alpha_per_test, "alpha_per_test")
    check_share(power, "power")
    pilot = one_sample_t(pilot_values, threshold, groups=groups)
    limits = check_thresholds(threshold, len(pilot.n))
    needed = np.where(pilot.status == OK, np.inf, np.nan)
    promising = (pilot.status == OK) & (pilot.mean > limits)
    error, sd = pilot.standard_error[promising], pilot.sd[promising]
    design = pilot.n[promising] * (error / sd) ** 2
    # Rounding of a design effect of 1 must not cost an example.
    factor = np.maximum(np.where(np.isclose(design, 1, rtol=1e-9), 1, design), 1)
    smallest = _smallest_n(pilot.effect_size[promising], alpha_per_test, power)
    needed[promising] = np.ceil(smallest * factor)
    return needed


def _smallest_n(effect_size: FloatArray, alpha: float, power: float) -> FloatArray:
    """Smallest n with enough power (tests,), for effects above 0: doubling, then bisection."""
    normal = ((stats.norm.isf(alpha) + stats.norm.ppf(power)) / effect_size) ** 2
    low, high = np.ones_like(effect_size), np.maximum(2, np.ceil(normal))
    while (short := power_of(high, effect_size, alpha) < power).any():
        low, high = np.where(short, high, low), np.where(short, 2 * high, high)
    # Whole numbers beyond 2^53 are not all floats: stop where there is none in between.
    while (((middle := np.floor((low + high) / 2)) > low) & (middle < high)).any():
        enough = power_of(middle, effect_size, alpha) >= power
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high
