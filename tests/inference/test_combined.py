"""Contrasts of means, and means over examples crossed with draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from headroles.errors import StatisticsError
from headroles.inference import DEGENERATE, UNTESTABLE, Sample, contrast_sample, crossed_sample
from tests.inference.conftest import crossed_t, one_sample_t


def test_one_draw_is_the_t_test_of_scipy() -> None:
    values = np.random.default_rng(1).normal(0.3, 1, size=(30, 1, 4))
    found = crossed_t(values, 0.9)
    expected = stats.ttest_1samp(values[:, 0], 0)
    assert found.p_value == pytest.approx(expected.pvalue)
    interval = expected.confidence_interval(0.9)
    assert found.ci_low == pytest.approx(interval.low)
    assert found.ci_high == pytest.approx(interval.high)


def test_is_the_quasi_f_of_clark() -> None:
    """min F' = F1 F2 / (F1 + F2), on (F1 + F2)^2 / (F1^2 / n2 + F2^2 / n1) degrees of freedom."""
    rng = np.random.default_rng(2)
    values = 0.4 + rng.normal(size=(20, 1, 1)) + rng.normal(size=(1, 6, 1))
    values = values + rng.normal(size=(20, 6, 1))
    f1 = stats.ttest_1samp(values.mean(1)[:, 0], 0).statistic ** 2
    f2 = stats.ttest_1samp(values.mean(0)[:, 0], 0).statistic ** 2
    min_f = f1 * f2 / (f1 + f2)
    df = (f1 + f2) ** 2 / (f1**2 / 5 + f2**2 / 19)
    found = crossed_t(values)
    assert found.df[0] == pytest.approx(df)
    assert found.p_value[0] == pytest.approx(stats.f.sf(min_f, 1, df))


@pytest.mark.parametrize("n_draws", [2, 3, 4])
@pytest.mark.parametrize("share", [1.0, 8.0])
def test_few_draws_do_not_err_too_often(n_draws: int, share: float) -> None:
    """Satterthwaite's degrees of freedom reject up to 12.6 % where draws vary more."""
    rng = np.random.default_rng(4)
    draws = rng.normal(size=(1, n_draws, 4000)) * share / np.sqrt(40)
    values = draws + rng.normal(size=(40, 1, 4000))
    found = crossed_t(values)
    assert (found.p_value < 0.05).mean() < 0.056
    assert ((found.ci_low < 0) & (found.ci_high > 0)).mean() > 0.944


def test_what_does_not_vary() -> None:
    values = np.ones((4, 3, 2))
    values[:, :, 1] = np.arange(4)[:, None]
    found = crossed_t(values)
    assert np.isnan(found.p_value[0])
    assert (found.ci_low[0], found.ci_high[0]) == (1, 1)
    assert found.p_value[1] == pytest.approx(stats.ttest_1samp([0, 1, 2, 3], 0).pvalue)


@pytest.mark.parametrize(
    "values", [np.ones((3, 2)), np.ones((1, 2, 2)), np.full((3, 2, 1), np.nan)]
)
def test_what_it_is_not_defined_for(values: np.ndarray) -> None:
    with pytest.raises(StatisticsError, match="values"):
        crossed_sample(values)


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
