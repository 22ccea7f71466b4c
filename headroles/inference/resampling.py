"""Sign-flip tests: each test separately, and all together by step-down max-T.

If the values of a column scatter symmetrically about the threshold under H0, and clusters are
independent, then data with the signs of all (value - threshold) of a cluster flipped are just as
likely. For asymmetric values the level still holds with many clusters, because the statistic is
studentised (Janssen 1999; Konietschke and Pauly 2014).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from headroles.arrays import FloatArray
from headroles.errors import StatisticsError
from headroles.inference._columns import (
    Alternative,
    Seed,
    check_alternative,
    check_share,
    check_thresholds,
)
from headroles.inference._flipped import FlippedTests, SignFlips, sign_flips, t_of
from headroles.inference.intervals import Intervals, open_intervals
from headroles.inference.sample import Sample

_TIE = 1e-12
"""Difference up to which two r tie, since matrix products sum in varying order."""


def sign_flip_test(
    values: ArrayLike | Sample,
    threshold: ArrayLike,
    *,
    n_resamples: int = 10_000,
    seed: Seed,
    alternative: Alternative = "greater",
) -> FloatArray:
    """Return p-values (tests,) of the mean of every column by random sign flips of clusters.

    The statistic is the t of `t_test`. With B random flips p = (1 + number of flips whose statistic
    is at least the observed one) / (1 + B); if there are at most ``n_resamples`` ways to choose the
    signs, all are used and p is exact. ``"two-sided"`` compares |t|. The same seed gives the same
    flips for any columns.

    Args:
        values: a sample, or values for `Sample.of`. Missing values are ignored column by column;
            all examples of a cluster are flipped together.
        threshold: the mean under H0, at its limit: a number, or (tests,) one for each test.
        n_resamples: number of random flips.
        seed: an integer, or a generator, which is advanced.
        alternative: ``"greater"``, ``"less"`` or ``"two-sided"``.

    Returns:
        p-values, NaN for columns that are untestable or degenerate in `Sample`.

    Raises:
        StatisticsError: as `t_test`, or fewer than one resample.

    >>> float(sign_flip_test([[1.0], [2.0], [3.0]], threshold=0, seed=0)[0])  # 1 of 8 flips
    0.125
    """
    tests, flips = _prepare(values, threshold, n_resamples, seed, alternative)
    least = _fold(tests.observed(), alternative) - _TIE
    reached = np.zeros(tests.n_tests, dtype=np.int64)
    for signs in flips.chunks(tests.n_tests):
        reached += (_fold(tests.correlations(signs), alternative) >= least).sum(axis=0)
    return tests.spread(flips.p_values(reached))


def step_down_max_t(
    values: ArrayLike | Sample,
    threshold: ArrayLike,
    *,
    n_resamples: int = 10_000,
    seed: Seed,
    alternative: Alternative = "greater",
) -> FloatArray:
    """Return p-values (tests,) that control the family-wise error rate under dependence.

    Step-down max-T of Westfall and Young (1993; as an algorithm in Ge, Dudoit and Speed 2003), with
    sign flips for permutations: with the tests ordered by their observed t, largest first, the
    adjusted p-value of a test is the share of flips in which the largest t among it and all later
    tests is at least its observed t, and no less than the adjusted p-value of the test before it.
    All tests share the same flips, so correlated tests count as fewer; Holm's correction cannot use
    the correlation, since it allows for the worst dependence.

    Args, missing values and errors are those of ``sign_flip_test``. All columns are one family.
    Columns that are untestable or degenerate get NaN and do not count. Columns with fewer values
    have heavier tails of t and so more influence on the maximum; the family-wise error rate holds.

    >>> table = [[1.0, 1.0, 5.0], [2.0, 2.0, 5.0], [3.0, -1.0, 5.0]]
    >>> step_down_max_t(table, threshold=0, seed=0).tolist()
    [0.25, 0.375, nan]
    """
    tests, flips = _prepare(values, threshold, n_resamples, seed, alternative)
    observed = tests.comparable(_fold(tests.observed(), alternative))
    order = np.argsort(observed, kind="stable")
    tests = tests.take(order)
    least = tests.comparable(_fold(tests.observed(), alternative) - _TIE)
    reached = np.zeros(tests.n_tests, dtype=np.int64)
    for signs in flips.chunks(tests.n_tests):
        t = tests.comparable(_fold(tests.correlations(signs), alternative))
        # from the smallest observed t upwards: the maximum over a test and all weaker ones
        np.maximum.accumulate(t, axis=1, out=t)
        reached += (t >= least).sum(axis=0)
    p = flips.p_values(reached)
    return tests.spread(np.maximum.accumulate(p[::-1])[::-1])


def simultaneous_intervals(
    values: ArrayLike | Sample,
    *,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    seed: Seed,
) -> Intervals:
    """Compute two-sided intervals that all hold together with probability ``confidence``.

    The intervals are mean +- c * SE, with the standard error of `Sample` and one c for all columns:
    the quantile of the largest |t| over sign flips of the data, each column centred at its mean:
    the multiplier bootstrap of a maximum (Chernozhukov, Chetverikov and Kato 2013), with random
    signs where they have normal multipliers. The level holds in the limit of many clusters. c is
    the ceil(confidence * (B + 1))-th smallest of B maxima.

    Args:
        values: a sample, or values for `Sample.of`.
        confidence: probability that all intervals hold together.
        n_resamples: number of random flips; all flips are used if they are fewer.
        seed: an integer, or a generator, which is advanced.

    Returns:
        Intervals: NaN for untestable columns and the mean itself for degenerate ones; neither
        counts towards c. Limits are infinite if flips of very few clusters have no bounded t.

    Raises:
        StatisticsError: as `t_test`, or too few resamples for the level.
    """
    check_share(confidence, "confidence")
    sample = Sample.of(values)
    moments, result = sample.moments, open_intervals(sample)
    centre = np.where(np.isnan(moments.mean), 0, moments.mean)
    tests = FlippedTests.of(sample, centre)
    flips = sign_flips(tests.n_clusters, n_resamples, seed)
    columns, critical = tests.columns, _critical_value(tests, flips, confidence)
    reach = critical * tests.standard_error(moments.n[columns])
    result.ci_low[columns] = moments.mean[columns] - reach
    result.ci_high[columns] = moments.mean[columns] + reach
    return result


def _prepare(
    values: ArrayLike | Sample,
    threshold: ArrayLike,
    n_resamples: int,
    seed: Seed,
    alternative: Alternative,
) -> tuple[FlippedTests, SignFlips]:
    """Check the options, and return the testable columns and the flips of a test."""
    check_alternative(alternative)
    sample = Sample.of(values)
    tests = FlippedTests.of(sample, check_thresholds(threshold, sample.n_tests))
    return tests, sign_flips(tests.n_clusters, n_resamples, seed)


def _critical_value(tests: FlippedTests, flips: SignFlips, confidence: float) -> float:
    """Return the |t| that the largest of a flip exceeds with probability 1 - ``confidence``."""
    rank = math.ceil(confidence * (flips.n_flips + (0 if flips.exact else 1)))
    if rank > flips.n_flips:
        raise StatisticsError(
            f"{flips.n_flips} resamples are too few for confidence {confidence}; "
            f"use at least {math.ceil(confidence / (1 - confidence))}"
        )
    if not tests.n_tests:
        return math.nan
    largest = [
        t_of(np.abs(tests.correlations(signs)), tests.n_clusters_of).max(axis=1)
        for signs in flips.chunks(tests.n_tests)
    ]
    return float(np.partition(np.concatenate(largest), rank - 1)[rank - 1])


def _fold(r: FloatArray, alternative: Alternative) -> FloatArray:
    """Orient r so that larger values favour H1."""
    if alternative == "two-sided":
        return np.abs(r)
    return r if alternative == "greater" else -r
