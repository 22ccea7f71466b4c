"""Means with intervals, as the columns of a table."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike, NDArray

from headroles.inference.intervals import t_interval
from headroles.inference.sample import Sample

ESTIMATES = ("n", "n_clusters", "mean", "sd", "ci_low", "ci_high")
"""Names of the columns."""


def estimates_of(
    values: ArrayLike, clusters: ArrayLike | None, alpha: float
) -> dict[str, NDArray[Any]]:
    """Of each column of ``values`` (examples, columns), NaN being missing, what `ESTIMATES` names.

    Intervals have level 1 - ``alpha`` and are robust to ``clusters`` (examples,).
    """
    sample = Sample.of(values, clusters)
    moments, interval = sample.moments, t_interval(sample, confidence=1 - alpha)
    return {
        "n": moments.n,
        "n_clusters": moments.n_clusters,
        "mean": moments.mean,
        "sd": moments.sd,
        "ci_low": interval.ci_low,
        "ci_high": interval.ci_high,
    }
