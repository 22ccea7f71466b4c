"""Views from above: against counts by hand, statsmodels, published numbers and resampling."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from msgspec import structs
from scipy import stats
from statsmodels.stats.inter_rater import cohens_kappa

from headroles.studies.comparison.answers import (
    CHANGES,
    STATUSES,
    find_moved_heads,
    measure_agreement,
)
from headroles.studies.comparison.compare import RoleComparison, compare_roles
from tests.studies.comparison.made import make_scores, random_scores, shifted


@pytest.fixture(scope="module")
def shifts() -> RoleComparison:
    """Two checkpoints; ``block`` has one example and is not tested."""
    before = random_scores(n=60)
    before.values[1:, ..., 1] = np.nan
    before.values[0, ..., 1] = 3
    before.counts[:, 1] = np.arange(60) == 0
    by = 1.5 * (3 - np.nanmean(before.values, axis=0))  # to the other side of the threshold
    return compare_roles(
        before, shifted(before, by, noise=0.5), shifted(before, by / 3, noise=0.5, seed=2)
    )


def test_counts_are_counts(shifts: RoleComparison) -> None:
    counts = shifts.counts()
    assert len(counts) == 2 * 3 * 2
    assert (counts.heads == 3).all()
    assert (counts[list(STATUSES)].sum(axis=1) == counts.heads).all()
    frame = shifts.frame
    for row in counts.itertuples():
        mine = frame[
            (frame.checkpoint == row.checkpoint)
            & (frame.role == row.role)
            & (frame.layer == row.layer)
        ]
        for name in STATUSES:
            assert getattr(row, name) == (mine.status == name).sum()
        for column, answer in CHANGES.items():
            assert getattr(row, column) == (mine.change == answer).sum()
        assert (row.changed, row.equivalent) == (mine.changed.sum(), mine.equivalent.sum())
    assert counts[["gained", "lost"]].sum().min() > 0
    assert (counts[counts.role == "block"].untestable == 3).all()


def test_layers_hold_means_over_heads_and_roles(shifts: RoleComparison) -> None:
    layers = shifts.layers()
    assert layers[["checkpoint", "layer"]].values.tolist() == [
        ["1", 0],
        ["1", 1],
        ["2", 0],
        ["2", 1],
    ]
    frame = shifts.frame
    for row in layers.itertuples():
        mine = frame[(frame.checkpoint == row.checkpoint) & (frame.layer == row.layer)]
        tested = mine[mine.change != "untestable"]
        assert row.tests == len(tested) == 6
        assert row.changed == pytest.approx(tested.changed.mean())
        assert row.equivalent == pytest.approx(tested.equivalent.mean())
        assert row.effect_size == pytest.approx(tested.effect_size.abs().mean())
        assert row.chance == pytest.approx(np.sqrt(2 / np.pi / 60))
        assert row.rms_difference == pytest.approx(np.sqrt((tested.difference**2).mean()))
        assert row.gained == (tested.status == "gained").sum()
        assert row.lost == (tested.status == "lost").sum()


@pytest.mark.parametrize("documents", [1, 30])
def test_chance_is_what_unchanged_means_give(documents: int) -> None:
    """With clusters too: their standard error is larger than sd / sqrt(n)."""
    rng = np.random.default_rng(0)
    own = rng.normal(0, 1, (90, 1, 400, 1))
    shared = rng.normal(0, 1, (90, 1, 400, 1))[np.arange(90) % documents]
    differences = own + (shared if documents > 1 else 0)
    before = make_scores(np.zeros_like(own), ("local",), documents=documents)
    layer = compare_roles(before, shifted(before, differences)).layers().iloc[0]
    # the mean of 400 absolute t values: a standard error of about 0.03 of it
    assert layer.effect_size == pytest.approx(layer.chance, rel=0.1)


def test_what_stands_still_has_moved_by_nothing() -> None:
    scores = random_scores(n=1000)
    shifts = compare_roles(scores, scores)
    layers = shifts.layers()
    assert (layers[["effect_size", "rms_difference", "changed"]] == 0).all(axis=None)
    assert (layers.equivalent == 1).all()
    assert (shifts.moved().effect_size == 0).all()


class TestMovedHeads:
    def test_farthest_first(self) -> None:
        before = random_scores(n=60)
        by = np.zeros((2, 3, 3))
        by[1, 2] = 0.1, 0.2, -2.0
        by[0, 1, 0] = 1.0
        after = shifted(before, by, noise=0.5)
        moved = compare_roles(before, after).moved(2)
        assert moved[["layer", "head", "role"]].values.tolist() == [
            [1, 2, "syntactic:any:to_governor"],
            [0, 1, "local"],
        ]
        frame = compare_roles(before, after).frame
        mine = frame[(frame.layer == 1) & (frame["head"] == 2)]
        assert moved.effect_size[0] == pytest.approx(np.sqrt((mine.effect_size**2).mean()))
        assert moved.changed[0] == mine.changed.sum()
        assert moved.role_effect_size[0] == mine.effect_size.iloc[2] < 0
        assert moved.role_difference[0] == mine.difference.iloc[2]

    def test_ten_of_every_checkpoint(self) -> None:
        before = random_scores(layers=4, heads=4)
        after = shifted(before, 0.2, noise=0.5)
        moved = compare_roles(before, after, shifted(after, 0.5, noise=0.5)).moved()
        assert moved.checkpoint.tolist() == ["1"] * 10 + ["2"] * 10
        for _, heads in moved.groupby("checkpoint"):
            assert heads.effect_size.is_monotonic_decreasing

    def test_untestable_roles_do_not_count(self, shifts: RoleComparison) -> None:
        assert not shifts.moved()["role"].eq("block").any()
        assert len(shifts.moved()) == 2 * 6

    def test_the_order_of_checkpoints_is_kept(self, shifts: RoleComparison) -> None:
        turned = pd.concat([shifts.frame[18:], shifts.frame[:18]])
        assert list(dict.fromkeys(find_moved_heads(turned, 2).checkpoint)) == ["2", "1"]


def agreement_of(both: int, had: int, has: int, neither: int) -> pd.Series:
    """Of so many heads with the role both times, before only, after only, and never."""
    answers = (
        [("yes", "yes", "kept")] * both
        + [("yes", "no", "lost")] * had
        + [("no", "yes", "gained")] * has
        + [("no", "no", "absent")] * neither
    )
    frame = pd.DataFrame(answers, columns=["answer_before", "answer_after", "status"])
    return measure_agreement(frame.assign(checkpoint="after", role="local")).iloc[0]


class TestAgreement:
    def test_kappa_of_a_known_table(self) -> None:
        """Cohen's kappa of 20, 5, 10, 15 is 0.4, by hand: (0.7 - 0.5) / (1 - 0.5)."""
        found = agreement_of(20, 5, 10, 15)
        assert found.kappa == pytest.approx(0.4)
        assert (found.had, found.has, found.both, found.heads) == (25, 30, 20, 50)
        expected = cohens_kappa(np.array([[20, 5], [10, 15]]))
        assert found.kappa_low == pytest.approx(expected.kappa_low)
        assert found.kappa_high == pytest.approx(expected.kappa_upp)

    def test_jaccard_with_wilsons_interval(self) -> None:
        found = agreement_of(20, 5, 10, 15)
        assert found.jaccard == pytest.approx(20 / 35)
        interval = stats.binomtest(20, 35).proportion_ci(method="wilson")
        assert (found.jaccard_low, found.jaccard_high) == pytest.approx(tuple(interval))

    def test_intervals_are_about_those_of_a_bootstrap_over_heads(self) -> None:
        both, had, has, neither = 60, 15, 20, 105
        table = np.array([both, had, has, neither])
        rng = np.random.default_rng(0)
        drawn = rng.multinomial(200, table / 200, size=20_000) / 200
        agree = drawn[:, 0] + drawn[:, 3]
        before, after = drawn[:, 0] + drawn[:, 1], drawn[:, 0] + drawn[:, 2]
        chance = before * after + (1 - before) * (1 - after)
        kappas = (agree - chance) / (1 - chance)
        jaccards = drawn[:, 0] / (1 - drawn[:, 3])
        found = agreement_of(both, had, has, neither)
        for name, draws in (("kappa", kappas), ("jaccard", jaccards)):
            low, high = np.quantile(draws, [0.025, 0.975])
            assert found[f"{name}_low"] == pytest.approx(low, abs=0.02)
            assert found[f"{name}_high"] == pytest.approx(high, abs=0.02)

    def test_full_agreement_has_no_interval_of_kappa(self) -> None:
        found = agreement_of(3, 0, 0, 69)
        assert (found.kappa, found.jaccard) == (1, 1)
        assert np.isnan([found.kappa_low, found.kappa_high]).all()
        assert found.jaccard_low < 0.5 < found.jaccard_high == pytest.approx(1)

    def test_a_role_that_went_altogether(self) -> None:
        found = agreement_of(0, 3, 0, 69)
        assert (found.kappa, found.jaccard, found.jaccard_low) == (0, 0, 0)
        assert np.isnan([found.kappa_low, found.kappa_high]).all()

    @pytest.mark.parametrize("counts", [(0, 0, 0, 72), (72, 0, 0, 0)])
    def test_where_all_heads_are_alike(self, counts: tuple[int, int, int, int]) -> None:
        found = agreement_of(*counts)
        assert np.isnan([found.kappa, found.kappa_low, found.kappa_high]).all()
        assert np.isnan(found.jaccard) == (counts[0] == 0)

    def test_a_role_that_was_not_tested(self, shifts: RoleComparison) -> None:
        found = shifts.agreement().set_index("role").loc["block"]
        assert (found[["heads", "had", "has"]] == 0).all(axis=None)
        assert found[["jaccard", "jaccard_low", "kappa"]].isna().all(axis=None)

    def test_undecided_heads_have_no_role_and_untestable_ones_do_not_count(self) -> None:
        frame = pd.DataFrame(
            [
                ("yes", "undecided", "undecided"),
                ("undecided", "yes", "undecided"),
                ("yes", "yes", "kept"),
                ("no", "no", "absent"),
                ("untestable", "untestable", "untestable"),
            ],
            columns=["answer_before", "answer_after", "status"],
        )
        found = measure_agreement(frame.assign(checkpoint="after", role="local")).iloc[0]
        assert (found.heads, found.had, found.has, found.both) == (4, 2, 2, 1)
        assert found.undecided == 2
        assert found.jaccard == pytest.approx(1 / 3)
        assert found.kappa == pytest.approx(0)

    def test_level_of_the_intervals(self, shifts: RoleComparison) -> None:
        agreement = shifts.agreement()
        assert agreement[["checkpoint", "role"]].drop_duplicates().shape == (6, 2)
        options = {**shifts.record.options, "alpha": 0.01}
        wide = RoleComparison(
            shifts.frame, structs.replace(shifts.record, options=options)
        ).agreement()
        assert (wide.jaccard_low.dropna() < agreement.jaccard_low.dropna()).any()
        pd.testing.assert_series_equal(wide.kappa, agreement.kappa)
