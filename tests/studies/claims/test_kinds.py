"""The forms of tests, against brute force, other libraries, and tables of known truth."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from headroles.inference.betting import STAKES
from headroles.studies.claims.claim import NotTestable
from headroles.studies.claims.kinds import (
    SHARES,
    Halves,
    all_of,
    in_layers,
    jackknifed,
    mean_beyond,
    mean_within,
    some_head,
    trend,
)

ALPHA = 0.05


def test_a_trend_has_the_p_value_of_all_orders() -> None:
    values, places = [0.1, 0.3, 0.2, 0.6], [0, 1, 2, 3]
    found = trend(values, places, alpha=0.1)
    orders = [np.corrcoef(one, places)[0, 1] for one in permutations(values)]
    observed = np.corrcoef(values, places)[0, 1]
    assert found.effect == pytest.approx(observed)
    assert found.shown.single[0] == np.mean([one >= observed - 1e-12 for one in orders])
    assert found.contradicted.single[0] == np.mean([one <= observed + 1e-12 for one in orders])


def test_many_layers_are_drawn_in_random_orders() -> None:
    rising = trend(np.arange(12), np.arange(12), alpha=ALPHA)
    assert rising.shown.single[0] == pytest.approx(1e-4)
    assert rising.contradicted.single[0] == 1


def test_flat_values_have_no_trend() -> None:
    found = trend(np.ones(6), np.arange(6), alpha=ALPHA)
    assert (found.effect, found.shown.single[0], found.contradicted.single[0]) == (0, 1, 1)


def test_few_layers_are_refused_with_the_smallest_p_value() -> None:
    with pytest.raises(NotTestable, match=r"3 layers .* below 0\.17"):
        trend([1, 2, 3], [0, 1, 2], alpha=ALPHA)
    with pytest.raises(NotTestable, match=r"4 layers .* below 0\.17"):  # two pairs of places tie
        trend([1, 2, 2, 1], [-1.5, -0.5, -0.5, -1.5], alpha=ALPHA)


def test_heads_are_compared_with_those_of_their_layers() -> None:
    values = np.array([[5.0, 1, 2, 0], [9, 10, 11, 12]])
    marked = np.zeros((2, 4), dtype=bool)
    marked[0, 0] = True
    found = in_layers(values, marked)
    assert found.effect == 3
    assert found.shown.single[0] == pytest.approx(1 / 4, abs=0.02)
    with pytest.raises(NotTestable, match="all heads are of this kind"):
        in_layers(values, np.ones((2, 4), dtype=bool))


def test_a_mean_is_tested_as_scipy_does() -> None:
    values = np.random.default_rng(0).normal(0.6, 1, 30)
    found = mean_beyond(values, 0.5, None, alpha=ALPHA)
    oracle = stats.ttest_1samp(values, 0.5, alternative="greater")
    assert found.shown.single[0] == pytest.approx(oracle.pvalue)
    assert found.contradicted.single[0] == pytest.approx(1 - oracle.pvalue)
    interval = stats.t.interval(0.95, 29, values.mean(), stats.sem(values))
    assert (found.low, found.high) == pytest.approx(interval)


def test_bounded_means_are_tested_by_betting() -> None:
    rng = np.random.default_rng(5)
    values, units = rng.beta(6, 3, 90), np.repeat(np.arange(30), 3)
    found = mean_beyond(values, 0.5, units, alpha=ALPHA, bounds=SHARES)
    of_documents = values.reshape(30, 3).mean(axis=1)
    bets = [np.prod(1 + stake * (of_documents - 0.5) / 0.5) for stake in STAKES]
    assert found.shown.single[0] == pytest.approx(1 / np.mean(bets))
    assert found.contradicted.single[0] == 1
    assert found.effect == pytest.approx(of_documents.mean())
    for limit, side in ((found.low, 1), (found.high, -1)):
        reach = limit if side > 0 else 1 - limit
        bets = [np.prod(1 + side * stake * (of_documents - limit) / reach) for stake in STAKES]
        assert 1 / np.mean(bets) == pytest.approx(ALPHA / 2, rel=0.05)


def test_skewed_shares_at_the_threshold_are_seldom_shown() -> None:
    """A t-test shows one in four of them."""
    rng = np.random.default_rng(6)
    shown = [
        mean_beyond(rng.random(60) < 0.97, 0.97, None, alpha=ALPHA, bounds=SHARES)
        for _ in range(60)
    ]
    assert sum(one.shown.single[0] <= ALPHA for one in shown) <= 3


def test_equivalence_is_two_one_sided_tests() -> None:
    values = np.random.default_rng(1).normal(0.02, 0.1, 40)
    found = mean_within(values, 0.1, None, alpha=ALPHA)
    above = stats.ttest_1samp(values, -0.1, alternative="greater").pvalue
    below = stats.ttest_1samp(values, 0.1, alternative="less").pvalue
    assert found.shown.single[0] == pytest.approx(max(above, below))
    assert found.contradicted.single[0] == 1
    far = mean_within(values + 1, 0.1, None, alpha=ALPHA)
    assert far.contradicted.single[0] < ALPHA < far.shown.single[0]


def test_a_head_is_chosen_on_one_half_and_tested_on_the_other() -> None:
    rng = np.random.default_rng(2)
    second = np.arange(80) % 2 == 1
    values = rng.normal(0, 0.1, (80, 6))
    values[:, 4] += 1
    values[~second, 1] += 5  # the best of the first half is none of the second
    found = some_head(values, 0.5, Halves(second, None, (3, 2), ALPHA))
    assert found.note == "head 0-1"
    assert found.shown.single[0] > 0.99
    assert found.contradicted.single[0] > 0.99  # head 2-0 is above
    none = some_head(values[:, [0, 2, 3]], 0.5, Halves(second, None, (3, 1), ALPHA))
    assert none.contradicted.single[0] < 1e-6
    oracle = max(
        stats.ttest_1samp(values[:, head], 0.5, alternative="less").pvalue for head in (0, 2, 3)
    )
    assert none.contradicted.single[0] == pytest.approx(oracle)


def test_halves_without_examples_are_told() -> None:
    values = np.full((4, 2), np.nan)
    values[:2] = 1
    with pytest.raises(NotTestable, match="one half of the documents"):
        some_head(values, 0.5, Halves(np.array([0, 0, 1, 1], bool), None, (1, 2), ALPHA))


def test_all_of_several_is_the_largest_p_value_and_any_of_them_bonferroni() -> None:
    values = np.random.default_rng(3).normal(0, 1, (2, 40))
    values += np.array([[1.0], [0.1]])
    parts = [mean_beyond(one, 0.0, None, alpha=ALPHA) for one in values]
    found = all_of(parts, ["first", "second"])
    assert found.shown.single[0] == max(one.shown.single[0] for one in parts)
    least = min(one.contradicted.single[0] for one in parts)
    assert found.contradicted.single[0] == pytest.approx(min(1, 2 * least))
    assert (found.effect, found.note) == (parts[1].effect, "smallest of first, second: second")


def test_the_jackknife_of_a_mean_is_its_t_interval() -> None:
    values = np.random.default_rng(4).normal(3, 1, 10)
    without = [np.delete(values, place).mean() for place in range(10)]
    low, high, pseudo = jackknifed(float(values.mean()), without, ALPHA)
    assert pseudo == pytest.approx(values)
    interval = stats.t.interval(0.95, 9, values.mean(), stats.sem(values))
    assert (low, high) == pytest.approx(interval)
