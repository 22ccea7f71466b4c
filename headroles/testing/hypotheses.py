"""Hypotheses: whatever is tested is a matrix of values, with a threshold for each column."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headroles.inference import OK, Bounds, Moments, RunningBets, Sample, t_test

ROUNDING = 1e-5
"""What differs by less, of the size of the values, is the same: float32 scores of uniform attention
over 145 tokens, which are 1 (bias) or 0 (excess), were found to deviate by up to 1.3e-6."""

IntArray = NDArray[np.intp]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Hypotheses:
    """For each of T tests, H0: the mean of a column of values is ``threshold``, at its limit.

    ``sample`` has the values (examples, T), NaN where an example has none, and the clusters of the
    examples. ``threshold`` (T,) is in units of the values. ``labels`` (T,) number what the tests
    are of, and ``names`` are what messages call these. ``families`` (T,) label what is corrected
    together. ``bounds`` are those of the values, None where they are not known.
    ``n_population`` is the number of units (clusters, or examples) of which those of the sample
    were drawn in random order, if the means are those over all of them; None for means over all
    units there could be. ``called`` is what messages call all values together, if they are not
    the scores of roles. ``bets`` are those that were made on values that came in blocks, and were
    not kept. ``least_size`` is the size below which rounding does not get smaller: scores come of
    uniform attention, which is 1; losses and derivatives may be as small as they like.
    """

    sample: Sample
    threshold: FloatArray
    labels: IntArray
    names: tuple[str, ...]
    families: IntArray
    is_clustered: bool
    bounds: Bounds | None = None
    n_population: int | None = None
    called: str = ""
    bets: RunningBets | None = None
    least_size: float = 1.0

    @classmethod
    def of(
        cls,
        values: NDArray[np.floating],
        threshold: ArrayLike,
        *,
        labels: IntArray,
        names: tuple[str, ...],
        family: str = "all",
        clusters: IntArray | None = None,
        ddof: int = 1,
        size: FloatArray | None = None,
        bounds: Bounds | None = None,
        n_population: int | None = None,
        called: str = "",
        least_size: float = 1.0,
    ) -> Hypotheses:
        """Hypotheses of values; columns that vary by rounding alone get their mean for all values.

        ``family`` is that of `LevelOptions`. ``size`` (T,) is how large the numbers are that the
        values are differences of, None for values that stand for themselves.
        """
        return cls(
            sample=without_rounding(Sample.of(values, clusters, ddof, size), least_size),
            threshold=np.broadcast_to(np.asarray(threshold, dtype=np.float64), labels.shape),
            labels=labels,
            names=names,
            families=families_of(labels, family),
            is_clustered=clusters is not None,
            bounds=bounds,
            n_population=n_population,
            called=called,
            least_size=least_size,
        )

    def against(self, threshold: ArrayLike) -> Hypotheses:
        """The same tests against another threshold."""
        limits = np.asarray(threshold, dtype=np.float64)
        return replace(self, threshold=np.broadcast_to(limits, self.labels.shape))

    @property
    def n_tests(self) -> int:
        """Number of hypotheses."""
        return len(self.labels)

    @property
    def n_clusters(self) -> int:
        """Number of independent units: of clusters, or of examples if they are independent."""
        return self.sample.n_clusters

    @property
    def moments(self) -> Moments:
        """Means, deviations and errors of all columns."""
        return self.sample.moments

    @property
    def effect_size(self) -> FloatArray:
        """(mean - threshold) / sd of each test, NaN where nothing varies."""
        return t_test(self.sample, self.threshold).effect_size

    @property
    def has_bounds(self) -> bool:
        """Whether the bounds of the values are known, or bets were made by them already."""
        return self.bounds is not None or self.bets is not None

    @property
    def is_tested(self) -> NDArray[np.bool_]:
        """Which tests can be made."""
        return np.asarray(self.moments.status == OK)

    @cached_property
    def columns_by_family(self) -> list[IntArray]:
        """Places of the tests of each family."""
        return [np.flatnonzero(self.families == label) for label in np.unique(self.families)]

    @property
    def rounding(self) -> FloatArray:
        """How far (T,) a mean may be off by rounding alone."""
        return _rounding(self.sample, self.least_size)

    @property
    def units(self) -> str:
        """What is independent, for people."""
        return "documents" if self.is_clustered else "examples"


def families_of(labels: IntArray, family: str) -> IntArray:
    """What is corrected together (T,), for the ``family`` of `LevelOptions`."""
    return labels if family == "role" else np.zeros_like(labels)


def _rounding(sample: Sample, least_size: float) -> FloatArray:
    size = np.abs(sample.moments.mean) if sample.size is None else sample.size
    return np.asarray(ROUNDING * np.fmax(least_size, size))


def without_rounding(sample: Sample, least_size: float = 1.0) -> Sample:
    """The same sample with the mean for all values of columns that vary by rounding alone.

    The procedures of `headroles.inference` know no unit and take rounding relative to the mean.
    Scores less uniform attention, contrasts, and differences of scores are rounding around 0 where
    there is nothing else, which relatively is much.
    """
    moments = sample.moments
    alike = moments.sd < _rounding(sample, least_size)  # false for NaN: single examples
    return sample.with_means_alone(alike) if alike.any() else sample
