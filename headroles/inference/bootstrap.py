"""Bootstrap intervals and tests of means: bootstrap-t and BCa, with whole clusters drawn.

Clusters (or examples, if there are none) are drawn with replacement, as many as there are. Missing
values of a column are removed before drawing, so the result for a column depends on its values and
the seed alone, not on other columns. With w_g the number of draws of cluster g, D_g the sum of its
values and n_g their number, a resample has the mean sum w_g D_g / sum w_g n_g, and its robust
standard error follows from sums of D_g^2, n_g D_g and n_g^2 in the same way: products of a matrix
of counts with a matrix of sums, for all columns that share their gaps. Work grows with the number
of different patterns of gaps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from headroles.arrays import FloatArray
from headroles.inference._columns import (
    Alternative,
    Seed,
    check_alternative,
    check_share,
    check_thresholds,
)
from headroles.inference._resamples import Centred, centred_columns
from headroles.inference.intervals import Intervals, open_intervals
from headroles.inference.ranks import p_of_draws
from headroles.inference.sample import Sample

_ROUNDING = 1e-12
"""Relative size, to the sums subtracted, below which a difference is set to 0."""


def bootstrap_t_interval(
    values: ArrayLike | Sample,
    *,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    seed: Seed,
) -> Intervals:
    """Compute two-sided bootstrap-t (studentised) intervals of the mean of every column.

    The limits are mean - q_high * SE to mean - q_low * SE, with q the quantiles of (resampled mean
    - mean) / resampled SE (Efron and Tibshirani 1993, chapter 12); the outer one of the two nearest
    order statistics is taken. Resamples in which nothing varies have an infinite t, so with a
    handful of clusters a limit may be infinite: the data do not bound it.

    Args:
        values: a sample, or values for `Sample.of`.
        confidence: level of each interval.
        n_resamples: number of resamples.
        seed: an integer, or a generator, which is advanced by one draw.

    Returns:
        Intervals, NaN for columns that are untestable in `Sample`, the mean itself for
        degenerate ones.

    Raises:
        StatisticsError: as `Sample.of`, or fewer than one resample.
    """
    return _intervals(_t_limits, Sample.of(values), confidence, n_resamples, seed)


def bca_interval(
    values: ArrayLike | Sample,
    *,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    seed: Seed,
) -> Intervals:
    """Compute two-sided bias-corrected and accelerated intervals of the mean of every column.

    The method is that of Efron (1987), with the acceleration from the jackknife over clusters.
    Limits are quantiles of resampled means, so they stay within the range of the values; with few
    examples the intervals are too short: use ``bootstrap_t_interval``.

    Args, missing values and errors are those of ``bootstrap_t_interval``. Limits are NaN if all
    resampled means lie on one side of the mean.
    """
    return _intervals(_bca_limits, Sample.of(values), confidence, n_resamples, seed)


def bootstrap_t_test(
    values: ArrayLike | Sample,
    threshold: ArrayLike,
    *,
    n_resamples: int = 10_000,
    seed: Seed,
    alternative: Alternative = "greater",
) -> FloatArray:
    """Return p-values (tests,) of the mean of every column by the bootstrap-t.

    The data are shifted so that H0 holds, mean = threshold, and resampled: p = (1 + number of
    resampled t that are at least the observed t) / (1 + B) (Davison and Hinkley 1997, chapter 4).
    ``"two-sided"`` compares |t|. Unlike the sign-flip test it does not assume symmetry.

    Args are those of ``bootstrap_t_interval``, and ``threshold``, the mean under H0, at its limit,
    a number or (tests,); ``alternative`` is ``"greater"``, ``"less"`` or ``"two-sided"``.

    Returns:
        p-values, NaN for columns that are untestable or degenerate in `Sample`.

    Raises:
        StatisticsError: as `Sample.of`, or fewer than one resample.
    """
    check_alternative(alternative)
    sample = Sample.of(values)
    limits = check_thresholds(threshold, sample.n_tests)
    p_values = np.full(sample.n_tests, np.nan)
    for columns, centred in centred_columns(sample, n_resamples, seed):
        t = centred.resampled(_studentised)
        observed = (sample.moments.mean - limits)[columns] / centred.standard_error
        if alternative == "two-sided":
            reached = np.abs(t) >= np.abs(observed)
        else:
            reached = t >= observed if alternative == "greater" else t <= observed
        p_values[columns] = p_of_draws(reached.sum(axis=0), n_resamples)
    return p_values


_Limits: TypeAlias = Callable[[Centred, FloatArray], FloatArray]
"""Function from centred columns and two levels to limits (2, tests), less the means."""


def _intervals(
    limits: _Limits, sample: Sample, confidence: float, n_resamples: int, seed: Seed
) -> Intervals:
    """Compute two-sided intervals, equally likely to miss on either side, with ``limits``."""
    check_share(confidence, "confidence")
    result = open_intervals(sample)
    levels = np.array([(1 - confidence) / 2, (1 + confidence) / 2])
    for columns, centred in centred_columns(sample, n_resamples, seed):
        low, high = sample.moments.mean[columns] + limits(centred, levels)
        result.ci_low[columns], result.ci_high[columns] = low, high
    return result


def _t_limits(centred: Centred, levels: FloatArray) -> FloatArray:
    t = centred.resampled(_studentised)
    # the outer order statistics, since interpolation with an infinite t has no value
    low = np.quantile(t, levels[0], axis=0, method="lower")
    high = np.quantile(t, levels[1], axis=0, method="higher")
    return np.array([-high, -low]) * centred.standard_error


def _bca_limits(centred: Centred, levels: FloatArray) -> FloatArray:
    means = centred.resampled(_shifted_mean)
    return _quantiles_by_column(means, _bca_levels(means, centred, levels))


def _shifted_mean(centred: Centred, counts: FloatArray) -> FloatArray:
    """Return the mean of each resample less the mean of the data (some resamples, tests)."""
    total = counts @ centred.sums
    # sums that cancel leave a rounding error, which would lie on one side of the mean
    total[np.abs(total) <= _ROUNDING * np.abs(centred.sums).sum(axis=0)] = 0
    return np.asarray(total / (counts @ centred.sizes)[:, None])


def _studentised(centred: Centred, counts: FloatArray) -> FloatArray:
    """Return (mean of the resample - mean of the data) / SE of the resample, for each resample."""
    sums, sizes, n_clusters = centred.sums, centred.sizes, centred.n_clusters
    mean = _shifted_mean(centred, counts)
    squares = counts @ sums**2
    even = bool((sizes == sizes[0]).all())
    n = (counts @ sizes)[:, None]
    cross = sizes[0] * mean * n if even else counts @ (sizes[:, None] * sums)
    spread = squares - 2 * mean * cross + mean**2 * (counts @ sizes**2)[:, None]
    # a resample of one cluster alone has no spread: its t is infinite, not merely large
    spread[spread <= _ROUNDING * squares] = 0
    error = np.sqrt(n_clusters / (n_clusters - 1) * spread) / n
    with np.errstate(divide="ignore", invalid="ignore"):
        # 0 / 0 in such a resample: it lies at the mean, so its t is 0
        return np.where(mean == 0, 0, mean / error)


def _bca_levels(means: FloatArray, centred: Centred, levels: FloatArray) -> FloatArray:
    """Return the levels (2, tests) of the quantiles of resampled means."""
    from scipy import special  # half a second to import

    # resamples at the mean count by half, so that discrete values have no bias
    below = ((means < 0).mean(axis=0) + (means <= 0).mean(axis=0)) / 2
    bias = special.ndtri(below)
    left_out = -centred.sums / (centred.sizes.sum() - centred.sizes)[:, None]
    influence = left_out.mean(axis=0) - left_out
    acceleration = (influence**3).sum(axis=0) / (6 * (influence**2).sum(axis=0) ** 1.5)
    with np.errstate(invalid="ignore"):
        shifted = bias + special.ndtri(levels)[:, None]
        return np.asarray(special.ndtr(bias + shifted / (1 - acceleration * shifted)))


def _quantiles_by_column(values: FloatArray, levels: FloatArray) -> FloatArray:
    """Return linear quantiles (levels, columns), at levels that differ by column."""
    ordered = np.sort(values, axis=0)
    place = np.where(np.isnan(levels), 0, levels) * (len(values) - 1)
    lower = np.floor(place).astype(np.intp)
    upper = np.minimum(lower + 1, len(values) - 1)
    low, high = (np.take_along_axis(ordered, at, axis=0) for at in (lower, upper))
    return np.where(np.isnan(levels), np.nan, low + (place - lower) * (high - low))
