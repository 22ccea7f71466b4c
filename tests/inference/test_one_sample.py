"""The t-test and samples against scipy and statsmodels; ranks among draws; contrasts of means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, stats
from statsmodels.stats.contingency_tables import mcnemar

from headroles.errors import StatisticsError
from headroles.inference import (
    DEGENERATE,
    OK,
    UNTESTABLE,
    Sample,
    contrast_sample,
    crossed_sample,
    mcnemar_test,
    rank_test,
)
from tests.inference.conftest import crossed_t, one_sample_t, required_examples


@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_is_that_of_scipy(alternative: str, confidence: float) -> None:
    """40 examples x 30 tests, skewed, with gaps of three patterns."""
    values = np.random.default_rng(0).gamma(2, 1.5, size=(40, 30))
    values[:7, 5:12] = np.nan
    values[30:, 20:] = np.nan
    result = one_sample_t(values, 3, confidence, alternative=alternative)
    expected = stats.ttest_1samp(values, 3, nan_policy="omit", alternative=alternative)
    np.testing.assert_allclose(result.statistic, expected.statistic, rtol=1e-12)
    np.testing.assert_allclose(result.p_value, expected.pvalue, rtol=1e-12)
    for test in (0, 7, 25):
        column = values[:, test][~np.isnan(values[:, test])]
        limits = stats.ttest_1samp(column, 3).confidence_interval(confidence)
        assert (result.ci_low[test], result.ci_high[test]) == pytest.approx(limits)
    assert result.n.tolist() == (~np.isnan(values)).sum(0).tolist()
    np.testing.assert_allclose(result.mean, np.nanmean(values, 0))
    np.testing.assert_allclose(result.sd, np.nanstd(values, 0, ddof=1))
    np.testing.assert_allclose(result.effect_size, (result.mean - 3) / result.sd)


@pytest.mark.parametrize(
    ("ddof", "sd", "t", "p"), [(0, 0.458694, 2.144938, 0.049270), (1, 0.512835, 1.918491, 0.063746)]
)
def test_published_example(ddof: int, sd: float, t: float, p: float) -> None:
    result = one_sample_t([[3.4], [2.9], [4.1], [3.8], [3.0]], 3, ddof=ddof)
    assert result.mean[0] == pytest.approx(3.44)
    assert result.sd[0] == pytest.approx(sd, abs=1e-6)
    assert result.p_value[0] == pytest.approx(p, abs=1e-6)
    if ddof == 1:
        assert result.statistic[0] == pytest.approx(t, abs=1e-6)


def test_nothing_to_test() -> None:
    result = one_sample_t([[5.0, np.nan, 4.0], [np.nan, np.nan, 5.0]], 3)
    assert result.status.tolist() == [UNTESTABLE, UNTESTABLE, OK]
    assert result.n.tolist() == [1, 0, 2]
    assert result.mean[0] == 5
    assert np.isnan(result.mean[1])
    assert np.isnan(result.p_value[:2]).all()
    for value in (2.0, 3.0, 4.0):
        result = one_sample_t(np.full((5, 1), value), 3)
        assert result.status[0] == DEGENERATE
        assert result.mean[0] == result.ci_low[0] == result.ci_high[0] == value
        assert np.isnan([result.p_value[0], result.statistic[0], result.effect_size[0]]).all()
    # What rounding leaves is no variance.
    noisy = np.nextafter(np.float32(3.5), np.array([[3], [4], [4]], dtype=np.float32))
    assert np.std(noisy.astype(float)) > 0
    assert one_sample_t(noisy, 3).status[0] == DEGENERATE


class TestClusters:
    def test_against_robust_regression_on_a_constant(self, gappy: NDArray[np.float64]) -> None:
        """Clusters of one size, of which the usual factor G / (G - 1) is the correction."""
        labels = np.random.default_rng(0).permutation(40) % 8
        result = one_sample_t(gappy, 3, clusters=labels, alternative="two-sided")
        for test in np.flatnonzero(~np.isnan(gappy).any(axis=0)):
            y = gappy[:, test] - 3
            fit = sm.OLS(y, np.ones(len(y))).fit(
                cov_type="cluster", cov_kwds={"groups": labels}, use_t=True
            )
            assert result.n_clusters[test] == labels.max() + 1
            assert result.standard_error[test] == pytest.approx(fit.bse[0], rel=1e-10)
            assert result.statistic[test] == pytest.approx(fit.tvalues[0], rel=1e-10)
            assert result.p_value[test] == pytest.approx(fit.pvalues[0], rel=1e-9)
            interval = (result.ci_low[test] - 3, result.ci_high[test] - 3)
            assert interval == pytest.approx(tuple(fit.conf_int()[0]))

    def test_error_and_degrees_of_freedom_from_matrices(
        self, gappy: NDArray[np.float64], clusters: NDArray[np.str_]
    ) -> None:
        """CR2 of Bell and McCaffrey (2002) as it is written, for regression on a constant."""
        result = one_sample_t(gappy, 3, clusters=clusters)
        for test in range(gappy.shape[1]):
            there = ~np.isnan(gappy[:, test])
            y, labels = gappy[there, test], clusters[there]
            n = len(y)
            residual_maker = np.eye(n) - np.full((n, n), 1 / n)
            vectors = []
            for name in np.unique(labels):
                own = np.flatnonzero(labels == name)
                adjustment = np.linalg.inv(linalg.sqrtm(residual_maker[np.ix_(own, own)]))
                vectors.append(residual_maker[:, own] @ adjustment @ np.ones(len(own)) / n)
            p = np.array(vectors)
            eigenvalues = np.linalg.eigvalsh(p @ p.T)
            assert result.standard_error[test] == pytest.approx(np.sqrt(((p @ y) ** 2).sum()))
            df = eigenvalues.sum() ** 2 / (eigenvalues**2).sum()
            assert result.df[test] == pytest.approx(df)
            tail = stats.t.sf(result.statistic[test], df)
            assert result.p_value[test] == pytest.approx(tail)
            assert df < result.n_clusters[test] - 1

    @pytest.mark.parametrize("ddof", [0, 1])
    def test_clusters_of_one_are_no_clusters(self, gappy: NDArray[np.float64], ddof: int) -> None:
        labels = np.random.default_rng(0).permutation(len(gappy))
        plain, clustered = (one_sample_t(gappy, 3, ddof=ddof, clusters=g) for g in (None, labels))
        for name, expected in vars(plain).items():
            np.testing.assert_array_equal(getattr(clustered, name), expected)
        assert plain.n_clusters.tolist() == plain.n.tolist()

    def test_one_cluster_or_clusters_that_do_not_vary_are_untestable(self) -> None:
        result = one_sample_t([[1.0], [2.0], [np.nan]], 0, clusters=["a", "a", "b"])
        assert result.status.tolist() == [UNTESTABLE]
        assert (result.n[0], result.n_clusters[0]) == (2, 1)
        assert result.effect_size[0] > 0
        assert np.isnan([result.p_value[0], result.standard_error[0], result.ci_low[0]]).all()
        cancelling = [[1.1], [2.3], [2.3], [1.1]]
        for values, clusters in (([[5.0], [5.0]], [0, 0]), (cancelling, [0, 0, 1, 1])):
            result = one_sample_t(values, 0, clusters=clusters)
            assert result.status.tolist() == [UNTESTABLE]
            assert np.isnan(result.p_value[0])


DRAWN = np.array([[1.0, 5.0], [2.0, np.nan], [3.0, 5.0], [4.0, 7.0]])


def test_ranks_by_hand() -> None:
    assert rank_test(DRAWN, [3, 6]).tolist() == [3 / 5, 2 / 4]
    assert rank_test(DRAWN, [3, 6], alternative="less").tolist() == [4 / 5, 3 / 4]
    assert rank_test(DRAWN, [9, 4], alternative="two-sided").tolist() == [2 / 5, 2 / 4]
    assert np.isnan(rank_test(np.full((3, 1), np.nan), 1.0)).all()
    # What differs by rounding ties.
    drawn, observed = np.array([[1.0 - 1e-9], [0.5]]), 1.0
    assert rank_test(drawn, observed).tolist() == [1 / 3]
    assert rank_test(drawn, observed, rounding=1e-8).tolist() == [2 / 3]


@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
def test_the_level_is_exact_where_the_observation_is_a_draw(alternative: str) -> None:
    values = np.random.Generator(np.random.MT19937(5)).gamma(0.3, 1, (40, 4000))
    p = rank_test(values[1:], values[0], alternative=alternative)
    assert (p <= 0.05).mean() == pytest.approx(0.05, abs=0.011)


def test_mcnemar_is_that_of_statsmodels() -> None:
    rng = np.random.default_rng(2)
    reference = rng.random((40, 1)) < 0.7
    right = reference ^ (rng.random((40, 5)) < np.array([0.02, 0.1, 0.2, 0.3, 0.5]))
    expected = []
    for column in right.T:
        known = (reference[:, 0], ~reference[:, 0])
        table = [[(answer & other).sum() for other in known] for answer in (column, ~column)]
        expected.append(float(mcnemar(table, exact=True).pvalue))
    assert mcnemar_test(right.astype(int) - reference) == pytest.approx(expected)
    assert mcnemar_test(np.zeros((3, 1))) == pytest.approx([1])  # without a difference


Array = NDArray[np.float64]


def test_skewness_is_that_of_scipy(gappy: Array) -> None:
    expected = stats.skew(gappy, axis=0, nan_policy="omit")
    np.testing.assert_allclose(Sample.from_values(gappy).skewness, expected, rtol=1e-6)


@pytest.mark.parametrize("known", [False, True])
def test_some_columns(gappy: Array, clusters: NDArray[np.str_], known: bool) -> None:
    """What was worked out before stays, and is what would be worked out alone."""
    columns = np.array([6, 2, 0])
    sample = Sample.from_values(gappy, clusters)
    if known:
        assert sample.moments is sample.moments
    taken = vars(sample.take(columns).moments)
    alone = vars(Sample.from_values(gappy[:, columns], clusters).moments)
    assert taken.pop("status").tolist() == alone.pop("status").tolist()
    assert taken.keys() == alone.keys()
    for name, expected in alone.items():  # a column alone is summed in another order
        np.testing.assert_allclose(taken[name], expected, rtol=1e-13)


Procedure = Callable[[ArrayLike, ArrayLike], Array]
PROCEDURES: dict[str, Procedure] = {
    "t": lambda values, limit: one_sample_t(values, limit).p_value,
    "t of clusters": lambda values, limit: one_sample_t(values, limit, clusters=PAIRS).p_value,
    "effect size": lambda values, limit: one_sample_t(values, limit).effect_size,
    "planning": lambda values, limit: required_examples(values, limit, 0.05),
}
PAIRS = np.arange(40) // 2
LIMITS = np.array([3, 2.5, 0, -1, 3.5, 2, 3, 0.5])
EVERY = pytest.mark.parametrize("procedure", PROCEDURES.values(), ids=[*PROCEDURES])


@EVERY
def test_columns_stand_alone_and_a_threshold_is_a_shift(procedure: Procedure, gappy: Array) -> None:
    found = procedure(gappy, LIMITS)
    alone = [procedure(gappy[:, k : k + 1], LIMITS[k])[0] for k in range(8)]
    np.testing.assert_allclose(found, alone, rtol=1e-12)
    np.testing.assert_allclose(procedure(gappy - LIMITS, 0), found, rtol=1e-9)


@EVERY
@pytest.mark.parametrize(
    ("threshold", "message"),
    [
        ([3, 3], r"shape \(2,\); give one number, or one for each of the 8 tests"),
        (np.full((1, 8), 3), r"shape \(1, 8\)"),
        ([3] * 7 + [np.nan], "missing"),
        (np.inf, "infinite"),
        ("much", "'much'; give numbers"),
    ],
)
def test_bad_thresholds(
    procedure: Procedure, gappy: Array, threshold: ArrayLike, message: str
) -> None:
    with pytest.raises(StatisticsError, match=message):
        procedure(gappy, threshold)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: rank_test(DRAWN, [1, 2, 3]), "thresholds have shape"),
        (lambda: Sample.from_values([[1.0], [2.0], [3.0]], [0, 1]), "shape"),
        (
            lambda: Sample.from_values([[1.0], [2.0], [3.0]], [0.5, 1, np.nan]),
            "integers or strings",
        ),
        (lambda: Sample.from_values([1.0, 2.0]), "values have 1 dimensions"),
        (lambda: Sample.from_values([["a"]]), "give real numbers"),
        (lambda: Sample.from_values([[np.inf]]), "values include an infinity"),
        (lambda: crossed_sample(np.ones((3, 2))), "values"),
        (lambda: crossed_sample(np.ones((1, 2, 2))), "values"),
        (lambda: crossed_sample(np.full((3, 2, 1), np.nan)), "values"),
    ],
)
def test_bad_input(ask: Callable[[], object], message: str) -> None:
    with pytest.raises(StatisticsError, match=message):
        ask()


def assert_is(found: Any, expected: Any, confidence: float) -> None:
    """The p-values and the intervals are those of a test of scipy."""
    assert found.p_value == pytest.approx(expected.pvalue)
    interval = expected.confidence_interval(confidence)
    assert found.ci_low == pytest.approx(interval.low)
    assert found.ci_high == pytest.approx(interval.high)


def test_one_draw_is_the_t_test_of_scipy() -> None:
    values = np.random.default_rng(1).normal(0.3, 1, size=(30, 1, 4))
    assert_is(crossed_t(values, 0.9), stats.ttest_1samp(values[:, 0], 0), 0.9)


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


RNG = np.random.default_rng(4)
ONE, OTHER, THIRD = (RNG.normal(0.5, sd, (n, 3)) for sd, n in ((1, 12), (3, 40), (2, 9)))


def test_of_two_means_is_welchs_test() -> None:
    sample = contrast_sample([Sample.from_values(ONE), Sample.from_values(OTHER)], [[1, -1]])
    found = one_sample_t(sample, 0, alternative="two-sided")
    assert_is(found, stats.ttest_ind(ONE, OTHER, equal_var=False), 0.95)


def test_less_the_mean_of_the_others() -> None:
    found = contrast_sample(
        [Sample.from_values(one) for one in (ONE, OTHER, THIRD)], [[1, -0.5, -0.5]]
    )
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
        found = contrast_sample(
            [Sample.from_values(2 * alike), Sample.from_values(other)], [[1, -1]]
        )
        assert found.moments.status.tolist() == [expected]
