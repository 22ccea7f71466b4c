"""Samples: moments of many columns, worked out once."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from headroles.errors import StatisticsError
from headroles.inference import (
    Moments,
    Sample,
    bca_interval,
    sign_flip_test,
    simultaneous_intervals,
    step_down_max_t,
    t_interval,
    t_test,
)
from headroles.inference import sample as module

Array = NDArray[np.float64]


def assert_same(one: Moments, other: Moments) -> None:
    for field in fields(Moments):
        found, expected = getattr(one, field.name), getattr(other, field.name)
        if field.name == "status":
            assert found.tolist() == expected.tolist()
        else:  # a column alone is summed in another order
            np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_a_sample_is_its_own(gappy: Array) -> None:
    sample = Sample.of(gappy)
    assert Sample.of(sample) is sample


def test_clusters_of_one_are_no_clusters(gappy: Array) -> None:
    named = Sample.of(gappy, [f"{number:02}" for number in range(40)])
    np.testing.assert_array_equal(named.clusters, Sample.of(gappy).clusters)


def test_skewness_is_that_of_scipy(gappy: Array) -> None:
    expected = stats.skew(gappy, axis=0, nan_policy="omit")
    np.testing.assert_allclose(Sample.of(gappy).skewness, expected, rtol=1e-6)


@pytest.mark.parametrize("known", [False, True])
def test_some_columns(gappy: Array, clusters: NDArray[np.str_], known: bool) -> None:
    """What was worked out before stays, and is what would be worked out alone."""
    columns = np.array([6, 2, 0])
    sample = Sample.of(gappy, clusters)
    if known:
        assert sample.moments is sample.moments
    alone = Sample.of(gappy[:, columns], clusters)
    assert_same(sample.take(columns).moments, alone.moments)


def test_sums_about_a_threshold(gappy: Array, clusters: NDArray[np.str_]) -> None:
    sample = Sample.of(gappy, clusters)
    limits = np.linspace(0, 3, 8)
    expected = [
        np.nansum((gappy - limits)[sample.clusters == cluster], axis=0)
        for cluster in range(sample.clusters.max() + 1)
    ]
    np.testing.assert_allclose(sample.about(limits), expected, atol=1e-12)
    assert sample.about(limits) is sample.about(limits)


def test_is_described_once_whatever_is_asked_of_it(
    gappy: Array, clusters: NDArray[np.str_], monkeypatch: pytest.MonkeyPatch
) -> None:
    described, summed = [], []
    describe, sums = module.describe, module.cluster_sums

    def count(data: Array, *rest: object) -> Moments:
        described.append(data.shape[1])
        return describe(data, *rest)  # type: ignore[arg-type]

    def count_sums(data: Array, codes: NDArray[np.intp]) -> Array:
        summed.append(data.shape)
        return sums(data, codes)

    monkeypatch.setattr(module, "describe", count)
    monkeypatch.setattr(module, "cluster_sums", count_sums)
    sample = Sample.of(gappy, clusters)
    for alternative in ("greater", "less", "two-sided"):
        t_test(sample, 3, alternative=alternative)  # type: ignore[arg-type]
        sign_flip_test(sample, 3, n_resamples=9, seed=0, alternative=alternative)  # type: ignore[arg-type]
        step_down_max_t(sample, 3, n_resamples=9, seed=0, alternative=alternative)  # type: ignore[arg-type]
    t_interval(sample)
    bca_interval(sample, n_resamples=9, seed=0)
    simultaneous_intervals(sample, n_resamples=99, seed=0)
    assert sum(described) == 8
    assert len(summed) == 3  # sizes, sums about the threshold, and sums about the means


@pytest.mark.parametrize("values", [[1.0, 2.0], [["a"]], [[np.inf]]])
def test_bad_values(values: list[object]) -> None:
    with pytest.raises(StatisticsError):
        Sample.of(values)
