"""Power and numbers of examples against statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from statsmodels.stats.power import TTestPower

from headroles.errors import StatisticsError
from headroles.inference import one_sample_t, power_of, required_examples

Array = NDArray[np.float64]


@pytest.mark.parametrize("alpha", [0.05, 0.05 / 1440])
@pytest.mark.parametrize("effect_size", [-0.2, 0, 0.1, 0.5, 2])
def test_power_equals_statsmodels(alpha: float, effect_size: float) -> None:
    for n in (2, 5, 30, 400):
        expected = TTestPower().power(effect_size, n, alpha, alternative="larger")
        assert power_of(n, effect_size, alpha) == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_power_broadcasts_and_knows_what_is_missing() -> None:
    power = power_of([[10], [20], [1]], [0.3, np.nan], 0.05)
    assert power.shape == (3, 2)
    assert np.isnan(power).tolist() == [[False, True], [False, True], [True, True]]


def test_power_is_one_function_for_small_and_large_samples() -> None:
    n = np.array([1e6 - 1, 1e6])
    below, above = power_of(n, 0.0025, 0.05)
    assert below == pytest.approx(above, abs=1e-5)


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


def test_no_number_is_enough_or_known(hopeless: Array) -> None:
    needed = required_examples(np.column_stack([hopeless, hopeless[:, 3] - 5]), 3, 0.05)
    assert np.isnan(needed[:3]).all()
    assert np.isfinite(needed[3])
    assert needed[4] == np.inf


def test_tiny_effects_end() -> None:
    needed = required_examples(with_effects([1e-6, 1e-9]), 0, 0.05)
    expected = ((1.6448536 + 0.8416212) / np.array([1e-6, 1e-9])) ** 2
    np.testing.assert_allclose(needed, expected, rtol=1e-5)


def test_design_effect() -> None:
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(20), 5)
    data = 0.5 + rng.normal(size=(20, 3))[groups] + 0.5 * rng.normal(size=(100, 3))
    plain, clustered = (required_examples(data, 0, 0.01, groups=g) for g in (None, groups))
    iid, robust = (one_sample_t(data, 0, groups=g).standard_error for g in (None, groups))
    np.testing.assert_array_equal(clustered, np.ceil(plain * (robust / iid) ** 2))
    assert (clustered > 2 * plain).all()


def test_clusters_of_one_are_no_clusters(gappy: Array) -> None:
    plain, clustered = (required_examples(gappy, 2.5, 0.05, groups=g) for g in (None, range(40)))
    np.testing.assert_array_equal(plain, clustered)


def test_design_effect_below_one_is_not_believed() -> None:
    data = with_effects([0.5], n=20)
    data = np.sort(data, axis=0)
    groups = np.minimum(np.arange(20), 19 - np.arange(20))  # smallest with largest
    plain, clustered = (required_examples(data, 0, 0.05, groups=g) for g in (None, groups))
    np.testing.assert_array_equal(plain, clustered)


@pytest.mark.parametrize(("alpha", "power"), [(0, 0.8), (0.05, 1)])
def test_bad_options(alpha: float, power: float) -> None:
    with pytest.raises(StatisticsError, match="must lie between 0 and 1"):
        required_examples([[1.0], [2.0]], 0, alpha, power)
