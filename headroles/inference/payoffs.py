"""Payoffs of bets: weighted distances of bounded values from a threshold, averaged by unit.

With a value X_i of example i between known bounds, a threshold m and a cap, the example has the
weight w_i = min(1, cap / farthest bound from m), and a unit u (a cluster, or an example) pays D_u =
mean of w_i (X_i - m) over its examples: at most the cap on either side.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from headroles.arrays import FloatArray, IndexArray
from headroles.errors import StatisticsError
from headroles.inference._columns import check_thresholds, cluster_sums
from headroles.inference.sample import Sample

ROUNDING = 1e-9
"""Rounding error of sums of payoffs, relative to their reach."""
_SLACK = 0.01
"""Share of its range by which a value may exceed it, as values of half precision do."""
IN_CACHE = 2**15
"""Values that are computed with at once: all at once would pass through memory at each step."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """Bounds of values, known before the data.

    Tests have one of K ``kinds`` (tests,). ``low`` and ``high`` (examples, K) bound the value of
    each example; an example with unknown bounds, NaN, is not part of the test. ``least`` and
    ``most`` (K,) bound the values of all possible examples, infinite if unknown. Examples whose
    value could be farther than ``cap`` from the threshold are downweighted.
    """

    low: FloatArray
    high: FloatArray
    least: FloatArray
    most: FloatArray
    kinds: IndexArray
    cap: float

    def take(self, columns: IndexArray | slice) -> Bounds:
        """Return the bounds of some tests."""
        return replace(self, kinds=self.kinds[columns])


@dataclass(frozen=True)
class Payoffs:
    """Payoffs D (units, tests), 0 where a unit has no value.

    ``reach`` (2, tests) is how far D can be below 0, and above. ``weight`` (tests,) is the sum over
    units of the mean weight of their examples, ``n_units`` (tests,) the number of units with a
    value.
    """

    payoffs: FloatArray
    reach: FloatArray
    weight: FloatArray
    n_units: IndexArray


def payoffs_of(sample: Sample, threshold: ArrayLike, bounds: Bounds) -> Payoffs:
    """Compute the payoffs of a sample. Raises StatisticsError as `RunningBets.add`."""
    limits = check_thresholds(threshold, sample.n_tests)
    _check_bounds(sample, bounds)
    n_units = int(sample.clusters.max(initial=-1)) + 1
    payoffs, sizes, total = np.zeros((3, n_units, sample.n_tests))
    # tests of one kind share their bounds, which would take a column for each test
    for kind in np.unique(bounds.kinds):
        columns = np.flatnonzero(bounds.kinds == kind)
        weighted, weights = _weighted(sample, columns, kind, limits[columns], bounds)
        there = weights > 0
        payoffs[:, columns] = cluster_sums(weighted, sample.clusters)
        total[:, columns] = cluster_sums(weights, sample.clusters)
        sizes[:, columns] = cluster_sums(there.astype(np.float64), sample.clusters)
    order = np.argsort(np.unique(sample.clusters, return_index=True)[1])  # as they first appear
    payoffs, sizes, total = payoffs[order], sizes[order], total[order]
    size = np.maximum(sizes, 1)
    payoffs /= size
    weight = (total / size).sum(axis=0)
    return Payoffs(payoffs, _reach(limits, bounds), weight, (sizes > 0).sum(axis=0))


def _weighted(
    sample: Sample, columns: IndexArray, kind: int, limits: FloatArray, bounds: Bounds
) -> tuple[FloatArray, FloatArray]:
    """Return w (X - m) and w of the tests of one kind (examples, tests), 0 for missing values."""
    distances, weights = np.empty((2, sample.n_examples, len(columns)))
    step = max(1, IN_CACHE // len(columns))
    for first in range(0, sample.n_examples, step):
        rows = slice(first, first + step)
        low, high = bounds.low[rows, kind, None], bounds.high[rows, kind, None]
        values = sample.values[rows, columns].astype(np.float64)
        there = ~np.isnan(values) & ~np.isnan(low)
        width = np.where(there, high - low, 0)
        outside = np.where(there, np.maximum(low - values, values - high), 0)
        if (outside > _SLACK * np.maximum(width, 1)).any():
            raise StatisticsError(
                f"a value lies {outside.max():g} outside of its bounds; give bounds of these values"
            )
        # weights follow from bounds alone, known before the values, so that bets stay fair
        farthest = np.maximum(limits - low, high - limits)
        weights[rows] = np.where(there, bounds.cap / np.maximum(farthest, bounds.cap), 0)
        distances[rows] = np.where(there, np.clip(values, low, high) - limits, 0) * weights[rows]
    return distances, weights


def _reach(limits: FloatArray, bounds: Bounds) -> FloatArray:
    """Return the most that w (m - X) and w (X - m) can be, as (2, tests)."""
    sides = (limits - bounds.least[bounds.kinds], bounds.most[bounds.kinds] - limits)
    # if no value can be beyond the mean, any reach is valid
    return np.array(
        [np.where(side > ROUNDING, np.minimum(side, bounds.cap), bounds.cap) for side in sides]
    )


def _check_bounds(sample: Sample, bounds: Bounds) -> None:
    shape = (sample.n_examples, len(bounds.least))
    if bounds.low.shape != shape or bounds.high.shape != shape or bounds.most.shape != shape[1:]:
        raise StatisticsError(
            f"bounds have shapes {bounds.low.shape} and {bounds.high.shape}; give "
            f"({sample.n_examples}, {len(bounds.least)}), one for each example and kind"
        )
    if bounds.kinds.shape != (sample.n_tests,):
        raise StatisticsError(
            f"kinds have shape {bounds.kinds.shape}; give ({sample.n_tests},), one for each test"
        )
    beyond = np.fmax(bounds.least - bounds.low, bounds.high - bounds.most)
    if (beyond > _SLACK).any():
        raise StatisticsError(
            f"bounds of an example lie {np.nanmax(beyond):g} outside of those of all examples; "
            "widen least and most"
        )
    if not bounds.cap > 0:
        raise StatisticsError(f"the cap is {bounds.cap}; give a number above 0")
