"""Examples that a decision needs: against statsmodels, closed forms, and simulated corpora."""

from __future__ import annotations

import json
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from headroles import HeadScores, PowerAnalysis, assign_roles, power_analysis
from headroles.arrays import FloatArray
from headroles.inference import CORRECTIONS, Sample, adjust_p_values, power_of, t_test
from headroles.testing.notes import FEW
from tests.conftest import flat, make_scores
from tests.inference.conftest import required_examples

EFFECTS = np.array([0.9, 0.5, 0.35, -0.4, -0.6])


def pilot_with(effects: FloatArray, n: int = 40, threshold: float = 3.0) -> FloatArray:
    """Scores (n, 1, heads, 1) of which each head has exactly this effect size."""
    noise = np.random.default_rng(0).normal(size=(n, len(effects)))
    noise = (noise - noise.mean(axis=0)) / noise.std(axis=0, ddof=1)
    return (threshold + effects + noise)[:, None, :, None]


def scores_of(values: Any, per_document: int | None = None) -> HeadScores:
    """Scores of roles r0, r1, ..., with as many examples in each document; None: no documents."""
    n_examples, *_, n_roles = np.shape(values)
    documents = per_document and [f"d{k // per_document}" for k in range(n_examples)]
    return make_scores(values, [f"r{role}" for role in range(n_roles)], documents)


def plan_for(values: Any, per_document: int | None = None, **options: Any) -> PowerAnalysis:
    return power_analysis(scores_of(values, per_document), **options)


class TestOneTest:
    """Of one head, as `required_examples`; tests/inference compares powers with statsmodels."""

    @pytest.mark.parametrize("clustered", [False, True])
    @pytest.mark.parametrize(
        ("correction", "alpha", "power"),
        [
            ("none", 0.05, 0.3),
            ("none", 0.001, 0.99),
            *((name, 0.05, 0.8) for name in ("bonferroni", "holm", "hochberg")),
        ],
    )
    def test_is_that_of_required_examples(
        self, correction: str, alpha: float, power: float, clustered: bool
    ) -> None:
        rng = np.random.default_rng(1)
        common = np.repeat(rng.normal(0, 0.7, (12, 1, 6, 2)), 5, axis=0)
        values = (
            rng.normal(3, 0.3, (1, 2, 6, 2)) + common + rng.normal(size=(60, 2, 6, 2))
        ).astype(np.float32)
        asked = {"correction": correction, "alpha": alpha, "power": power}
        found = plan_for(values, 5 if clustered else None, **asked).frame
        columns = np.moveaxis(values, -1, 1).reshape(60, -1)
        level = alpha if correction == "none" else alpha / 24
        clusters = np.arange(60) // 5 if clustered else None
        above = required_examples(columns, 3, level, power, clusters)
        below = required_examples(-columns, -3, level, power, clusters)
        expected = np.fmin(above, below)
        np.testing.assert_array_equal(found["examples_with_score"], expected)
        np.testing.assert_array_equal(found["corpus_examples"], expected)
        np.testing.assert_array_equal(found["alpha_per_test"], level)
        is_above = found["mean"] > 3
        assert (found["direction"] == np.where(is_above, "yes", "no")).all()
        assert 0 < is_above.sum() < 24
        assert ((found["effect_size"] > 0) == is_above).all()
        assert (found["design_effect"] > 1).any() == clustered

    def test_a_role_that_half_of_the_examples_have_takes_twice_the_corpus(self) -> None:
        values = np.concatenate([pilot_with(EFFECTS)] * 2, axis=-1)
        values = np.concatenate([values, values])
        values[40:, ..., 1] = np.nan
        plan = plan_for(values, correction="none")
        half = plan.frame[plan.frame["role"] == "r1"]
        expected = plan_for(pilot_with(EFFECTS), correction="none").frame["examples_with_score"]
        assert half["examples_with_score"].tolist() == expected.tolist()
        assert half["corpus_examples"].tolist() == (2 * expected).tolist()
        assert plan.summary()["share"].to_dict() == {"r0": 1.0, "r1": 0.5}


class TestFalseDiscoveryRate:
    VALUES = np.random.default_rng(5).normal(
        np.random.default_rng(6).normal(3, 0.4, (1, 4, 12, 2)), 1, (80, 4, 12, 2)
    )

    @pytest.mark.parametrize("correction", ["fdr_bh", "fdr_by"])
    def test_level_is_that_of_the_rejections_expected(self, correction: str) -> None:
        found = plan_for(self.VALUES, correction=correction, power=0.7).frame
        n_tests = 96
        penalty = 1 if correction == "fdr_bh" else (1 / np.arange(1, n_tests + 1)).sum()
        for _, heads in found.groupby("direction"):
            needed = heads["corpus_examples"].to_numpy()
            # At so many examples these heads have the power: so many rejections at the least.
            decided = (needed[:, None] >= needed).sum(axis=1)
            expected = 0.05 * np.maximum(1, 0.7 * decided) / n_tests / penalty
            level = heads["alpha_per_test"].to_numpy()
            np.testing.assert_allclose(level, expected)
            enough = power_of(heads["examples_with_score"], heads["effect_size"].abs(), level)
            assert (enough >= 0.7).all()

    def test_the_rejections_counted_on_are_there(self) -> None:
        """With clusters, heads of a rare role and of a common one have no order in their effect."""
        values = np.repeat(self.VALUES[::4], 4, axis=0) + self.VALUES[::-1] - 3
        values[::4, ..., 1] = values[:30, ..., 1] = np.nan
        found = plan_for(values, 4).frame
        for _, heads in found.groupby("direction"):
            corpus = heads["corpus_examples"].to_numpy()[:, None]
            level = heads["alpha_per_test"].to_numpy()[:, None]
            power = power_of(
                corpus * heads["n"].to_numpy() / 80,
                heads["effect_size"].abs(),
                level,
                design_effect=heads["design_effect"],
                cluster_size=heads["n"] / heads["n_clusters"],  # clusters of one size
            )
            decided = (power >= 0.8).sum(axis=1)
            assert (level[:, 0] <= 0.05 * np.maximum(1, 0.8 * decided) / 96 + 1e-12).all()
            assert (np.diag(power) >= 0.8).all()

    def test_stricter_corrections_need_more(self) -> None:
        plans = {name: plan_for(self.VALUES, correction=name) for name in CORRECTIONS}
        needed = {name: plan.frame["corpus_examples"] for name, plan in plans.items()}
        for weaker, stricter in pairwise(["none", "fdr_bh", "bonferroni"]):
            assert (needed[weaker] <= needed[stricter]).all()
            assert needed[weaker].sum() < needed[stricter].sum()
        assert (needed["fdr_by"] >= needed["fdr_bh"]).all()


class TestSimulation:
    """Corpora of the planned size; every role is a corpus of its own, with its own family."""

    N_CORPORA = 1000
    ERROR = np.sqrt(0.8 * 0.2 / N_CORPORA)

    def shares_decided(self, n: int, correction: str) -> FloatArray:
        """Of the heads with `EFFECTS`, in how many corpora of n examples each is decided."""
        noise = np.random.default_rng(n).normal(size=(n, self.N_CORPORA, len(EFFECTS)))
        sample = Sample.from_values((3 + EFFECTS + noise).reshape(n, -1))
        above, below = (
            np.stack([adjust_p_values(family, correction) for family in by_corpus])
            for by_corpus in (
                t_test(sample, 3, alternative=side).p_value.reshape(self.N_CORPORA, -1)
                for side in ("greater", "less")
            )
        )
        return np.asarray((np.where(EFFECTS > 0, above, below) <= 0.05).mean(axis=0))

    @pytest.mark.parametrize("correction", ["none", "bonferroni", "hochberg", "fdr_bh"])
    def test_power_is_that_of_the_plan(self, correction: str) -> None:
        plan = plan_for(pilot_with(EFFECTS), correction=correction, power=0.8).frame
        for head, row in enumerate(plan.itertuples()):
            n = int(row.examples_with_score)
            share = self.shares_decided(n, correction)[head]
            exact = power_of(n, abs(row.effect_size), row.alpha_per_test)
            assert share > 0.8 - 3 * self.ERROR
            if correction in ("none", "bonferroni"):  # for the others the plan is an upper bound
                assert share == pytest.approx(float(exact), abs=4 * self.ERROR)

    def test_clusters(self) -> None:
        """Five examples a document, 0.3 of the variance between documents: 2.2 times as many."""

        def corpora(n_documents: int, n_corpora: int) -> FloatArray:
            rng = np.random.default_rng(n_documents)
            shared = rng.normal(0, np.sqrt(0.3), (n_documents, 1, n_corpora, 1))
            own = rng.normal(0, np.sqrt(0.7), (5 * n_documents, 1, n_corpora, 1))
            return np.asarray(3.2 + np.repeat(shared, 5, axis=0) + own)

        plan = plan_for(corpora(20_000, 1), 5, correction="none").frame
        assert plan["design_effect"].iloc[0] == pytest.approx(2.2, rel=0.02)
        n_documents = round(plan["corpus_examples"].iloc[0] / 5)
        scores = scores_of(corpora(n_documents, self.N_CORPORA), 5)
        table = assign_roles(scores, correction="none")
        assert table.frame["assigned"].mean() == pytest.approx(0.8, abs=4 * self.ERROR)

    @pytest.mark.parametrize("correction", ["none", "bonferroni", "fdr_bh"])
    def test_few_clusters_at_a_strict_level(self, correction: str) -> None:
        """Four independent examples a document: the degrees of freedom are those of documents."""
        pilot = pilot_with(np.full(5, 0.8), n=40_000)
        plan = plan_for(pilot, 4, correction=correction, alpha=0.001).frame
        n_documents = int(np.ceil(plan["corpus_examples"].max() / 4))
        assert n_documents < FEW
        values = 3.8 + np.random.default_rng(1).normal(size=(4 * n_documents, self.N_CORPORA * 5))
        sample = Sample.from_values(values, np.arange(len(values)) // 4)
        p_values = t_test(sample, 3, alternative="greater").p_value.reshape(-1, 5)
        adjusted = np.stack([adjust_p_values(family, correction) for family in p_values])
        exact = power_of(4 * n_documents, 0.8, plan["alpha_per_test"].max(), cluster_size=4)
        assert 0.8 < exact < 0.88  # whole documents are a little more than the plan
        assert (adjusted <= 0.001).mean() == pytest.approx(float(exact), abs=0.02)


class TestWhatCannotBePlanned:
    def test_has_a_note_and_no_number(self) -> None:
        values = np.full((4, 1, 5, 1), np.nan)
        values[0, 0, 0] = 9  # one example
        values[:, 0, 1] = 9  # no variance
        values[:, 0, 2, 0] = [2, 4, 1, 5]  # at the threshold
        values[:, 0, 3, 0] = [4, 5, 6, 7]
        values[:, 0, 4, 0] = [1, 2, 1, 2]
        plan = plan_for(values)
        frame = plan.frame
        assert frame["corpus_examples"].isna().tolist() == [True, True, False, False, False]
        assert np.isinf(frame["corpus_examples"]).tolist() == [False, False, True, False, False]
        assert frame["direction"].tolist() == ["", "", "", "yes", "no"]
        notes = ["untestable", "degenerate", "the pilot mean is at the threshold", "", ""]
        assert frame["note"].str.split(":").str[0].tolist() == notes
        # The correction counts the three tests that can be made.
        assert frame["alpha_per_test"].tolist()[3:] == pytest.approx([0.05 / 3] * 2)
        row, needed = plan.summary().loc["r0"], sorted(frame["corpus_examples"].dropna())
        assert (row["above"], row["below"], row["unplanned"]) == (1, 1, 2)
        assert (row["half"], row["nine_tenths"], row["all"]) == (needed[1], np.inf, np.inf)
        rows = json.loads(plan.export("json"), parse_constant=pytest.fail)["rows"]
        assert [own["corpus_examples"] is None for own in rows] == [True] * 3 + [False] * 2

    @pytest.mark.parametrize("correction", CORRECTIONS)
    def test_a_role_without_a_test(self, correction: str) -> None:
        values = np.random.default_rng(0).normal(4, 1, (9, 1, 2, 2))
        values[1:, ..., 1] = np.nan  # one example
        plan = plan_for(values, correction=correction)
        assert np.isfinite(plan.frame["corpus_examples"]).tolist() == [True, True, False, False]
        assert plan.frame["alpha_per_test"].isna().tolist() == [False, False, True, True]
        row = plan.summary().loc["r1"]
        assert row[["half", "nine_tenths", "all"]].isna().all()
        assert row["unplanned"] == 2
        alone = plan_for(values[:1], correction=correction).frame
        assert alone["corpus_examples"].isna().all()

    def test_rounding_around_zero_and_heads_that_hardly_vary(self) -> None:
        values = 1e-8 * np.random.default_rng(0).normal(size=(30, 1, 2, 1))
        frame = plan_for(values, threshold=0.1).frame
        assert frame["note"].str.startswith("degenerate").all()
        assert frame["corpus_examples"].isna().all()
        # The effect of heads that hardly vary is beyond what the noncentral t is computed for.
        values = 0.5 + 3e-5 * np.random.default_rng(0).normal(size=(30, 1, 2, 1))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            frame = plan_for(values, threshold=5, correction="none").frame
        assert (frame["effect_size"] < -1e5).all()
        assert (frame["corpus_examples"] == 2).all()


def test_quantiles_of_a_role_and_three_digits_of_them() -> None:
    plan = plan_for(pilot_with(np.linspace(0.02, 2.1, 20)), correction="none")
    needed = np.sort(plan.frame["corpus_examples"])
    row = plan.summary().loc["r0"]
    assert (row["half"], row["nine_tenths"], row["all"]) == (needed[9], needed[17], needed[19])
    assert row[["above", "below", "unplanned"]].tolist() == [20, 0, 0]
    assert needed[19] == 15458
    assert "15,500" in flat(plan)
    assert "15,458" not in repr(plan)


def test_of_mean_and_contrast_the_harder_test_is_planned() -> None:
    """Contrasts that are easy, hard, and below the margin; and a mean that is below."""
    arc = "syntactic:nsubj:to_governor"
    means = np.array([[[4.0, 5.0], [9.0, 0.7], [9.0, 0.3], [1.0, 5.0]]])
    values = np.random.default_rng(0).normal(means[None], 1, (200, 1, 4, 2))
    both = power_analysis(make_scores(values, [arc, f"{arc}:beyond_offset"])).frame
    alone = power_analysis(make_scores(values[..., :1], [arc])).frame
    assert both["direction"].tolist() == ["yes", "yes", "positional", "no"]
    assert (both["effect_size"] == alone["effect_size"]).tolist() == [True, False, False, True]
    assert both["corpus_examples"][1] > 10 * alone["corpus_examples"][1]


def test_each_step_of_evidence_is_planned_by_itself() -> None:
    """Contrasts with the class that are easy, hard, and below the margin; and none between."""
    arc = "syntactic:nsubj:to_governor"
    roles = [arc, *(f"{arc}:{name}" for name in ("beyond_offset", "near", "near:back", "between"))]
    means = np.array([[[9, 5, 5, 5, 1.0], [9, 5, 0.7, 5, 5], [9, 5, 0.3, 5, 5]]])
    values = np.random.default_rng(0).normal(means[None], 1, (200, 1, 3, 5))
    plan = power_analysis(make_scores(values, roles))
    yes, of_class, past = (
        plan.frame[name].to_numpy()
        for name in ("corpus_examples", "examples_class", "examples_attractors")
    )
    assert (yes[:2] <= of_class[:2]).all()
    assert of_class[0] == 10  # a step takes ten documents, however large the contrast
    assert of_class[1] > 5 * of_class[0]
    assert past[0] > of_class[0]
    assert past[1] == of_class[1]
    assert np.isnan([of_class[2], past[2]]).all()
    assert "Step *class*:" in flat(plan)
    without = power_analysis(make_scores(values[..., :2], roles[:2])).frame
    assert without["examples_class"].isna().all()


def test_record_and_display() -> None:
    plan = plan_for(np.random.default_rng(0).normal(3, 1, (30, 2, 3, 2)), 3, threshold=2.5)
    assert set(plan.frame["threshold"]) == {2.5}
    expected = {"score": "bias", "threshold": 2.5, "clustered_by": "document", "n_clusters": 10}
    expected |= {"joined_documents": 0, "doubled_examples": 0}
    assert plan.facts == {**expected, "effective_clusters": 10.0, "examples": 30}
    assert "(0.8 power each, level 0.05); the pilot had 30." in flat(plan)
