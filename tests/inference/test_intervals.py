"""Intervals of skewed means: against the transformation itself, and what they cover."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from headroles.errors import StatisticsError
from headroles.inference import Sample, skewed_interval, t_interval


def test_limits_are_where_the_transformation_is_the_quantile_of_t() -> None:
    values = np.random.default_rng(1).exponential(size=40)
    found = skewed_interval(Sample.of(values[:, None]), confidence=0.9)
    skewness = stats.skew([*values, 2 * values.max() - values.mean()])

    def transformed(mean: float) -> float:
        w = (values.mean() - mean) / values.std(ddof=1)
        return w + skewness * w**2 / 3 + skewness**2 * w**3 / 27 + skewness / 240

    for limit, level in ((found.ci_low, 0.95), (found.ci_high, 0.05)):
        assert transformed(limit[0]) == pytest.approx(stats.t.ppf(level, 39) / np.sqrt(40))


def test_covers_where_t_does_not() -> None:
    """Squares of normal values whose deviations differ: the shape of squared derivatives."""
    rng = np.random.default_rng(2)
    values = (rng.normal(size=(100, 3000)) * rng.exponential(size=(100, 3000))) ** 2
    mean = 2.0
    covered = {}
    for name, find in (("skewed", skewed_interval), ("t", t_interval)):
        limits = find(Sample.of(values), confidence=0.95)
        covered[name] = ((limits.ci_low <= mean) & (mean <= limits.ci_high)).mean()
    assert covered["t"] < 0.88
    assert 0.94 < covered["skewed"] < 0.99


def test_values_without_skewness_have_nearly_the_interval_of_t() -> None:
    values = 50 + np.random.default_rng(3).normal(size=(2000, 4))
    found, expected = skewed_interval(Sample.of(values)), t_interval(values)
    assert found.ci_high - found.ci_low == pytest.approx(
        expected.ci_high - expected.ci_low, rel=0.05
    )


def test_columns_that_cannot_be_tested() -> None:
    values = np.column_stack([np.full(5, np.nan), np.full(5, 0.25), np.arange(5.0)])
    found = skewed_interval(Sample.of(values))
    assert np.isnan(found.ci_low[0])
    assert (found.ci_low[1], found.ci_high[1]) == (0.25, 0.25)
    assert 0 <= found.ci_low[2] < 2 < found.ci_high[2]


@pytest.mark.parametrize(
    "sample",
    [
        Sample.of([[-1.0], [2.0], [3.0]]),
        Sample.of([[1.0], [2.0], [np.nan]]),
        Sample.of([[1.0], [2.0], [3.0]], clusters=[0, 0, 1]),
    ],
)
def test_what_it_is_not_for(sample: Sample) -> None:
    with pytest.raises(StatisticsError, match="independent values >= 0"):
        skewed_interval(sample)
