"""Means over two crossed samples: examples, and random draws applied to each example."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from headroles.errors import StatisticsError
from headroles.inference._columns import resolution_of
from headroles.inference.moments import Moments
from headroles.inference.sample import Sample
from headroles.inference.summing import SummedSample

ENOUGH_DRAWS = 5
"""Number of draws from which Satterthwaite's degrees of freedom do not err too often."""
_DIMENSIONS = 3


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
    if data.ndim != _DIMENSIONS or len(data) < 2 or not data.shape[1]:
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
    moments.settle(resolution_of(data))
    return SummedSample.of_moments(moments)
