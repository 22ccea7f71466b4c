"""Power and numbers of examples against statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.power import TTestPower

from headroles.inference import power_of
from headroles.inference.power import design_effect
from tests.inference.conftest import one_sample_t, required_examples

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


def test_no_number_is_enough_or_known(hopeless: Array) -> None:
    needed = required_examples(np.column_stack([hopeless, hopeless[:, 3] - 5]), 3, 0.05)
    assert np.isnan(needed[:3]).all()
    assert np.isfinite(needed[3])
    assert needed[4] == np.inf


def in_clusters(n_clusters: int = 20, size: int = 5, n_tests: int = 3) -> tuple[Array, list[str]]:
    """Columns whose clusters differ, and the labels of the clusters."""
    rng = np.random.default_rng(3)
    clusters = np.repeat(np.arange(n_clusters), size)
    own = 0.5 * rng.normal(size=(len(clusters), n_tests))
    data = 0.5 + rng.normal(size=(n_clusters, n_tests))[clusters] + own
    return data, [f"d{group}" for group in clusters]


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
    data = with_effects([0.5], n=20)
    data = np.sort(data, axis=0)
    clusters = np.minimum(np.arange(20), 19 - np.arange(20))  # smallest with largest
    pilot = one_sample_t(data, 0, clusters=clusters)
    assert (pilot.standard_error < pilot.sd / np.sqrt(20)).all()
    np.testing.assert_array_equal(design_effect(pilot), 1)
