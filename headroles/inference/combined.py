"""Samples that are made of others: contrasts of means, and examples crossed with random draws."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from headroles.errors import StatisticsError
from headroles.inference.sample import Moments, Sample, resolution_of

ENOUGH_DRAWS = 5
"""Number of draws from which Satterthwaite's degrees of freedom do not err too often."""


def contrast_sample(samples: Sequence[Sample], weights: ArrayLike) -> Sample:
    """Compute the moments of weighted sums of the means of independent samples.

    Variances may differ: degrees of freedom are those of Welch (1947) and Satterthwaite (1946). For
    two samples with weights 1 and -1, t-tests of the result are Welch's. A contrast is untestable
    if a mean has no error. ``n`` counts the examples of all samples; ``sd`` is the standard error
    times the root of ``n``.

    Args:
        samples: of the same tests, each with its own examples.
        weights: (contrasts, samples).

    Returns:
        A sample of contrasts * tests.
    """
    weight = np.asarray(weights, dtype=np.float64)
    mean, error, df, n, n_clusters = (
        np.stack([getattr(sample.moments, name) for sample in samples])
        for name in ("mean", "standard_error", "df", "n", "n_clusters")
    )
    squared = np.tensordot(weight**2, error**2, 1)
    moments = Moments.empty(squared.size)
    there = ~np.isnan(squared.ravel())
    for counts, of_samples in ((moments.n, n), (moments.n_clusters, n_clusters)):
        counts[there] = np.tensordot(weight != 0, of_samples, 1).ravel()[there]
    with np.errstate(invalid="ignore", divide="ignore"):
        moments.df[:] = (squared**2 / np.tensordot(weight**4, error**4 / df, 1)).ravel()
    moments.mean[:] = np.tensordot(weight, mean, 1).ravel()
    moments.standard_error[:] = np.sqrt(squared).ravel()
    moments.sd[:] = moments.standard_error * np.sqrt(moments.n)
    moments.set_status(resolution_of(mean) * moments.size)
    return Sample.from_moments(moments)


def crossed_sample(values: ArrayLike) -> Sample:
    """Compute the moments of means of examples that were all seen under the same random draws.

    The squared error of the mean is the sum of the squared errors over examples and over draws.
    From ``ENOUGH_DRAWS`` draws on, degrees of freedom are Satterthwaite's, and t-tests of this
    sample are min F' of Clark (1973), squared t. If draws vary much more than examples, the error
    rate is 5.8 % instead of 5 with five draws, and 7.6 and 12.6 % with three and two. With fewer
    draws the degrees of freedom are therefore those of the smaller sample, with which the test errs
    too rarely (Mickey and Brown 1966). Identical draws, or a single draw, count as all possible
    draws, which gives the ordinary t-test over examples. ``sd`` is the standard error times the
    root of the number of examples.

    Args:
        values: (examples, draws, tests), without missing ones.

    Raises:
        StatisticsError: another number of dimensions, fewer than two examples, missing values.

    >>> found = crossed_sample([[[3.4]], [[2.9]], [[4.1]], [[3.8]], [[3.0]]]).moments
    >>> round(float(found.standard_error[0]), 6), float(found.df[0])
    (0.229347, 4.0)
    """
    data = np.asarray(values, dtype=np.float64)
    if data.ndim != 3 or len(data) < 2 or not data.shape[1]:
        raise StatisticsError(
            f"values have shape {data.shape}; give (examples, draws, tests), 2 examples or more"
        )
    if not np.isfinite(data).all():
        raise StatisticsError("values are missing or infinite; give a value for every draw")
    n_examples, n_draws, n_tests = data.shape
    by_example = data.mean(1).var(0, ddof=1) / n_examples
    by_draw = np.zeros_like(by_example)
    if n_draws > 1:
        by_draw = data.mean(0).var(0, ddof=1) / n_draws
    # examples and draws are independent, so their squared errors add up; the residual is in both
    squared = by_example + by_draw
    weights = by_example**2 / (n_examples - 1) + by_draw**2 / max(1, n_draws - 1)
    moments = Moments.empty(n_tests)
    moments.n[:] = moments.n_clusters[:] = n_examples
    moments.mean[:] = data.mean((0, 1))
    moments.standard_error[:] = np.sqrt(squared)
    moments.sd[:] = np.sqrt(n_examples * squared)
    with np.errstate(invalid="ignore"):
        moments.df[:] = squared**2 / weights
    if n_draws < ENOUGH_DRAWS:
        moments.df[by_draw > 0] = min(n_examples, n_draws) - 1
    moments.set_status(resolution_of(data) * moments.size)
    return Sample.from_moments(moments)
