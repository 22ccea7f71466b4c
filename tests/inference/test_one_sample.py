"""The t-test against scipy, and what happens where there is nothing to test."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from headroles.errors import StatisticsError
from headroles.inference import DEGENERATE, OK, UNTESTABLE, one_sample_t


@pytest.fixture
def values() -> NDArray[np.float64]:
    """40 examples x 30 tests, skewed, with gaps of three patterns."""
    data = np.random.default_rng(0).gamma(2, 1.5, size=(40, 30))
    data[:7, 5:12] = np.nan
    data[30:, 20:] = np.nan
    return data


class TestAgainstScipy:
    def test_statistic_and_p_value(self, values: NDArray[np.float64]) -> None:
        result = one_sample_t(values, threshold=3)
        expected = stats.ttest_1samp(values, 3, nan_policy="omit", alternative="greater")
        np.testing.assert_allclose(result.statistic, expected.statistic, rtol=1e-12)
        np.testing.assert_allclose(result.p_value, expected.pvalue, rtol=1e-12)

    @pytest.mark.parametrize("confidence", [0.9, 0.95])
    def test_interval(self, values: NDArray[np.float64], confidence: float) -> None:
        result = one_sample_t(values, 3, confidence=confidence)
        for test in (0, 7, 25):
            column = values[:, test][~np.isnan(values[:, test])]
            expected = stats.ttest_1samp(column, 3).confidence_interval(confidence)
            assert (result.ci_low[test], result.ci_high[test]) == pytest.approx(expected)

    def test_moments(self, values: NDArray[np.float64]) -> None:
        result = one_sample_t(values, 3)
        assert result.n.tolist() == (~np.isnan(values)).sum(0).tolist()
        np.testing.assert_allclose(result.mean, np.nanmean(values, 0))
        np.testing.assert_allclose(result.sd, np.nanstd(values, 0, ddof=1))
        np.testing.assert_allclose(result.effect_size, (result.mean - 3) / result.sd)


class TestPublishedExample:
    SCORES = ([3.4], [2.9], [4.1], [3.8], [3.0])

    @pytest.mark.parametrize(
        ("ddof", "sd", "t", "p"),
        [(0, 0.458694, 2.144938, 0.049270), (1, 0.512835, 1.918491, 0.063746)],
    )
    def test_both_deviations(self, ddof: int, sd: float, t: float, p: float) -> None:
        result = one_sample_t(self.SCORES, 3, ddof=ddof)
        assert result.mean[0] == pytest.approx(3.44)
        assert result.sd[0] == pytest.approx(sd, abs=1e-6)
        assert result.p_value[0] == pytest.approx(p, abs=1e-6)
        if ddof == 1:
            assert result.statistic[0] == pytest.approx(t, abs=1e-6)


class TestNothingToTest:
    def test_fewer_than_two_examples(self) -> None:
        result = one_sample_t([[5.0, np.nan, 4.0], [np.nan, np.nan, 5.0]], 3)
        assert result.status.tolist() == [UNTESTABLE, UNTESTABLE, OK]
        assert result.n.tolist() == [1, 0, 2]
        assert result.mean[0] == 5
        assert np.isnan(result.mean[1])
        assert np.isnan(result.p_value[:2]).all()

    @pytest.mark.parametrize("value", [2.0, 3.0, 4.0])
    def test_zero_variance(self, value: float) -> None:
        result = one_sample_t(np.full((5, 1), value), 3)
        assert result.status[0] == DEGENERATE
        assert result.mean[0] == result.ci_low[0] == result.ci_high[0] == value
        assert np.isnan([result.p_value[0], result.statistic[0], result.effect_size[0]]).all()

    def test_rounding_is_no_variance(self) -> None:
        noisy = np.nextafter(np.float32(3.5), np.array([[3], [4], [4]], dtype=np.float32))
        assert np.std(noisy.astype(float)) > 0
        assert one_sample_t(noisy, 3).status[0] == DEGENERATE

    def test_no_examples_at_all(self) -> None:
        result = one_sample_t(np.zeros((0, 3)), 3)
        assert result.status.tolist() == [UNTESTABLE] * 3


@pytest.mark.parametrize(
    ("values", "message"),
    [([1.0, 2.0], "1 dimensions"), ([[np.inf], [1.0]], "infinity")],
)
def test_bad_input(values: list[object], message: str) -> None:
    with pytest.raises(StatisticsError, match=message):
        one_sample_t(values, 3)


def test_size_of_the_test_under_the_null() -> None:
    data = np.random.default_rng(1).normal(3, 1, size=(30, 20_000))
    rejected = (one_sample_t(data, 3).p_value < 0.05).mean()
    assert rejected == pytest.approx(0.05, abs=3 * np.sqrt(0.05 * 0.95 / 20_000))
