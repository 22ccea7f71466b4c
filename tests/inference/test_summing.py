"""Moments of values in blocks: those of all values at once."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from headroles.errors import StatisticsError
from headroles.inference import MeansInBlocks, MomentsInBlocks, Sample

RNG = np.random.default_rng(7)


def values_with_gaps(n: int, n_tests: int) -> np.ndarray:
    """Skewed values, a column of none, one of a single value, one that is constant."""
    values = RNG.exponential(size=(n, n_tests)).astype(np.float32)
    values[RNG.random(values.shape) < 0.2] = np.nan
    values[:, 0] = np.nan
    values[1:, 1] = np.nan
    values[:, 2] = 1.5
    values[:, 3] = np.where(np.arange(n) < 3, 0.25, np.nan)
    return values


def in_blocks(
    values: np.ndarray, clusters: np.ndarray | None, ends: list[int], ddof: int
) -> Sample:
    means = MeansInBlocks(values.shape[1])
    parts = list(zip([0, *ends], [*ends, len(values)], strict=True))
    for start, end in parts:
        means.add(values[start:end])
    moments = MomentsInBlocks(means, clustered=clusters is not None, ddof=ddof)
    for start, end in parts:
        moments.add(values[start:end], None if clusters is None else clusters[start:end])
    return moments.sample()


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("sizes", [None, [10] * 12, [3, 30, 1, 1, 25, 60], [120]])
def test_moments_are_those_of_all_values(sizes: list[int] | None, ddof: int) -> None:
    values = values_with_gaps(120 if sizes is None else sum(sizes), 9)
    clusters = None if sizes is None else np.repeat(np.arange(len(sizes)), sizes)
    ends = [40, 41, 90] if sizes is None else list(np.cumsum(sizes)[:-1:2])
    found, expected = in_blocks(values, clusters, ends, ddof), Sample.of(values, clusters, ddof)
    for one in fields(expected.moments):
        ours, theirs = (getattr(each.moments, one.name) for each in (found, expected))
        if ours.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12, err_msg=one.name)
        else:
            np.testing.assert_array_equal(ours, theirs, err_msg=one.name)
    there = expected.moments.status == ""
    np.testing.assert_allclose(found.skewness[there], expected.skewness[there], rtol=1e-4)
    assert found.n_clusters == expected.n_clusters


def test_columns_that_vary_by_rounding_get_their_mean_alone() -> None:
    values = (1 + RNG.random((30, 3)) * [1e-9, 1, 1]).astype(np.float64)
    values[:, 2] = 0
    alike = np.array([True, False, True])
    found = in_blocks(values, None, [10], 1).with_means_alone(alike)
    expected = Sample.of(values).with_means_alone(alike)
    np.testing.assert_array_equal(found.moments.status, expected.moments.status)
    np.testing.assert_allclose(found.moments.mean, expected.moments.mean, rtol=1e-12)
    assert found.moments.sd[0] == 0


def test_values_that_were_not_kept_are_not_made_up() -> None:
    sample = in_blocks(RNG.random((20, 2)), None, [5], 1)
    for needs_values in (
        lambda: sample.about(0),
        lambda: sample.gaps,
        lambda: sample.cluster_sizes,
    ):
        with pytest.raises(StatisticsError, match="only sums of the values"):
            needs_values()
