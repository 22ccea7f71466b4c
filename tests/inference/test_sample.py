"""Samples: moments of many columns, worked out once."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from headroles.errors import StatisticsError
from headroles.inference import Moments, Sample

Array = NDArray[np.float64]


def assert_same(one: Moments, other: Moments) -> None:
    for field in fields(Moments):
        found, expected = getattr(one, field.name), getattr(other, field.name)
        if field.name == "status":
            assert found.tolist() == expected.tolist()
        else:  # a column alone is summed in another order
            np.testing.assert_allclose(found, expected, rtol=1e-13)


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


@pytest.mark.parametrize("values", [[1.0, 2.0], [["a"]], [[np.inf]]])
def test_bad_values(values: list[object]) -> None:
    with pytest.raises(StatisticsError):
        Sample.of(values)
