"""Bootstrap intervals against scipy and by hand; tests of level and coverage on skewed data."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from headroles.errors import StatisticsError
from headroles.inference import (
    Intervals,
    Sample,
    bca_interval,
    bootstrap_t_interval,
    bootstrap_t_test,
)
from tests.inference.conftest import one_sample_t, plain_robust_t

Array = NDArray[np.float64]
INTERVALS = (bootstrap_t_interval, bca_interval)
B = 400


def t_by_hand(column: Array, labels: NDArray[np.intp], seed: int) -> Array:
    """Bootstrap t of one complete column, cluster by cluster, from the same draws."""
    n = labels.max() + 1
    drawn = np.random.default_rng(seed).integers(0, n, (B, n))
    found = []
    for clusters in drawn:
        rows = [np.flatnonzero(labels == cluster) for cluster in clusters]
        clusters = np.repeat(np.arange(n), [len(r) for r in rows])
        resample = column[np.concatenate(rows)][:, None]
        found.append(plain_robust_t(resample, column.mean(), clusters).statistic[0])
    return np.array(found)


@pytest.mark.parametrize("clustered", [False, True])
class TestStudentised:
    def labels(self, clusters: NDArray[np.str_], clustered: bool) -> NDArray[np.intp]:
        return np.unique(clusters, return_inverse=True)[1] if clustered else np.arange(40)

    def test_interval_by_hand(
        self, gappy: Array, clusters: NDArray[np.str_], clustered: bool
    ) -> None:
        labels = self.labels(clusters, clustered)
        result = bootstrap_t_interval(
            Sample.of(gappy, labels), confidence=0.9, n_resamples=B, seed=4
        )
        t = np.sort(t_by_hand(gappy[:, 0], labels, 4))
        described = plain_robust_t(gappy, 0, labels)
        low, high = t[int(0.05 * (B - 1))], t[int(np.ceil(0.95 * (B - 1)))]
        mean, error = gappy[:, 0].mean(), described.standard_error[0]
        assert result.ci_low[0] == pytest.approx(mean - high * error)
        assert result.ci_high[0] == pytest.approx(mean - low * error)

    @pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
    def test_p_value_by_hand(
        self, gappy: Array, clusters: NDArray[np.str_], clustered: bool, alternative: str
    ) -> None:
        labels = self.labels(clusters, clustered)
        p = bootstrap_t_test(
            Sample.of(gappy, labels), 2.6, n_resamples=B, seed=4, alternative=alternative
        )
        t = t_by_hand(gappy[:, 0], labels, 4)
        observed = plain_robust_t(gappy, 2.6, labels).statistic[0]
        fold = {"greater": np.positive, "less": np.negative, "two-sided": np.abs}[alternative]
        assert p[0] == pytest.approx((1 + (fold(t) >= fold(observed)).sum()) / (1 + B))


class TestBca:
    def test_equals_scipy_on_the_same_draws(self, gappy: Array) -> None:
        result = bca_interval(gappy, confidence=0.9, n_resamples=B, seed=4)
        for test in range(gappy.shape[1]):
            column = gappy[~np.isnan(gappy[:, test]), test]
            expected = stats.bootstrap(
                (column,),
                np.mean,
                n_resamples=B,
                confidence_level=0.9,
                method="BCa",
                rng=np.random.default_rng(4),
            ).confidence_interval
            limits = (result.ci_low[test], result.ci_high[test])
            assert limits == pytest.approx((expected.low, expected.high), rel=1e-9)

    def test_equal_clusters_are_scipy_on_their_means(self, gappy: Array) -> None:
        clusters = np.arange(40) // 4
        result = bca_interval(Sample.of(gappy[:, :1], clusters), n_resamples=B, seed=4)
        expected = stats.bootstrap(
            (gappy[:, 0].reshape(10, 4).mean(axis=1),),
            np.mean,
            n_resamples=B,
            rng=np.random.default_rng(4),
        ).confidence_interval
        limits = (result.ci_low[0], result.ci_high[0])
        assert limits == pytest.approx((expected.low, expected.high), rel=1e-9)

    def test_stays_within_the_values(self) -> None:
        data = np.random.default_rng(0).beta(0.3, 3, size=(15, 10))
        result = bca_interval(data, confidence=0.999, n_resamples=500, seed=0)
        assert (result.ci_low >= data.min(axis=0)).all()
        assert (result.ci_high <= data.max(axis=0)).all()


@pytest.mark.parametrize("function", INTERVALS)
class TestEveryInterval:
    def test_seed(self, function: Callable[..., Intervals], gappy: Array) -> None:
        first, again, other = (function(gappy, n_resamples=B, seed=s) for s in (1, 1, 2))
        np.testing.assert_array_equal(first.ci_low, again.ci_low)
        assert (first.ci_low != other.ci_low).all()
        generator = np.random.default_rng(1)
        once, twice = (function(gappy, n_resamples=B, seed=generator) for _ in range(2))
        assert (once.ci_low != twice.ci_low).all()

    def test_columns_do_not_see_each_other(
        self, function: Callable[..., Intervals], gappy: Array, clusters: NDArray[np.str_]
    ) -> None:
        whole = function(Sample.of(gappy, clusters), n_resamples=B, seed=1)
        there = ~np.isnan(gappy[:, 3])
        alone = function(Sample.of(gappy[there, 3:4], clusters[there]), n_resamples=B, seed=1)
        np.testing.assert_allclose(alone.ci_low, whole.ci_low[3:4], rtol=1e-12)

    def test_blocks_of_columns_change_nothing(
        self,
        function: Callable[..., Intervals],
        gappy: Array,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        whole = function(gappy, n_resamples=B, seed=1)
        monkeypatch.setattr("headroles.inference._resamples._NUMBERS_KEPT", 2 * B)
        blocks = function(gappy, n_resamples=B, seed=1)
        np.testing.assert_allclose(blocks.ci_high, whole.ci_high, rtol=1e-12)

    @pytest.mark.parametrize(
        ("options", "message"),
        [({"n_resamples": 0}, "give at least 1"), ({"confidence": 95}, "confidence is 95")],
    )
    def test_bad_input(
        self, function: Callable[..., Intervals], options: dict[str, int], message: str
    ) -> None:
        with pytest.raises(StatisticsError, match=message):
            function([[1.0], [2.0]], seed=0, **options)


def test_tiny_samples_have_no_bounds() -> None:
    result = bootstrap_t_interval([[1.0], [2.0]], n_resamples=B, seed=0)
    assert np.isinf([result.ci_low[0], result.ci_high[0]]).all()


def test_level_and_coverage_on_skewed_data() -> None:
    data = np.random.default_rng(2).exponential(1, size=(40, 2_000))
    margin = 3 * np.sqrt(0.05 * 0.95 / 2_000)
    p = bootstrap_t_test(data, 1, n_resamples=499, seed=0)
    assert (p <= 0.05).mean() == pytest.approx(0.05, abs=margin + 0.005)
    result = bootstrap_t_interval(data, n_resamples=499, seed=0)
    covered = ((result.ci_low <= 1) & (result.ci_high >= 1)).mean()
    assert covered == pytest.approx(0.95, abs=margin + 0.01)
    # The t interval misses skewed means more often: what the bootstrap-t is for.
    plain = one_sample_t(data, 1)
    assert covered > ((plain.ci_low <= 1) & (plain.ci_high >= 1)).mean()
