"""Tests of claims, against other libraries and tables of known truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from headroles.inference.betting import STAKES
from headroles.studies.claims.finding import (
    Finding,
    Halves,
    NotTestable,
    all_of,
    beyond_draws,
    beyond_values,
    mean_beyond,
    some_head,
)

ALPHA = 0.05


def p_of(found: Finding) -> tuple[float, float]:
    return float(found.shown.single[0]), float(found.contradicted.single[0])


def test_means_are_tested_by_betting() -> None:
    rng = np.random.default_rng(5)
    values, units = rng.beta(6, 3, 90), np.repeat(np.arange(30), 3)
    found = mean_beyond(values, 0.5, units)
    of_documents = values.reshape(30, 3).mean(axis=1)
    bets = [np.prod(1 + stake * (of_documents - 0.5) / 0.5) for stake in STAKES]
    assert p_of(found) == (pytest.approx(1 / np.mean(bets)), 1)
    assert (found.effect, found.n, found.unit) == (
        pytest.approx(of_documents.mean()),
        30,
        "documents",
    )
    for limit, side in ((found.ci_low, 1), (found.ci_high, -1)):
        reach = limit if side > 0 else 1 - limit
        bets = [np.prod(1 + side * stake * (of_documents - limit) / reach) for stake in STAKES]
        assert 1 / np.mean(bets) == pytest.approx(ALPHA / 2, rel=0.05)
    with pytest.raises(NotTestable, match="no example has a value"):
        mean_beyond([np.nan], 0.5, None)


def test_skewed_shares_at_the_threshold_are_seldom_shown() -> None:
    """A t-test shows one in four of them."""
    rng = np.random.default_rng(6)
    shown = [p_of(mean_beyond(rng.random(60) < 0.97, 0.97, None))[0] for _ in range(60)]
    assert sum(p <= ALPHA for p in shown) <= 3


def test_values_must_exceed_those_of_the_control() -> None:
    rng = np.random.default_rng(1)
    values = np.clip(rng.normal(0.9, 0.05, 200), 0, 1)
    found = mean_beyond(values, 0.5, None)
    low, same = (
        beyond_values(found, values, control, None) for control in (values - 0.4, values[::-1])
    )
    assert p_of(low)[0] < 0.001
    assert low.control == pytest.approx(values.mean() - 0.4)
    assert p_of(found)[0] < ALPHA < p_of(same)[0]


def test_an_effect_is_compared_with_one_more_control_model() -> None:
    draws = [0.1, 0.3, 0.2, 0.25, 0.15]
    found = mean_beyond(np.random.default_rng(2).beta(9, 1, 200), 0.5, None)
    statistic = (0.5 - np.mean(draws)) / (np.std(draws, ddof=1) * np.sqrt(6 / 5))
    far = beyond_draws(found, 0.5, draws)
    assert p_of(far) == (pytest.approx(stats.t.sf(statistic, 4)), 1)
    assert far.control == pytest.approx(0.2)
    assert p_of(found)[0] < ALPHA < p_of(beyond_draws(found, 0.22, draws))[0]
    against = beyond_draws(found.opposite, 0.22, draws, both_sides=True)
    assert p_of(against) == (1, pytest.approx(stats.t.cdf(0.02 / 0.0866, 4), abs=0.01))


def test_a_head_is_chosen_on_one_half_and_tested_on_the_other() -> None:
    rng = np.random.default_rng(2)
    second = np.arange(240) % 2 == 1
    values = rng.uniform(0, 0.3, (240, 6))
    values[:, 4] += 0.7
    values[~second, 1] += 0.7
    values[~second, 1] = 1  # the best of the first half is none of the second
    found = some_head(values, 0.5, Halves(second, None, (3, 2)))
    assert found.note == "head 0-1"
    assert p_of(found) == (1, 1)  # head 2-0 is above
    none = some_head(values[:, [0, 2, 3]], 0.5, Halves(second, None, (3, 1)))
    assert p_of(none)[1] < 1e-6
    good = some_head(values[:, [4]], 0.5, Halves(second, None, (1, 1)), values[:, [0]])
    assert p_of(good)[0] < 1e-6
    same = some_head(values[:, [4]], 0.5, Halves(second, None, (1, 1)), values[:, [4]])
    assert p_of(same)[0] > ALPHA
    values[second] = np.nan
    with pytest.raises(NotTestable, match="one half of the documents"):
        some_head(values, 0.5, Halves(second, None, (3, 2)))


def test_all_of_several_is_the_largest_p_value_and_any_of_them_bonferroni() -> None:
    values = np.random.default_rng(3).beta(5, [[5], [4]], (2, 40))
    parts = [mean_beyond(one, 0.5, None) for one in values]
    found = all_of({"first": parts[0], "second": parts[1]})
    shown, contradicted = zip(*map(p_of, parts), strict=True)
    assert p_of(found) == (max(shown), pytest.approx(min(1, 2 * min(contradicted))))
    assert (found.effect, found.note) == (parts[0].effect, "smallest of first, second: first")
