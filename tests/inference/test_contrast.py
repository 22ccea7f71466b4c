"""Contrasts of independent means against Welch's test of SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from headroles.errors import StatisticsError
from headroles.inference import DEGENERATE, UNTESTABLE, Sample, contrast_sample
from tests.inference.conftest import one_sample_t

RNG = np.random.default_rng(4)
ONE, OTHER, THIRD = (RNG.normal(0.5, sd, (n, 3)) for sd, n in ((1, 12), (3, 40), (2, 9)))


def test_of_two_means_is_welchs_test() -> None:
    sample = contrast_sample([Sample.of(ONE), Sample.of(OTHER)], [[1, -1]])
    found = one_sample_t(sample, 0, alternative="two-sided")
    expected = stats.ttest_ind(ONE, OTHER, equal_var=False)
    assert found.p_value == pytest.approx(expected.pvalue)
    interval = expected.confidence_interval()
    assert found.ci_low == pytest.approx(interval.low)
    assert found.ci_high == pytest.approx(interval.high)


def test_less_the_mean_of_the_others() -> None:
    found = contrast_sample([Sample.of(one) for one in (ONE, OTHER, THIRD)], [[1, -0.5, -0.5]])
    weights = ((ONE, 1), (OTHER, 1 / 4), (THIRD, 1 / 4))
    errors = [stats.sem(one) ** 2 * weight for one, weight in weights]
    moments = found.moments
    assert moments.mean == pytest.approx(ONE.mean(0) - OTHER.mean(0) / 2 - THIRD.mean(0) / 2)
    assert moments.standard_error == pytest.approx(np.sqrt(sum(errors)))
    parts = sum(error**2 / df for error, df in zip(errors, (11, 39, 8), strict=True))
    assert moments.df == pytest.approx(sum(errors) ** 2 / parts)
    assert moments.n.tolist() == [61] * 3


def test_contrasts_come_one_after_the_other() -> None:
    samples = [Sample.of(ONE), Sample.of(OTHER)]
    both = contrast_sample(samples, [[1, -1], [0, 1]]).moments
    assert both.mean == pytest.approx([*(ONE.mean(0) - OTHER.mean(0)), *OTHER.mean(0)])
    assert both.n.tolist() == [52] * 3 + [40] * 3


def test_without_errors_there_is_no_test() -> None:
    alike, single = np.ones((6, 1)), np.full((6, 1), np.nan)
    single[0] = 1
    for other, expected in ((alike, DEGENERATE), (single, UNTESTABLE)):
        found = contrast_sample([Sample.of(2 * alike), Sample.of(other)], [[1, -1]])
        assert found.moments.status.tolist() == [expected]


def test_samples_that_do_not_fit() -> None:
    with pytest.raises(StatisticsError, match="weights have shape"):
        contrast_sample([Sample.of(ONE)], [[1, -1]])
    with pytest.raises(StatisticsError, match="weights have shape"):
        contrast_sample([Sample.of(ONE), Sample.of(OTHER[:, :2])], [[1, -1]])
