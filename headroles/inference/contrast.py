"""Contrasts of means that were estimated independently."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from headroles.errors import StatisticsError
from headroles.inference._columns import resolution_of
from headroles.inference.moments import Moments
from headroles.inference.sample import Sample
from headroles.inference.summing import SummedSample


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

    Raises:
        StatisticsError: samples and weights that do not fit.
    """
    weight = np.asarray(weights, dtype=np.float64)
    shapes = [one.n_tests for one in samples]
    if weight.ndim != 2 or len(set(shapes)) > 1 or weight.shape[1] != len(samples):
        raise StatisticsError(
            f"samples have {shapes} tests and weights have shape {weight.shape}; give samples of "
            "the same tests and weights (contrasts, samples)"
        )
    mean, error, df, n, n_clusters = (
        np.stack([getattr(one.moments, name) for one in samples])
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
    moments.settle(resolution_of(mean))
    return SummedSample.of_moments(moments)
