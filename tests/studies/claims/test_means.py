"""Tests of means, against other libraries and tables of known truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from headroles.inference.betting import STAKES
from headroles.studies.claims.claim import NotTestable
from headroles.studies.claims.means import (
    DIFFERENCES,
    SHARES,
    Halves,
    all_of,
    jackknifed,
    mean_beyond,
    mean_within,
    most_within,
    some_head,
)

ALPHA = 0.05


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


def test_most_columns_are_within_the_margin() -> None:
    values = np.random.default_rng(7).normal(0, 0.02, (600, 10))
    near = most_within(values, 0.05, 0.9, DIFFERENCES, alpha=ALPHA)
    assert (near.effect, near.n) == (1, 10)
    assert near.shown.single[0] < 0.001 < near.contradicted.single[0]
    far = np.eye(10) / 5
    one = most_within(values + far[0], 0.05, 0.9, DIFFERENCES, alpha=ALPHA)  # one of ten may be far
    assert one.effect == 0.9
    assert one.shown.single[0] < 0.001
    two = most_within(values + far[:2].sum(axis=0), 0.05, 0.9, DIFFERENCES, alpha=ALPHA)
    assert two.contradicted.single[0] < 0.001 < two.shown.single[0]


def test_equivalence_of_bounded_means_is_by_betting() -> None:
    values = np.random.default_rng(8).uniform(-0.1, 0.1, 600)
    found = mean_within(values, 0.05, None, alpha=ALPHA, bounds=DIFFERENCES)
    sides = [
        mean_beyond(sign * values, -0.05, None, alpha=ALPHA, bounds=DIFFERENCES) for sign in (1, -1)
    ]
    assert found.shown.single[0] == max(one.shown.single[0] for one in sides)
    assert -0.1 < found.low < found.effect < found.high < 0.1
    assert found.note == ""


def test_too_few_values_to_show_a_small_change_are_told() -> None:
    few = mean_within(np.full(100, 1e-9), 0.05, None, alpha=ALPHA, bounds=DIFFERENCES)
    assert few.note.startswith("100 values cannot show a change below 0.05")
    assert not few.shown.shows(ALPHA)[0]
    for n, is_told in ((140, True), (160, False)):
        heads = most_within(np.full((n, 72), 1e-9), 0.05, 0.9, DIFFERENCES, alpha=ALPHA)
        assert ("cannot show" in heads.note) == is_told
        assert heads.shown.shows(ALPHA)[0] != is_told
