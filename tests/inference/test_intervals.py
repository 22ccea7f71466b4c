"""Intervals against their equations; power and numbers of examples against statsmodels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import brentq
from statsmodels.stats.power import TTestPower
from statsmodels.stats.proportion import proportion_confint

from headroles.errors import StatisticsError
from headroles.inference import (
    Sample,
    difference_interval,
    power_of,
    skewed_interval,
    wilson_interval,
)
from headroles.inference.power import design_effect
from tests.inference.conftest import one_sample_t, required_examples


def test_limits_are_where_the_transformation_is_the_quantile_of_t() -> None:
    values = np.random.default_rng(1).exponential(size=40)
    found = skewed_interval(Sample.from_values(values[:, None]), confidence=0.9)
    skewness = stats.skew([*values, 2 * values.max() - values.mean()])

    def transformed(mean: float) -> float:
        w = (values.mean() - mean) / values.std(ddof=1)
        return w + skewness * w**2 / 3 + skewness**2 * w**3 / 27 + skewness / 240

    for limit, level in ((found.ci_low, 0.95), (found.ci_high, 0.05)):
        assert transformed(limit[0]) == pytest.approx(stats.t.ppf(level, 39) / np.sqrt(40))


def test_columns_that_cannot_be_tested() -> None:
    values = np.column_stack([np.full(5, np.nan), np.full(5, 0.25), np.arange(5.0)])
    found = skewed_interval(Sample.from_values(values))
    assert np.isnan(found.ci_low[0])
    assert (found.ci_low[1], found.ci_high[1]) == (0.25, 0.25)
    assert 0 <= found.ci_low[2] < 2 < found.ci_high[2]


def test_limits_solve_the_equation(clusters: NDArray[np.str_]) -> None:
    """|m - p| = t sqrt(p (1 - p) / n), with the error of clusters in n."""
    shares = np.random.default_rng(0).beta(0.4, 0.2, (40, 3))
    sample = Sample.from_values(shares, clusters)
    found, moments = wilson_interval(sample), sample.moments
    for column in range(3):
        m, t = moments.mean[column], stats.t.ppf(0.975, moments.df[column])
        n = m * (1 - m) / moments.standard_error[column] ** 2

        def gap(p: float, m: float = m, n: float = n, t: float = t) -> float:
            return (m - p) ** 2 - t**2 * p * (1 - p) / n

        assert found.ci_low[column] == pytest.approx(brentq(gap, 0, m))
        assert found.ci_high[column] == pytest.approx(brentq(gap, m, 1))


def test_nothing_but_hits_is_one_of_so_many_clusters() -> None:
    """By t, the interval of five hits in five would be a point."""
    found = wilson_interval(Sample.from_values([[1.0, 0.0, 0.5]] * 10, np.repeat(range(5), 2)))
    t = stats.t.ppf(0.975, 4)
    assert found.ci_low[0] == pytest.approx(1 / (1 + t**2 / 5))
    assert (found.ci_high[0], found.ci_low[1]) == (1, 0)
    assert found.ci_high[1] == pytest.approx(1 - found.ci_low[0])
    per_n = t**2 / 5  # around one half Wilson's limits are symmetric
    assert found.ci_low[2] == pytest.approx(0.5 - np.sqrt(per_n / (1 + per_n)) / 2)
    assert found.ci_high[2] == pytest.approx(1 - found.ci_low[2])


@pytest.mark.parametrize(
    ("interval", "sample", "message"),
    [
        (skewed_interval, Sample.from_values([[-1.0], [2.0], [3.0]]), "independent values >= 0"),
        (skewed_interval, Sample.from_values([[1.0], [2.0], [np.nan]]), "independent values >= 0"),
        (
            skewed_interval,
            Sample.from_values([[1.0], [2.0], [3.0]], [0, 0, 1]),
            "independent values >= 0",
        ),
        (wilson_interval, Sample.from_values([[0.5], [1.2]]), "a value lies outside 0 to 1"),
        (wilson_interval, Sample.from_values([[0.5], [-0.1]]), "a value lies outside 0 to 1"),
        (difference_interval, Sample.from_values([[0.5], [1.2]]), "a value lies outside -1 to 1"),
    ],
)
def test_other_values_are_refused(interval: Any, sample: Any, message: str) -> None:
    with pytest.raises(StatisticsError, match=message):
        interval(sample)


def test_differences_are_of_wilson_limits_of_wins_and_losses() -> None:
    """1,160 won and 780 lost of 20,000 independent pairs."""
    n, won, lost = 20_000, 1160, 780
    values = np.repeat([1.0, -1.0, 0.0], [won, lost, n - won - lost])[:, None]
    w, l_ = won / n, lost / n
    (w_low, w_high), (l_low, l_high) = (
        proportion_confint(count, n, method="wilson") for count in (won, lost)
    )
    r = -w * l_ / np.sqrt(w * (1 - w) * l_ * (1 - l_))  # of two shares of one multinomial
    down, up = (w - w_low, l_high - l_), (w_high - w, l_ - l_low)
    low, high = (np.sqrt(a**2 - 2 * r * a * b + b**2) for a, b in (down, up))
    found = difference_interval(Sample.from_values(values))
    assert found.ci_low[0] == pytest.approx(w - l_ - low, rel=1e-3)
    assert found.ci_high[0] == pytest.approx(w - l_ + high, rel=1e-3)


def test_no_difference_seen_is_none_among_so_many_clusters() -> None:
    """By t, the interval would be a point; what float32 leaves of equal shares is no difference."""
    rounding = np.float32(6e-8) * np.random.default_rng(4).choice([-1, 0, 1], 30)
    values = np.stack([np.zeros(30), rounding], axis=1).astype(np.float32)
    found = difference_interval(Sample.from_values(values, np.repeat(range(10), 3)))
    per_n = stats.t.ppf(0.975, 9) ** 2 / 10
    assert found.ci_high == pytest.approx([per_n / (1 + per_n)] * 2, rel=1e-4)
    assert found.ci_low == pytest.approx(-found.ci_high)


def test_differences_never_leave_their_range_and_need_two_clusters() -> None:
    ends = np.array([[1.0, -1.0, 0.3, np.nan]] * 4)
    found = difference_interval(Sample.from_values(ends))
    assert (found.ci_high[0], found.ci_low[1]) == (1, -1)
    assert found.ci_low[0] == pytest.approx(-found.ci_high[1])
    assert found.ci_low[2] < 0.3 < found.ci_high[2]
    assert np.isnan(found.ci_low[3])
    assert np.isnan(difference_interval(Sample.from_values(ends, [0] * 4)).ci_low).all()


@pytest.mark.parametrize("share", [0.01, 0.05, 0.4])
def test_differences_are_held_as_often_as_they_say(share: float) -> None:
    """Documents of 1 to 9 pairs, some with more differences: 95%, or more where these are few."""
    rng = np.random.Generator(np.random.SFC64(5))
    codes = np.repeat(range(30), np.arange(30) % 9 + 1)
    n, held, widths = 300, 0, []
    for _ in range(n):
        differs = rng.random(len(codes)) < rng.beta(2 * share, 2 - 2 * share, 30)[codes]
        values = differs * np.where(rng.random(len(codes)) < 0.7, 1.0, -1.0)
        found = difference_interval(Sample.from_values(values[:, None], codes))
        held += found.ci_low[0] <= 0.4 * share <= found.ci_high[0]
        widths.append(found.ci_high[0] - found.ci_low[0])
    assert held / n > 0.95 - 3 * np.sqrt(0.95 * 0.05 / n)
    assert min(widths) > 0


def test_rounding_is_no_other_share() -> None:
    found = wilson_interval(Sample.from_values(np.float32([[1.0], [1 - 6e-8], [1 + 1.2e-7]] * 4)))
    exact = wilson_interval(Sample.from_values(np.ones((12, 1))))
    assert found.ci_low[0] == pytest.approx(exact.ci_low[0], rel=1e-3)
    assert found.ci_high[0] == pytest.approx(1)


Array = NDArray[np.float64]


@pytest.mark.parametrize("alpha", [0.05, 0.05 / 1440])
@pytest.mark.parametrize("effect_size", [-0.2, 0, 0.1, 0.5, 2])
def test_power_equals_statsmodels(alpha: float, effect_size: float) -> None:
    for n in (2, 5, 30, 400):
        expected = TTestPower().power(effect_size, n, alpha, alternative="larger")
        expected = np.nan_to_num(expected, nan=1.0)  # SciPy 1.15 has nan where power is 1
        assert power_of(n, effect_size, alpha) == pytest.approx(expected, rel=1e-6, abs=1e-12)


def with_effects(effects: list[float], n: int = 30) -> Array:
    """Columns whose sample means are these in units of their sample deviation."""
    noise = np.random.default_rng(0).normal(size=(n, len(effects)))
    noise = (noise - noise.mean(axis=0)) / noise.std(axis=0, ddof=1)
    return noise + np.array(effects)


@pytest.mark.parametrize("alpha", [0.05, 0.05 / 1440])
@pytest.mark.parametrize("power", [0.5, 0.8, 0.95])
def test_required_examples_equal_statsmodels(alpha: float, power: float) -> None:
    effects = [0.05, 0.2, 0.5, 1, 3]
    needed = required_examples(with_effects(effects), 0, alpha, power)
    for n, effect in zip(needed, effects, strict=True):
        assert power_of(n, effect, alpha) >= power - 1e-9
        assert n == 2 or power_of(n - 1, effect, alpha) < power
        if n > 3:
            exact = TTestPower().solve_power(effect, alpha=alpha, power=power, alternative="larger")
            assert n == np.ceil(exact)


def test_no_number_is_enough_or_known() -> None:
    """Nothing there, one value, all alike, one column that can be tested, one below 3."""
    data = np.full((12, 5), np.nan)
    data[3, 1], data[:, 2] = 5, 4
    data[:, 3] = np.random.default_rng(7).normal(4, 1, size=12)
    data[:, 4] = data[:, 3] - 5
    needed = required_examples(data, 3, 0.05)
    assert np.isnan(needed[:3]).all()
    assert np.isfinite(needed[3])
    assert needed[4] == np.inf


def in_clusters() -> tuple[Array, list[str]]:
    """Columns whose clusters differ, and the labels of the clusters."""
    rng = np.random.default_rng(3)
    clusters = np.repeat(np.arange(20), 5)
    own = 0.5 * rng.normal(size=(100, 3))
    return 0.5 + rng.normal(size=(20, 3))[clusters] + own, [f"d{group}" for group in clusters]


@pytest.mark.parametrize("alpha", [0.05, 0.05 / 1440])
def test_power_with_clusters_is_by_noncentral_t(alpha: float) -> None:
    for n, design, size in ((40, 2.5, 4), (12, 1, 6), (700, 3, 3.7)):
        df = n / size - 1
        expected = stats.nct.sf(stats.t.isf(alpha, df), df, 0.4 * np.sqrt(n / design))
        found = power_of(n, 0.4, alpha, design_effect=design, cluster_size=size)
        assert found == pytest.approx(expected)
    assert np.isnan(power_of(7, 0.4, alpha, cluster_size=4))  # less than two clusters
    # Without any likeness in them, clusters still cost degrees of freedom.
    assert power_of(40, 0.8, alpha, cluster_size=4) < power_of(40, 0.8, alpha)


def test_design_effect() -> None:
    data, clusters = in_clusters()
    iid, robust = (one_sample_t(data, 0, clusters=g) for g in (None, clusters))
    expected = (robust.standard_error / iid.standard_error) ** 2
    np.testing.assert_allclose(design_effect(robust), expected)
    np.testing.assert_array_equal(design_effect(iid), 1)
    assert (expected > 2).all()


@pytest.mark.parametrize("alpha", [0.05, 0.001])
def test_required_examples_in_clusters_by_going_through_all(alpha: float) -> None:
    data, clusters = in_clusters()
    data[::3, 1] = np.nan  # clusters of 3 or 4
    pilot = one_sample_t(data, 0, clusters=clusters)
    n = np.arange(2, 2000)[:, None]
    size = pilot.n / (pilot.df + 1)
    df = np.where(n >= 2 * size, n / size - 1, np.nan)
    shift = pilot.effect_size * np.sqrt(n / design_effect(pilot))
    enough = stats.nct.sf(stats.t.isf(alpha, df), df, shift) >= 0.8
    expected = n[enough.argmax(axis=0), 0]
    np.testing.assert_array_equal(required_examples(data, 0, alpha, clusters=clusters), expected)


def test_design_effect_below_one_is_not_believed() -> None:
    data = np.sort(with_effects([0.5], n=20), axis=0)
    clusters = np.minimum(np.arange(20), 19 - np.arange(20))  # smallest with largest
    pilot = one_sample_t(data, 0, clusters=clusters)
    assert (pilot.standard_error < pilot.sd / np.sqrt(20)).all()
    np.testing.assert_array_equal(design_effect(pilot), 1)
