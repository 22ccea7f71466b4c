"""Hypotheses: a matrix of values, with a threshold for each column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headroles import inference
from headroles.arrays import (
    EPSILON,
    MODEL_TERMS,
    BoolArray,
    FloatArray,
    IndexArray,
    rounding_bound,
)
from headroles.errors import StatisticsError, UsageError
from headroles.inference import DEGENERATE, OK, Bets, Bounds, Intervals, Moments, Sample

RESOLUTION = 8 * EPSILON
"""Relative difference of single numbers of models below which it may be rounding."""
_OF_TESTS = ("threshold", "size", "labels")
"""Fields of `Hypotheses` that have an entry for each test."""


@dataclass(frozen=True)
class Hypotheses:
    """For each of T tests, H0: the mean of a column of values is at most ``threshold``.

    ``sample`` has the values (examples, T), NaN where an example has none, and the clusters of the
    examples. ``threshold`` (T,) is in units of the values. ``size`` (T,) is the summed size of the
    numbers that the values are sums or differences of; smaller differences may be rounding.
    ``labels`` (T,) number the subjects of tests, and ``names`` are their names in messages.
    ``bounds`` are those of the values, None if unknown. ``called`` names the values in messages, if
    they are not the scores of roles. ``n_draws`` is the number of random draws that examples were
    crossed with, None without draws.
    """

    sample: Sample
    threshold: FloatArray
    size: FloatArray
    labels: IndexArray
    names: tuple[str, ...]
    is_clustered: bool
    bounds: Bounds | None = None
    called: str = ""
    n_draws: int | None = None

    @classmethod
    def from_values(
        cls,
        values: NDArray[np.floating] | Sample,
        threshold: ArrayLike,
        *,
        size: ArrayLike,
        labels: IndexArray | None = None,
        names: tuple[str, ...] = ("tests",),
        clusters: IndexArray | None = None,
        is_clustered: bool | None = None,
        bounds: Bounds | None = None,
        called: str = "",
        n_draws: int | None = None,
    ) -> Hypotheses:
        """Make hypotheses of values, without differences that are only rounding.

        Scores less uniform attention, contrasts, and differences of scores may be rounding errors
        around 0, which are large relative to their mean: the size of the numbers behind the values
        decides, and the type that these numbers had, float32, not that of the array of values.

        Args are the attributes, and:
            values: (examples, T), with their ``clusters`` (examples,), or a sample, which has its
                clusters; ``is_clustered`` tells whether it does.
            threshold, size: a number, or one for each test; the size is for example `size_of` the
                subtracted values.
            labels: (T,); None for tests of one kind.

        Raises:
            StatisticsError: as `Sample.from_values`, or a size that is negative or not finite.
        """
        sample = values if isinstance(values, Sample) else Sample.from_values(values, clusters)
        sizes = np.broadcast_to(np.asarray(size, dtype=np.float64), (sample.n_tests,))
        if not (np.isfinite(sizes) & (sizes >= 0)).all():
            raise StatisticsError(
                "a size of summed or subtracted values is negative or not finite; give sizes >= 0"
            )
        kinds = np.zeros(sample.n_tests, dtype=np.intp) if labels is None else labels
        return cls(
            sample=sample.without_rounding(rounding_bound(sizes, MODEL_TERMS)),
            threshold=np.broadcast_to(np.asarray(threshold, dtype=np.float64), kinds.shape),
            size=sizes,
            labels=kinds,
            names=names,
            is_clustered=clusters is not None if is_clustered is None else is_clustered,
            bounds=bounds,
            called=called,
            n_draws=n_draws,
        )

    @classmethod
    def joined(cls, several: Sequence[Hypotheses]) -> Hypotheses:
        """Join tests of different examples, to be corrected together; only t-tests of them work."""
        return cls.from_values(
            Sample.joined([tests.sample for tests in several]),
            np.concatenate([tests.threshold for tests in several]),
            size=np.concatenate([tests.size for tests in several]),
            called=several[0].called,
            n_draws=several[0].n_draws,
        )

    @classmethod
    def of_crossed(
        cls, values: NDArray[np.floating], *, size: ArrayLike, called: str = ""
    ) -> Hypotheses:
        """Make H0: the mean of values (examples, draws, T), over other examples and draws, is 0."""
        crossed = inference.crossed_sample(values)
        return cls.from_values(crossed, 0.0, size=size, called=called, n_draws=values.shape[1])

    @classmethod
    def from_draws(
        cls, observed: ArrayLike, drawn: NDArray[np.floating], *, size: ArrayLike
    ) -> Hypotheses:
        """Make H0: each of T observations is like draws (B, T), for the test `RANK`.

        The draws are the values and the observations the thresholds: H1 ``"greater"`` is that an
        observation is larger than the draws. Draws of one column may serve all observations.
        """
        limits = np.atleast_1d(np.asarray(observed, dtype=np.float64))
        return cls.from_values(np.broadcast_to(drawn, (len(drawn), len(limits))), limits, size=size)

    def against(self, threshold: ArrayLike) -> Hypotheses:
        """Return the same tests against another threshold."""
        limits = np.asarray(threshold, dtype=np.float64)
        return replace(self, threshold=np.broadcast_to(limits, self.labels.shape))

    def by_slice(self) -> Iterator[Hypotheses]:
        """Yield tests whose values are few enough to compute with at once; mostly all of them."""
        if len(self.sample.column_slices) == 1:
            yield self
            return
        for columns in self.sample.column_slices:
            of_tests = {name: getattr(self, name)[columns] for name in _OF_TESTS}
            bounds = None if self.bounds is None else self.bounds.take(columns)
            yield replace(self, sample=self.sample.take(columns), bounds=bounds, **of_tests)

    @property
    def n_tests(self) -> int:
        """Number of hypotheses."""
        return len(self.labels)

    @property
    def n_clusters(self) -> int:
        """Number of independent units: clusters, or examples if they are independent."""
        return self.sample.n_clusters

    @property
    def moments(self) -> Moments:
        """Means, deviations and errors of all columns."""
        return self.sample.moments

    @property
    def effect_size(self) -> FloatArray:
        """(mean - threshold) / sd of each test, NaN without variance."""
        return self.moments.effect_size(self.threshold)

    def intervals(self, alpha: float) -> Intervals:
        """Compute the t interval of each mean, for each test separately, at level 1 - alpha."""
        return inference.t_interval(self.sample, confidence=1 - alpha)

    @cached_property
    def betting(self) -> Bets:
        """Bets on all values. Raises UsageError if the bounds of the values are unknown."""
        if self.bounds is None:
            raise UsageError(
                "betting needs the bounds of scores, which are not stored with these; score again, "
                "or pass another `test`"
            )
        return inference.bet(self.sample, self.threshold, self.bounds)

    @property
    def is_tested(self) -> BoolArray:
        """Whether each test can be made."""
        return np.asarray(self.moments.status == OK)

    @property
    def is_alike(self) -> BoolArray:
        """Whether the values of each test (T,) do not vary, except for rounding."""
        return np.asarray(self.moments.status == DEGENERATE)

    @property
    def rounding(self) -> FloatArray:
        """Bound (T,) of the rounding error of each mean."""
        return rounding_bound(self.size, MODEL_TERMS)

    @property
    def direction(self) -> FloatArray:
        """Side (T,) of its threshold on which each mean lies: 1, -1, or 0 within rounding."""
        distance = self.moments.mean - self.threshold
        # a threshold such as 0.1 is itself rounded, as the numbers are
        tolerance = self.rounding + RESOLUTION * np.abs(self.threshold)
        return np.where(np.abs(distance) <= tolerance, 0.0, np.sign(distance))

    @property
    def units(self) -> str:
        """Word for the independent units."""
        return "documents" if self.is_clustered else "examples"


def size_of(*values: NDArray[np.floating]) -> FloatArray:
    """Return the joint size (T,) of matrices (..., T): the sum of their root mean squares.

    Missing values are ignored; a column without any value has size 0.
    """
    total = np.zeros(values[0].shape[-1])
    for matrix in values:
        rows = matrix.reshape(-1, matrix.shape[-1])
        n = np.maximum(1, (~np.isnan(rows)).sum(axis=0))
        total = total + np.sqrt(np.nansum(np.square(rows, dtype=np.float64), axis=0) / n)
    return total


def size_of_scores(sample: Sample) -> FloatArray:
    """Return the size (T,) of the terms of scores: at least 1, the score of uniform attention."""
    return np.asarray(np.fmax(1.0, np.abs(sample.moments.mean)))
