"""Bootstrap resamples: clusters drawn with replacement, and a statistic of each resample."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from headroles.arrays import FloatArray, IndexArray
from headroles.inference._columns import OK, Seed, check_resamples, cluster_sums, renumber
from headroles.inference.sample import Sample

_NUMBERS_AT_ONCE = 2**20
"""Limit of a chunk of draws. Changing this changes the draws for a given seed."""
_NUMBERS_KEPT = 2**24
"""Limit of the resampled statistics in memory: 128 MiB."""


@dataclass(frozen=True)
class Centred:
    """Columns with the same gaps, centred at their means, and the settings of their resampling.

    ``sums`` (clusters, tests) are sums by cluster, ``sizes`` (clusters,) numbers of values, and
    ``standard_error`` (tests,) follows the same formula for data and resamples: G / (G - 1) times
    the plain robust variance. With clusters of one size it is that of `t_test`.
    """

    sums: FloatArray
    sizes: FloatArray
    standard_error: FloatArray
    n_resamples: int
    seed: int

    @property
    def n_clusters(self) -> int:
        return len(self.sums)

    def resampled(self, statistic: Statistic) -> FloatArray:
        """Compute the statistic (resamples, tests) of clusters drawn with replacement.

        Each call starts from the seed, so that the result for a column depends on no other column.
        """
        rng = np.random.default_rng(self.seed)
        found = np.empty((self.n_resamples, self.sums.shape[1]))
        n = self.n_clusters
        step = max(1, _NUMBERS_AT_ONCE // n)
        for first in range(0, self.n_resamples, step):
            rows = min(step, self.n_resamples - first)
            # one count of all rows together: each row has numbers of its own
            drawn = rng.integers(0, n, (rows, n)) + n * np.arange(rows)[:, None]
            counts = np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n)
            found[first : first + rows] = statistic(self, counts.astype(np.float64))
        return found


Statistic: TypeAlias = Callable[[Centred, FloatArray], FloatArray]
"""Function from centred columns and draws (resamples, clusters) to (resamples, tests)."""


def centred_columns(
    sample: Sample, n_resamples: int, seed: Seed
) -> Iterator[tuple[IndexArray, Centred]]:
    """Yield (columns, centred) for all testable columns, grouped by gaps."""
    check_resamples(n_resamples)
    moments = sample.moments
    start = int(seed.integers(2**63)) if isinstance(seed, np.random.Generator) else seed
    step = max(1, _NUMBERS_KEPT // n_resamples)
    for columns, present in sample.gaps:
        tested = columns[moments.status[columns] == OK]
        for first in range(0, len(tested), step):
            block = tested[first : first + step]
            complete = sample.values[np.ix_(present, block)].astype(np.float64)
            clusters = renumber(sample.clusters[present])
            sums = cluster_sums(complete - complete.mean(axis=0), clusters)
            sizes = np.bincount(clusters).astype(np.float64)
            error = moments.standard_error[block]
            # CR2 has no form in sums of draws; data and resamples need the same error
            if (sizes != sizes[0]).any():
                error = _robust_error(sums, len(complete))
            yield block, Centred(sums, sizes, error, n_resamples, start)


def _robust_error(sums: FloatArray, n: int) -> FloatArray:
    return np.asarray(np.sqrt(len(sums) / (len(sums) - 1) * (sums**2).sum(axis=0)) / n)
