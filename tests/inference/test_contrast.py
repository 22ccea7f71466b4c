"""Contrasts of independent means against Welch's test of SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from headroles.errors import StatisticsError
from headroles.inference import contrast_test


def test_of_two_means_is_welchs_test() -> None:
    rng = np.random.default_rng(4)
    one, other = rng.normal(0.5, 1, (12, 3)), rng.normal(0, 3, (40, 3))
    found = contrast_test(
        [one.mean(0), other.mean(0)],
        [stats.sem(one), stats.sem(other)],
        [np.full(3, 11), np.full(3, 39)],
        [[1, -1]],
    )
    expected = stats.ttest_ind(one, other, equal_var=False)
    assert found.p_value[0] == pytest.approx(expected.pvalue)
    interval = expected.confidence_interval()
    assert found.interval().ci_low[0] == pytest.approx(interval.low)
    assert found.interval().ci_high[0] == pytest.approx(interval.high)


def test_less_the_mean_of_the_others() -> None:
    found = contrast_test([[3.0], [1.0], [2.0]], [[1.0]] * 3, [[9.0]] * 3, [[1, -0.5, -0.5]])
    assert found.estimate[0, 0] == 1.5
    assert found.standard_error[0, 0] == pytest.approx(np.sqrt(1.5))
    assert found.df[0, 0] == pytest.approx(1.5**2 / ((1 + 2 / 16) / 9))


def test_without_errors_there_is_no_answer() -> None:
    assert np.isnan(
        contrast_test([[1.0], [2.0]], [[0.0]] * 2, [[5.0]] * 2, [[1, -1]]).p_value
    ).all()


def test_arrays_that_do_not_fit() -> None:
    with pytest.raises(StatisticsError, match="do not fit"):
        contrast_test([[1.0], [2.0]], [[1.0]], [[1.0], [1.0]], [[1, -1]])
