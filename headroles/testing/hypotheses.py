"""Hypotheses: whatever is tested is a matrix of values, with a threshold for each column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headroles import inference
from headroles.errors import StatisticsError, UsageError
from headroles.inference import DEGENERATE, OK, Bounds, Moments, Sample
from headroles.inference import RunningBets as RunningBets
from headroles.rounding import MODEL_TERMS, rounding_bound

IntArray = NDArray[np.intp]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Hypotheses:
    """For each of T tests, H0: the mean of a column of values is ``threshold``, at its limit.

    ``sample`` has the values (examples, T), NaN where an example has none, and the clusters of the
    examples. ``threshold`` (T,) is in units of the values. ``size`` (T,) is how large the numbers
    are, added up, that the values are sums or differences of: it decides what is rounding.
    ``labels`` (T,) number what the tests are of, and ``names`` are what messages call these.
    ``families`` (T,) label what is corrected together. ``bounds`` are those of the values, None
    where they are not known. ``n_population`` is the number of units (clusters, or examples) of
    which those of the sample were drawn in random order, if the means are those over all of them;
    None for means over all units there could be. ``called`` is what messages call all values
    together, if they are not the scores of roles. ``bets`` are those that were made on values that
    came in blocks, and were not kept. ``n_draws`` is the number of random draws that examples were
    crossed with, None if nothing was drawn.
    """

    sample: Sample
    threshold: FloatArray
    size: FloatArray
    labels: IntArray
    names: tuple[str, ...]
    families: IntArray
    is_clustered: bool
    bounds: Bounds | None = None
    n_population: int | None = None
    called: str = ""
    bets: RunningBets | None = None
    n_draws: int | None = None

    @classmethod
    def of(
        cls,
        values: NDArray[np.floating] | Sample,
        threshold: ArrayLike,
        *,
        size: ArrayLike,
        labels: IntArray | None = None,
        names: tuple[str, ...] = ("tests",),
        family: str = "all",
        clusters: IntArray | None = None,
        is_clustered: bool | None = None,
        bounds: Bounds | None = None,
        n_population: int | None = None,
        called: str = "",
        bets: RunningBets | None = None,
        n_draws: int | None = None,
    ) -> Hypotheses:
        """Hypotheses of values; columns that vary by rounding alone get their mean for all values.

        Args:
            values: (examples, T), or a sample, which has its clusters.
            threshold: a number, or one for each test.
            size: a number, or one for each test: `size_of` what was subtracted, for example.
            labels: (T,); None for tests of one kind.
            names: of the kinds.
            family: that of `LevelOptions`.
            clusters: (examples,) of values that are no sample.
            is_clustered: whether a sample is clustered.
            bounds: of the values, if they are known.
            n_population: of which the units were drawn, if it is finite.
            called: what messages call the values.
            bets: made on values that came in blocks.
            n_draws: that examples were crossed with.

        Raises:
            StatisticsError: what `Sample.of` refuses, and a size that is negative or not finite.
        """
        sample = Sample.of(values, clusters)
        sizes = np.broadcast_to(np.asarray(size, dtype=np.float64), (sample.n_tests,))
        if not (np.isfinite(sizes) & (sizes >= 0)).all():
            raise StatisticsError(
                "a size of what was summed or subtracted is below 0 or not finite"
            )
        kinds = np.zeros(sample.n_tests, dtype=np.intp) if labels is None else labels
        return cls(
            sample=_without_rounding(sample, rounding_bound(sizes, MODEL_TERMS)),
            threshold=np.broadcast_to(np.asarray(threshold, dtype=np.float64), kinds.shape),
            size=sizes,
            labels=kinds,
            names=names,
            families=families_of(kinds, family),
            is_clustered=clusters is not None if is_clustered is None else is_clustered,
            bounds=bounds,
            n_population=n_population,
            called=called,
            bets=bets,
            n_draws=n_draws,
        )

    @classmethod
    def joined(cls, parts: Sequence[Hypotheses]) -> Hypotheses:
        """Tests of different examples, all corrected together, of which t alone can be made."""
        return cls.of(
            inference.SummedSample.joined([one.sample for one in parts]),
            np.concatenate([one.threshold for one in parts]),
            size=np.concatenate([one.size for one in parts]),
            called=parts[0].called,
            n_draws=parts[0].n_draws,
        )

    @classmethod
    def of_crossed(
        cls, values: NDArray[np.floating], *, size: ArrayLike, called: str = ""
    ) -> Hypotheses:
        """H0: the mean of values (examples, draws, T), over other examples and draws, is 0."""
        crossed = inference.crossed_sample(values)
        return cls.of(crossed, 0.0, size=size, called=called, n_draws=values.shape[1])

    @classmethod
    def of_draws(
        cls, observed: ArrayLike, drawn: NDArray[np.floating], *, size: ArrayLike
    ) -> Hypotheses:
        """H0: each of T observations is like draws (B, T), for the test `RANK`.

        The draws are the values and the observations the thresholds: H1 ``"greater"`` is that an
        observation is larger than draws are. Draws of one column may serve all observations.
        """
        limits = np.atleast_1d(np.asarray(observed, dtype=np.float64))
        return cls.of(np.broadcast_to(drawn, (len(drawn), len(limits))), limits, size=size)

    def against(self, threshold: ArrayLike) -> Hypotheses:
        """The same tests against another threshold."""
        limits = np.asarray(threshold, dtype=np.float64)
        return replace(self, threshold=np.broadcast_to(limits, self.labels.shape), bets=None)

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
        return inference.t_test(self.sample, self.threshold).effect_size

    @property
    def has_bounds(self) -> bool:
        """Whether the bounds of the values are known, or bets were made by them already."""
        return self.bounds is not None or self.bets is not None

    @cached_property
    def betting(self) -> RunningBets:
        """The bets on all values. Raises UsageError where the bounds of values are not known."""
        if self.bets is not None:
            return self.bets
        if self.bounds is None:
            raise UsageError(
                "betting needs the bounds of scores, which are not kept with these; score again, "
                "or pass another test (--test)"
            )
        bets = RunningBets(self.threshold, self.n_population)
        bets.add(self.sample, self.bounds)
        return bets

    @property
    def is_tested(self) -> NDArray[np.bool_]:
        """Which tests can be made."""
        return np.asarray(self.moments.status == OK)

    @property
    def is_alike(self) -> NDArray[np.bool_]:
        """Which tests (T,) are of values that do not vary, but for rounding."""
        return np.asarray(self.moments.status == DEGENERATE)

    @cached_property
    def columns_by_family(self) -> list[IntArray]:
        """Places of the tests of each family."""
        return [np.flatnonzero(self.families == label) for label in np.unique(self.families)]

    @property
    def rounding(self) -> FloatArray:
        """How far (T,) a mean may be off by rounding alone."""
        return rounding_bound(self.size, MODEL_TERMS)

    @property
    def direction(self) -> FloatArray:
        """On which side (T,) of its threshold each mean lies: 1, -1, or 0 within rounding."""
        distance = self.moments.mean - self.threshold
        resolution = inference.resolution_of(self.sample.values)
        tolerance = self.rounding + resolution * np.abs(self.threshold)
        return np.where(np.abs(distance) <= tolerance, 0.0, np.sign(distance))

    @property
    def units(self) -> str:
        """What is independent, for people."""
        return "documents" if self.is_clustered else "examples"


def families_of(labels: IntArray, family: str) -> IntArray:
    """What is corrected together (T,), for the ``family`` of `LevelOptions`."""
    return labels if family == "role" else np.zeros_like(labels)


def size_of(*values: NDArray[np.floating]) -> FloatArray:
    """How large (T,) matrices (..., T) are together: the sum of their root mean squares.

    Missing values have no part; a column without any has size 0.
    """
    total = np.zeros(values[0].shape[-1])
    for one in values:
        rows = one.reshape(-1, one.shape[-1])
        n = np.maximum(1, (~np.isnan(rows)).sum(axis=0))
        total = total + np.sqrt(np.nansum(np.square(rows, dtype=np.float64), axis=0) / n)
    return total


def size_of_scores(sample: Sample) -> FloatArray:
    """How large (T,) scores are of: uniform attention is 1, however small a score is."""
    return np.asarray(np.fmax(1.0, np.abs(sample.moments.mean)))


def _without_rounding(sample: Sample, rounding: FloatArray) -> Sample:
    """The same sample with the mean for all values of columns that vary by rounding alone.

    The procedures of `headroles.inference` know no unit and take rounding relative to the mean.
    Scores less uniform attention, contrasts, and differences of scores are rounding around 0 where
    there is nothing else, which relatively is much.
    """
    alike = sample.moments.sd < rounding  # false for NaN: single examples
    return sample.with_means_alone(alike) if alike.any() else sample
