"""Tables that every statistic here must cope with."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from headroles.inference import OK, Sample, bet, crossed_sample, t_interval, t_test
from headroles.inference.power import design_effect, smallest_n


@pytest.fixture
def gappy() -> NDArray[np.float64]:
    """40 examples x 8 tests, correlated and skewed: three patterns of gaps."""
    rng = np.random.default_rng(5)
    data = rng.gamma(2, 1.5, size=(40, 8)) + rng.normal(size=(40, 1))
    data[:7, 2:5] = np.nan
    data[30:, 6:] = np.nan
    return data


@pytest.fixture
def clusters() -> NDArray[np.str_]:
    """Cluster labels of 40 examples: 11 clusters of 1 to 10, not in order."""
    sizes = [1, 1, 2, 2, 2, 3, 4, 4, 5, 6, 10]
    names = [f"document {number}" for number in range(len(sizes))]
    return np.random.default_rng(6).permutation(np.repeat(names, sizes))


def one_sample_t(
    values: Any,
    threshold: Any,
    confidence: float = 0.95,
    ddof: int = 1,
    clusters: Any = None,
    alternative: Any = "greater",
) -> SimpleNamespace:
    """Moments, t-test and t interval of one sample, side by side."""
    sample = values if isinstance(values, Sample) else Sample.from_values(values, clusters, ddof)
    tested = t_test(sample, threshold, alternative=alternative)
    intervals = t_interval(sample, confidence=confidence)
    found = vars(sample.moments) | tested._asdict() | intervals._asdict()
    return SimpleNamespace(**found, effect_size=sample.moments.effect_size(threshold))


def crossed_t(values: Any, confidence: float = 0.95) -> SimpleNamespace:
    """The two-sided t-test against 0, and the t interval, of examples crossed with draws."""
    return one_sample_t(crossed_sample(values), 0, confidence, alternative="two-sided")


def betting_test(
    values: Any, threshold: Any, bounds: Any, *, clusters: Any = None, alternative: Any = "greater"
) -> SimpleNamespace:
    """Bets, and the test of one direction."""
    sample = Sample.from_values(values, clusters)
    limits = np.broadcast_to(np.asarray(threshold, dtype=np.float64), (sample.n_tests,))
    bets = bet(sample, limits, bounds)
    p_value, log_e = bets.p_value(alternative), bets.log_e(alternative)
    return SimpleNamespace(mean=bets.mean, log_e=log_e, p_value=p_value)


def required_examples(
    values: Any, threshold: Any, alpha: Any, power: float = 0.8, clusters: Any = None
) -> NDArray[np.float64]:
    """Examples (tests,) that one-sided t-tests need if effects are those of a pilot."""
    pilot = one_sample_t(values, threshold, clusters=clusters)
    can, promising = pilot.status == OK, (pilot.status == OK) & (pilot.effect_size > 0)
    needed = np.where(can, np.inf, np.nan)
    levels = np.broadcast_to(alpha, can.shape)
    of_each = (pilot.effect_size, levels, design_effect(pilot), pilot.n / (pilot.df + 1))
    effect, level, design, size = (column[promising] for column in of_each)
    needed[promising] = smallest_n(effect, level, power, design, size)
    return needed
