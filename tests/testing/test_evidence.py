"""Tests in both directions against scipy, statsmodels and going through all sign flips."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import ttost_paired

from headroles import assign_roles
from headroles.arrays import FloatArray
from headroles.errors import UsageError
from headroles.inference import (
    CORRECTIONS,
    Alternative,
    Bounds,
    Sample,
    bca_interval,
    simultaneous_intervals,
)
from headroles.testing.answers import ANSWERS, answer, certify
from headroles.testing.catalogue import BETTING
from headroles.testing.catalogue import OFFERED as TESTS
from headroles.testing.evidence import find_equivalence, find_p_values
from headroles.testing.hypotheses import Hypotheses, size_of_scores
from headroles.testing.intervals import find_intervals
from headroles.testing.notes import FEW, find_notes, find_warnings, is_skewed
from headroles.testing.options import TestOptions
from tests.conftest import make_scores

STATSMODELS_NAMES = {"hochberg": "simes-hochberg"}


def values_of(
    n: int = 24, layers: int = 2, heads: int = 3, n_roles: int = 3, seed: int = 0
) -> NDArray[np.float32]:
    """Skewed scores, some of them missing; heads differ in strength, some are near 3."""
    rng = np.random.default_rng(seed)
    means = rng.choice([2.0, 2.6, 3.0, 3.4, 4.5], (layers, heads, n_roles))
    values = means * rng.gamma(9, 1 / 9, (n, layers, heads, n_roles))
    values[n // 2 :, ..., -1] = np.nan
    values[::7, ..., 0] = np.nan
    return values.astype(np.float32)


@dataclass(frozen=True)
class Question:
    """Hypotheses and how they are to be tested."""

    hypotheses: Hypotheses
    options: TestOptions

    @property
    def values(self) -> FloatArray:
        return self.hypotheses.sample.values


def question(
    values: Any,
    documents: list[str] | None = None,
    threshold: float = 3.0,
    bound: float | None = None,
    **options: Any,
) -> Question:
    """Values (examples, layers, heads, roles), side by side in the order role, layer, head.

    They are known to lie within ``bound`` around 0, if it is given.
    """
    asked = TestOptions(**options)
    n, *shape, n_roles = np.shape(values)
    clusters = None
    if documents is not None and asked.clusters != "none":
        clusters = np.unique(documents, return_inverse=True)[1]
    sample = Sample.of(np.moveaxis(np.asarray(values), -1, 1).reshape(n, -1), clusters)
    hypotheses = Hypotheses.of(
        sample,
        threshold,
        size=size_of_scores(sample),
        labels=np.repeat(np.arange(n_roles), np.prod(shape)),
        names=tuple(f"r{role}" for role in range(n_roles)),
        family=asked.family,
        is_clustered=clusters is not None,
        bounds=None if bound is None else bounds_of(n, n_roles, int(np.prod(shape)), bound),
    )
    return Question(hypotheses, asked)


def bounds_of(n: int, n_roles: int, n_heads: int, bound: float) -> Bounds:
    """The same for all examples and roles."""
    same = np.full((n, n_roles), bound)
    kinds = np.repeat(np.arange(n_roles), n_heads)
    return Bounds(-same, same, -same[0], same[0], kinds, cap=2 * bound)


def answers_of(asked: Question) -> NDArray[np.str_]:
    """The answers from both directions."""
    above, below = (find_p_values(asked.hypotheses, asked.options, side) for side in SIDES)
    return answer(above, below, asked.options.alpha)


def outcome_of(asked: Question) -> SimpleNamespace:
    """What both directions say, side by side."""
    hypotheses, options = asked.hypotheses, asked.options
    above, below = (find_p_values(hypotheses, options, side) for side in SIDES)
    intervals = find_intervals(hypotheses, options)
    return SimpleNamespace(
        described=hypotheses.moments,
        is_skewed=is_skewed(hypotheses),
        ci_low=intervals.ci_low,
        ci_high=intervals.ci_high,
        statistic=above.statistic,
        p_above=above.single,
        p_above_adjusted=above.adjusted,
        p_below=below.single,
        p_below_adjusted=below.adjusted,
        answer=answer(above, below, options.alpha),
        tested=above,
    )


SIDES: tuple[Alternative, ...] = ("greater", "less")


def columns_of(asked: Question) -> list[FloatArray]:
    """The values of each test that are there."""
    table = asked.values.astype(float)
    return [column[~np.isnan(column)] for column in table.T]


DOCUMENTS = [f"d{k // 3}" for k in range(24)]


class TestOracles:
    def test_t(self) -> None:
        asked = question(values_of(), threshold=2.9, alpha=0.1)
        found = outcome_of(asked)
        for test, column in enumerate(columns_of(asked)):
            above = stats.ttest_1samp(column, 2.9, alternative="greater")
            below = stats.ttest_1samp(column, 2.9, alternative="less")
            interval = stats.ttest_1samp(column, 2.9).confidence_interval(0.9)
            assert found.statistic[test] == pytest.approx(above.statistic)
            assert found.p_above[test] == pytest.approx(above.pvalue)
            assert found.p_below[test] == pytest.approx(below.pvalue)
            assert found.ci_low[test] == pytest.approx(interval.low)
            assert found.ci_high[test] == pytest.approx(interval.high)

    def test_t_with_clusters(self) -> None:
        asked = question(values_of(), DOCUMENTS)
        found = outcome_of(asked)
        table = asked.values.astype(float)
        for test in range(asked.hypotheses.n_tests):
            there = ~np.isnan(table[:, test])
            clusters = np.unique(np.array(DOCUMENTS)[there], return_inverse=True)[1]
            if len(set(np.bincount(clusters))) > 1:
                continue
            # The small-sample factor of clusters of one size is G / (G - 1), which is that of
            # statsmodels for one coefficient: G / (G - 1) * (n - 1) / (n - 1).
            fit = sm.OLS(table[there, test] - 3, np.ones(there.sum())).fit(
                cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True
            )
            above = stats.t.sf(fit.tvalues[0], clusters.max())
            assert found.described.n_clusters[test] == clusters.max() + 1
            assert found.statistic[test] == pytest.approx(fit.tvalues[0])
            assert found.p_above[test] == pytest.approx(above)
            assert found.p_below[test] == pytest.approx(1 - above)
            low, high = fit.conf_int()[0] + 3
            assert (found.ci_low[test], found.ci_high[test]) == pytest.approx((low, high))

    def test_wilcoxon(self) -> None:
        asked = question(values_of(), test="wilcoxon", clusters="none")
        found = outcome_of(asked)
        for test, column in enumerate(columns_of(asked)):
            for p, alternative in ((found.p_above, "greater"), (found.p_below, "less")):
                expected = stats.wilcoxon(column.astype(float) - 3, alternative=alternative)
                assert p[test] == pytest.approx(expected.pvalue)
            ranks = stats.rankdata(np.abs(column - 3))
            assert found.statistic[test] == pytest.approx(ranks[column > 3].sum())

    def test_sign_flips(self) -> None:
        """All flips of 8 examples, the statistic being scipy's t."""
        values = values_of(n=8, layers=1, heads=4, n_roles=1)[1:, :, :, :]
        values[:] = np.nan_to_num(values, nan=2.5)
        asked = question(values, test="sign_flip", correction="max_t")
        found = outcome_of(asked)
        above, above_adjusted = all_flips(asked.values.astype(float) - 3)
        below, below_adjusted = all_flips(3 - asked.values.astype(float))
        np.testing.assert_allclose(found.p_above, above)
        np.testing.assert_allclose(found.p_above_adjusted, above_adjusted)
        np.testing.assert_allclose(found.p_below, below)
        np.testing.assert_allclose(found.p_below_adjusted, below_adjusted)

    def test_bootstrap_t_is_near_the_t_test_where_data_are_normal(self) -> None:
        values = np.random.default_rng(1).normal(3.1, 1, (200, 1, 6, 1))
        found = outcome_of(question(values, test="bootstrap_t", resamples=4000))
        t = outcome_of(question(values))
        np.testing.assert_allclose(found.p_above, t.p_above, atol=0.02)
        np.testing.assert_allclose(found.p_below, t.p_below, atol=0.02)
        np.testing.assert_array_equal(found.statistic, t.statistic)

    @pytest.mark.parametrize("family", ["all", "role"])
    @pytest.mark.parametrize("correction", CORRECTIONS)
    def test_corrections(self, correction: str, family: str) -> None:
        values = values_of(heads=5)
        values[1:, 0, 0] = np.nan  # untestable: these do not count
        asked = question(values, correction=correction, family=family)
        found = outcome_of(asked)
        families = (
            asked.hypotheses.labels if family == "role" else np.zeros(asked.hypotheses.n_tests)
        )
        for p, adjusted in (
            (found.p_above, found.p_above_adjusted),
            (found.p_below, found.p_below_adjusted),
        ):
            assert np.isnan(p).sum() == 3
            np.testing.assert_array_equal(np.isnan(p), np.isnan(adjusted))
            for label in np.unique(families):
                here = (families == label) & ~np.isnan(p)
                expected = p[here]
                if correction != "none":
                    method = STATSMODELS_NAMES.get(correction, correction)
                    expected = multipletests(p[here], alpha=0.05, method=method)[1]
                np.testing.assert_allclose(adjusted[here], np.maximum(expected, p[here]))


def all_flips(differences: FloatArray) -> tuple[FloatArray, FloatArray]:
    """p-values of every test, and step-down max-T, by the definition."""

    def t(data: FloatArray) -> FloatArray:
        return np.asarray(stats.ttest_1samp(data, 0).statistic)

    observed = t(differences)
    flipped = np.array(
        [
            t(np.array(signs)[:, None] * differences)
            for signs in product((1, -1), repeat=len(differences))
        ]
    )
    least = observed - 1e-9
    single = (flipped >= least).mean(axis=0)
    adjusted = np.empty_like(single)
    order, before = np.argsort(-observed), 0.0
    for place, test in enumerate(order):
        largest = flipped[:, order[place:]].max(axis=1)
        before = max(before, float((largest >= least[test]).mean()))
        adjusted[test] = before
    return single, adjusted


class TestFamiliesOfResampling:
    def test_max_t_within_each_role(self) -> None:
        values = values_of()
        apart = outcome_of(question(values, test="sign_flip", correction="max_t", family="role"))
        for role in range(3):
            alone = outcome_of(question(values[..., [role]], test="sign_flip", correction="max_t"))
            here = slice(6 * role, 6 * role + 6)
            np.testing.assert_array_equal(apart.p_above_adjusted[here], alone.p_above_adjusted)
            np.testing.assert_array_equal(apart.p_below_adjusted[here], alone.p_below_adjusted)

    def test_intervals(self) -> None:
        asked = question(values_of(), DOCUMENTS, interval="bca", resamples=500, seed=5)
        found = outcome_of(asked)
        expected = bca_interval(asked.hypotheses.sample, n_resamples=500, seed=5)
        np.testing.assert_array_equal(found.ci_low, expected.ci_low)
        np.testing.assert_array_equal(found.ci_high, expected.ci_high)

    @pytest.mark.parametrize("family", ["all", "role"])
    def test_simultaneous_intervals(self, family: str) -> None:
        asked = question(
            values_of(), DOCUMENTS, interval="simultaneous", alpha=0.2, family=family, seed=5
        )
        found = outcome_of(asked)
        for part in asked.hypotheses.columns_by_family:
            expected = simultaneous_intervals(
                asked.hypotheses.sample.take(part), confidence=0.8, seed=5
            )
            np.testing.assert_array_equal(found.ci_low[part], expected.ci_low)
            np.testing.assert_array_equal(found.ci_high[part], expected.ci_high)


class TestAnswers:
    @given(
        seed=st.integers(0, 2**20),
        test=st.sampled_from(["t", "sign_flip"]),
        correction=st.sampled_from(CORRECTIONS),
        clustered=st.booleans(),
        alpha=st.floats(0.01, 0.49),
    )
    @example(seed=50400, test="sign_flip", correction="none", clustered=False, alpha=0.46875)
    @settings(max_examples=40, deadline=None)
    def test_follow_from_the_p_values(
        self, seed: int, test: str, correction: str, clustered: bool, alpha: float
    ) -> None:
        values = values_of(seed=seed)
        values[1:, 0, 0] = np.nan
        found = outcome_of(
            question(
                values,
                DOCUMENTS if clustered else None,
                test=test,
                correction=correction,
                alpha=alpha,
                resamples=99,
            )
        )
        yes, no, undecided, untestable = (found.answer == answer for answer in ANSWERS)
        assert (yes.astype(int) + no + undecided + untestable == 1).all()
        np.testing.assert_array_equal(yes, found.p_above_adjusted <= alpha)
        np.testing.assert_array_equal(no, found.p_below_adjusted <= alpha)
        np.testing.assert_array_equal(untestable, np.isnan(found.p_above))
        # by 99 random flips p can fall short of a half on the wrong side of the threshold
        clear = 0.5 if test == "t" else 0.25
        assert (found.described.mean[yes & (found.p_above < clear)] > 3).all()
        assert (found.described.mean[no & (found.p_below < clear)] < 3).all()
        assert untestable.sum() == 3

    @pytest.mark.parametrize("test", TESTS)
    def test_mirrored_scores_get_the_opposite_answers(self, test: str) -> None:
        values = values_of(400 if test == BETTING else 24)  # bounds are far from most values
        options: Any = {"test": test, "clusters": "none", "resamples": 999, "bound": 20}
        there = outcome_of(question(values, threshold=3, **options))
        back = outcome_of(question(-values, threshold=-3, **options))
        np.testing.assert_allclose(back.p_above, there.p_below)
        np.testing.assert_allclose(back.p_below_adjusted, there.p_above_adjusted)
        opposite = {"yes": "no", "no": "yes", "undecided": "undecided"}
        assert back.answer.tolist() == [opposite[answer] for answer in there.answer]
        assert len(set(there.answer)) == 3

    @pytest.mark.parametrize(("n", "decided"), [(2, False), (5, False), (60, True)])
    def test_where_nothing_varies_the_number_of_units_decides(self, n: int, decided: bool) -> None:
        levels = np.array([0.1, 0.2, 0.3, 0.2 * (1 + 1e-7)]).reshape(1, 4, 1)
        found = outcome_of(question(np.broadcast_to(levels, (n, 1, 4, 1)), threshold=0.2))
        expected = ["no", "undecided", "yes", "undecided"] if decided else ["undecided"] * 4
        assert found.answer.tolist() == expected
        assert np.isnan(found.p_above).all()

    @pytest.mark.parametrize("n", [2, 8, 16, 60])
    def test_where_nothing_varies_betting_decides_if_it_can(self, n: int) -> None:
        """Over documents, and corrected: what is answered is what is certified."""
        levels = np.array([-0.9, 0.0, 0.2, 0.9]).reshape(1, 4, 1)
        values = np.broadcast_to(levels, (2 * n, 1, 4, 1))
        documents = [f"d{k % n}" for k in range(2 * n)]
        asked = question(values, documents, threshold=0.2, bound=1)
        betting = question(values, documents, threshold=0.2, bound=1, test="betting")
        found = outcome_of(asked).answer.tolist()
        assert found == outcome_of(betting).answer.tolist()
        assert found[2] == "undecided"
        assert (found[0] == "no") == (n > 2)
        assert certify(asked.hypotheses, asked.options).answers.tolist() == found

    @pytest.mark.parametrize("value", [2e-9, -2e-9, 9e-6])
    def test_rounding_is_not_above_a_threshold_of_zero(self, value: float) -> None:
        found = outcome_of(question(np.full((5, 1, 1, 1), value), threshold=0))
        assert found.answer.tolist() == ["undecided"]
        many = question(np.full((10**6, 1, 1, 1), value), threshold=0)
        assert outcome_of(many).answer.tolist() == ["undecided"]

    @pytest.mark.parametrize("documents", [None, DOCUMENTS])
    @pytest.mark.parametrize("test", [test for test in TESTS if test != BETTING])
    def test_rounding_around_zero_does_not_vary(
        self, test: str, documents: list[str] | None
    ) -> None:
        """A uniform head has no excess but that of float32 sums; its neighbour is tested."""
        rng = np.random.default_rng(0)
        values = rng.normal([1.2e-8, 0.1], [2e-8, 2e-5], (24, 1, 1, 2)).transpose(0, 1, 3, 2)
        values[3] = np.nan
        options = {"clusters": "none"} if test == "wilcoxon" else {}
        for threshold, expected in ((0.9, "no"), (0.0, "undecided"), (-0.9, "yes")):
            asked = question(values, documents, test=test, threshold=threshold, **options)
            found = outcome_of(asked)
            assert found.answer[0] == expected
            units = "documents" if documents and not options else "examples"
            assert find_notes(asked.hypotheses).tolist() == [
                f"degenerate: no variance beyond rounding, so only the number of {units} decides",
                "",
            ]
            assert np.isnan([found.p_above, found.p_below]).tolist() == [[True, False]] * 2
            assert found.ci_low[0] == found.ci_high[0] == found.described.mean[0]
            np.testing.assert_allclose(found.described.mean[0], np.nanmean(asked.values[:, 0]))
            assert found.described.n[0] == 23

    def test_columns_that_vary_are_what_they_were(self) -> None:
        values = values_of()
        expected = np.moveaxis(values, -1, 1).reshape(len(values), -1)
        np.testing.assert_array_equal(question(values).values, expected)

    def test_two_stages_reject_nothing_that_speaks_for_the_other_side(self) -> None:
        """With 49 of 50 heads far above, plain two-stage would reject the 50th too."""
        values = np.random.default_rng(0).normal(9, 1, (20, 1, 50, 1))
        values[:, 0, 0] -= 8
        asked = question(values, correction="fdr_tsbh")
        found = outcome_of(asked)
        plain = multipletests(found.p_above, alpha=0.05, method="fdr_tsbh")[1]
        assert plain[0] <= 0.05  # that is why
        assert found.answer.tolist() == ["no"] + ["yes"] * 49


def test_the_seed_decides() -> None:
    values = values_of()

    def p_values(seed: int) -> SimpleNamespace:
        return outcome_of(
            question(values, test="sign_flip", interval="bca", resamples=200, seed=seed)
        )

    one, again, other = p_values(1), p_values(1), p_values(2)
    np.testing.assert_array_equal(one.p_above_adjusted, again.p_above_adjusted)
    np.testing.assert_array_equal(one.ci_low, again.ci_low)
    assert (one.p_above != other.p_above).any()
    assert (one.ci_low != other.ci_low).any()


def test_notes() -> None:
    values = np.full((4, 1, 4, 1), np.nan)
    values[:1, 0, 0] = 4
    values[:2, 0, 1, 0] = [4, 5]  # of one document
    values[:, 0, 2, 0] = [4, 6, 4, 6]  # both documents have the same mean
    values[:, 0, 3] = 4
    asked = question(values, ["a", "a", "b", "b"])
    found = outcome_of(asked)
    assert find_notes(asked.hypotheses).tolist() == [
        "untestable: fewer than two examples",
        "untestable: fewer than two clusters",
        "untestable: the clusters cancel",
        "degenerate: no variance beyond rounding, so only the number of documents decides",
    ]
    assert found.answer.tolist() == ["untestable"] * 3 + ["undecided"]


class TestWarnings:
    def warnings_of(
        self, values: Any, documents: list[str] | None = None, **options: Any
    ) -> list[str]:
        asked = question(values, documents, **options)
        return find_warnings(asked.hypotheses, asked.options, outcome_of(asked).tested)

    @pytest.mark.parametrize("n_documents", [FEW - 1, FEW])
    def test_few_clusters(self, n_documents: int) -> None:
        values = np.random.default_rng(0).normal(3, 1, (n_documents, 1, 2, 1))
        warned = self.warnings_of(values, [f"d{k}" for k in range(n_documents)])
        assert len(warned) == (n_documents < FEW)
        assert all("all roles come from fewer than 20 documents" in text for text in warned)
        warned = self.warnings_of(values)
        assert len(warned) == (n_documents < FEW)
        assert all("all roles come from fewer than 20 examples" in text for text in warned)
        assert all("document" not in text and "test=" not in text for text in warned)

    @pytest.mark.parametrize("test", ["t", "sign_flip"])
    @pytest.mark.parametrize("n_documents", [2, 5, 6])
    def test_the_advice_on_few_clusters(self, n_documents: int, test: str) -> None:
        values = np.random.default_rng(0).normal(3, 1, (30, 1, 2, 1))
        warned = self.warnings_of(values, [f"d{k % n_documents}" for k in range(30)], test=test)[0]
        assert "Add documents" in warned
        assert ("clusters='none'" in warned) == (n_documents < 6)
        assert ("test='sign_flip'" in warned) == (n_documents == 6 and test == "t")

    def test_the_advice_on_few_clusters_of_a_rare_role(self) -> None:
        values = np.random.default_rng(0).normal(3, 1, (30, 1, 2, 2))
        values[3:, ..., 1] = np.nan
        warned, _skewed = self.warnings_of(values, [f"d{k}" for k in range(30)])
        assert warned.endswith("Add documents.")

    def test_few_clusters_of_some_roles(self) -> None:
        values = np.random.default_rng(0).normal(3, 1, (FEW, 1, 2, 3))
        values[9:, ..., 1] = np.nan
        documents = [f"d{k}" for k in range(FEW)]
        warned, _skewed = self.warnings_of(values, documents)
        assert "1 of 3 roles (r1) come from" in warned
        assert "test='sign_flip'" in warned
        warned, _skewed = self.warnings_of(values, documents, test="sign_flip")
        assert "test=" not in warned

    @pytest.mark.parametrize(
        ("options", "reachable"),
        [
            ({"test": "sign_flip", "correction": "holm"}, False),  # 12 * 1 / 100 > 0.05
            ({"test": "bootstrap_t", "correction": "bonferroni"}, False),
            ({"test": "bootstrap_t", "correction": "holm", "family": "role"}, True),
            ({"test": "sign_flip", "correction": "max_t"}, True),
            ({"test": "sign_flip", "correction": "fdr_bh"}, True),
            ({"test": "t", "correction": "holm"}, True),
        ],
    )
    def test_p_values_that_no_resamples_reach(
        self, options: dict[str, Any], reachable: bool
    ) -> None:
        values = np.random.default_rng(0).normal(9, 1, (30, 1, 4, 3))
        asked = question(values, resamples=99, **options)
        evidence = outcome_of(asked)
        assert (evidence.answer == "yes").any() == reachable
        warned = find_warnings(asked.hypotheses, asked.options, evidence.tested)
        assert len(warned) == (not reachable)

    @pytest.mark.parametrize(
        ("n_documents", "options", "expected"),
        [
            (4, {"correction": "none"}, "0.062, too large at alpha 0.05. Try more documents."),
            (4, {"correction": "max_t"}, "0.062, too large at alpha 0.05. Try more documents."),
            (
                6,
                {"correction": "holm"},
                "0.016, too large for 4 tests at alpha 0.05. Try "
                "more documents or correction='max_t' (--correction max_t).",
            ),
            (
                12,
                {"correction": "none", "resamples": 9},
                "0.1, too large at alpha 0.05. Try more resamples (--resamples).",
            ),
            (
                12,
                {"correction": "holm", "resamples": 59},
                "0.017, too large for 4 tests at alpha 0.05. Try "
                "more resamples (--resamples) or correction='max_t' (--correction max_t).",
            ),
            (
                12,
                {"correction": "holm", "resamples": 59, "test": "bootstrap_t"},
                "0.017, too large for 4 tests at alpha 0.05. Try "
                "more resamples (--resamples) or correction='fdr_bh' (--correction fdr_bh).",
            ),
        ],
    )
    def test_the_advice_on_p_values_out_of_reach(
        self, n_documents: int, options: dict[str, Any], expected: str
    ) -> None:
        values = np.random.default_rng(0).normal(9, 1, (2 * n_documents, 1, 4, 1))
        documents = [f"d{k // 2}" for k in range(2 * n_documents)]
        warned = self.warnings_of(values, documents, **{"test": "sign_flip", **options})
        assert warned[-1].startswith("no hypothesis can be rejected: the smallest p-value that ")
        assert warned[-1].endswith(f"can give here is {expected}")

    def test_the_smallest_family_decides_what_is_out_of_reach(self) -> None:
        """Four tests of r0, one of r1: a p-value of 1/60 can reject in the family of one."""
        values = np.random.default_rng(0).normal(9, 1, (30, 1, 4, 2))
        values[..., 1:, 1] = np.nan
        options = {"test": "bootstrap_t", "correction": "holm", "resamples": 39}
        warned = self.warnings_of(values, family="role", **options)
        assert not any("no hypothesis can be rejected" in text for text in warned)
        assert "no hypothesis can be rejected" in self.warnings_of(values, **options)[-1]

    def test_two_sided_sign_flips_come_in_larger_steps(self) -> None:
        values = np.random.default_rng(0).normal(9, 1, (10, 1, 2, 1))
        asked = question(values, [f"d{k // 2}" for k in range(10)], test="sign_flip")
        both = find_p_values(asked.hypotheses, asked.options, "two-sided")
        assert both.single.min() == pytest.approx(2 / 2**5)
        warned = find_warnings(asked.hypotheses, asked.options, both, sides=2)
        assert "the smallest p-value that sign_flip can give here is 0.062" in warned[-1]
        above = find_p_values(asked.hypotheses, asked.options, "greater")
        one_sided = find_warnings(asked.hypotheses, asked.options, above)
        assert not any("no hypothesis" in text for text in one_sided)


def test_few_examples_for_their_skewness() -> None:
    """Cochran's rule against scipy's skewness, with missing values."""
    rng = np.random.default_rng(0)
    values = np.stack([rng.normal(3, 1, 200), rng.lognormal(0, 1.5, 200)], axis=1)
    values[:40, 1] = np.nan
    asked = question(values[:, None, None, :], clusters="none")
    skewness = stats.skew(values, axis=0, nan_policy="omit")
    n = (~np.isnan(values)).sum(axis=0)
    assert (n < 25 * skewness**2).tolist() == [False, True]
    found = outcome_of(asked)
    assert found.is_skewed.tolist() == [False, True]
    warned = find_warnings(asked.hypotheses, asked.options, found.tested)
    assert any("1 of 2 tests have too few examples" in text for text in warned)
    scores = make_scores(values[:, None, None, :], ("local", "delimiter"))
    notes_of = dict(zip(*assign_roles(scores).frame[["role", "note"]].to_numpy().T, strict=True))
    assert notes_of["local"] == ""
    assert notes_of["delimiter"].startswith("skewed: fewer than 25 times")


def test_own_notes_come_before_skewness_and_after_what_was_not_tested() -> None:
    rng = np.random.default_rng(0)
    values = rng.lognormal(0, 2, (30, 1, 3, 1))
    values[:, 0, 0] = 4
    own = np.array(["seen", "seen", ""], dtype=object)
    notes = find_notes(question(values).hypotheses, own).tolist()
    assert [note.split(":")[0] for note in notes] == ["degenerate", "seen", "skewed"]


class TestEquivalence:
    """Two one-sided tests of differences, against scipy and statsmodels."""

    @pytest.mark.parametrize("clustered", [False, True])
    @pytest.mark.parametrize("test", ["t", "sign_flip"])
    def test_is_the_larger_of_two_tests(self, test: str, clustered: bool) -> None:
        values = np.random.default_rng(0).normal(0.1, 0.5, (24, 1, 4, 2))
        documents = DOCUMENTS if clustered else None
        asked = question(values, documents, threshold=0, test=test, correction="none", seed=3)
        found = find_equivalence(asked.hypotheses, asked.options, 0.3)
        ends = [
            find_p_values(asked.hypotheses.against(limit), asked.options, side).single
            for limit, side in ((-0.3, SIDES[0]), (0.3, SIDES[1]))
        ]
        np.testing.assert_array_equal(found.single, np.maximum(*ends))
        np.testing.assert_array_equal(found.adjusted, found.single)
        if test == "t" and not clustered:
            for p, column in zip(found.single, columns_of(asked), strict=True):
                expected = ttost_paired(column, np.zeros_like(column), -0.3, 0.3)[0]
                assert p == pytest.approx(expected)

    @pytest.mark.parametrize(("n", "enough"), [(2, False), (60, True)])
    def test_where_nothing_varies_the_number_of_units_decides(self, n: int, enough: bool) -> None:
        values = np.broadcast_to(np.array([0.0, 5e-6, 0.1, 0.6]).reshape(1, 1, 4, 1), (n, 1, 4, 1))
        asked = question(values, threshold=0)
        equivalence = find_equivalence(asked.hypotheses, asked.options, 0.5)
        change = find_p_values(asked.hypotheses, asked.options, "two-sided")
        assert np.isnan(equivalence.single).all()
        assert change.shows(0.05).tolist() == [False, False, enough, enough]
        assert equivalence.shows(0.05).tolist() == [enough] * 3 + [False]


@pytest.mark.parametrize("n", [2, 3, 5, 8, 40])
def test_hits_that_do_not_vary_are_seldom_answered_wrongly(n: int) -> None:
    """Heads hit with probabilities near the threshold; few samples of few units are all alike."""
    rng = np.random.Generator(np.random.PCG64DXSM(n))
    true = rng.choice([0.1, 0.25, 0.35, 0.5, 0.97], 200)
    wrong, decided = 0, 0
    for _ in range(20):
        hits = (rng.random((n, 200)) < true).astype(np.float32)
        asked = question(hits[:, None, :, None], threshold=0.3, bound=1, family="role")
        alike, answers = asked.hypotheses.is_alike, outcome_of(asked).answer
        decided += int((alike & np.isin(answers, ["yes", "no"])).sum())
        wrong += int((alike & (answers == np.where(true > 0.3, "no", "yes"))).sum())
    assert wrong <= 1
    assert (decided > 0) == (n > 8)


def test_differences_of_large_scores_are_rounding_where_small_ones_are_not() -> None:
    """Noise of 2e-4 in scores near 100, as another batch size makes it, is no change."""
    rng = np.random.default_rng(0)
    differences = rng.normal(1e-4, 1e-4, (200, 2))
    hypotheses = Hypotheses.of(differences, 0, size=np.array([100.0, 1.0]))
    change = find_p_values(hypotheses, TestOptions(), "two-sided")
    assert change.shows(0.05).tolist() == [False, True]
    assert np.isnan(change.single).tolist() == [True, False]


def test_clusters_of_unequal_sizes_count_as_fewer() -> None:
    """One document of 60 examples beside 24 of one each."""
    values = np.random.default_rng(0).normal(3, 1, (84, 1, 2, 1))
    documents = [f"d{max(0, k - 59)}" for k in range(84)]
    asked = question(values, documents)
    assert asked.hypotheses.moments.n_clusters.tolist() == [25, 25]
    above = find_p_values(asked.hypotheses, asked.options, "greater")
    (warning,) = find_warnings(asked.hypotheses, asked.options, above)
    assert "few documents (effective number 3, below 20): tests are unreliable. Add" in warning
    even = question(values[:50], [f"d{k // 2}" for k in range(50)])
    above = find_p_values(even.hypotheses, even.options, "greater")
    assert find_warnings(even.hypotheses, even.options, above) == []


class TestBetting:
    """Values of 0 to 1 and thresholds in between, for 120 examples of 40 documents."""

    def asked(self, **options: Any) -> Question:
        documents = [f"d{k // 3}" for k in range(120)]
        means = np.array([0.1, 0.2, 0.5, 0.8])
        values = np.random.default_rng(0).beta(9 * means, 9 * (1 - means), (120, 1, 4))[..., None]
        values[:, 0, 0] = 0.1
        return question(values, documents, 0.5, bound=1, test="betting", **options)

    def test_adjusted_by_benjamini_and_hochberg_it_is_the_procedure_of_e_values(self) -> None:
        found = outcome_of(self.asked())
        largest = np.sort(np.exp(found.statistic))[::-1]
        enough = largest >= 4 / (0.05 * np.arange(1, 5))
        assert (found.answer == "yes").sum() == np.max(np.arange(1, 5) * enough) == 1

    def test_a_column_without_variance_is_tested(self) -> None:
        asked = self.asked()
        assert asked.hypotheses.moments.status[0] == "degenerate"
        found = outcome_of(asked)
        assert found.answer.tolist() == ["no", "no", "undecided", "yes"]
        few = question(np.full((4, 1, 1, 1), 0.1), None, 0.5, bound=1, test="betting")
        assert outcome_of(few).answer.tolist() == ["undecided"]
        assert outcome_of(question(few.values[:, :, None, None], None, 0.5)).answer == "undecided"

    def test_it_needs_neither_notes_nor_warnings(self) -> None:
        asked = self.asked()
        above = find_p_values(asked.hypotheses, asked.options, "greater")
        assert find_warnings(asked.hypotheses, asked.options, above) == []
        assert find_notes(asked.hypotheses, test="betting").tolist() == [""] * 4

    def test_without_bounds_it_is_refused(self) -> None:
        with pytest.raises(UsageError, match="betting needs the bounds of scores"):
            outcome_of(question(values_of(), test="betting"))


class TestSelection:
    """Intervals of the tests that got an answer."""

    def test_they_are_t_intervals_of_a_level_for_how_many_were_selected(self) -> None:
        asked = question(values_of(60), correction="fdr_bh", interval="fcr")
        answers = answers_of(asked)
        found = find_intervals(asked.hypotheses, asked.options, answers)
        assert set(answers) == {"yes", "no", "undecided"}
        for test, column in enumerate(columns_of(asked)):
            if answers[test] == "undecided":
                assert np.isnan([found.ci_low[test], found.ci_high[test]]).all()
                continue
            level = 1 - 0.05 * (answers == answers[test]).sum() / len(answers)
            expected = stats.ttest_1samp(column, 3).confidence_interval(level)
            limits = (found.ci_low[test], found.ci_high[test])
            assert limits == pytest.approx(tuple(expected))

    def test_at_most_alpha_of_the_selected_intervals_miss(self) -> None:
        """Means a little above the threshold: plain intervals of those selected miss more."""
        rng = np.random.default_rng(0)
        rates = {"t": [], "fcr": []}  # type: ignore[var-annotated]
        for _ in range(60):
            means = 3 + rng.exponential(0.15, 200)
            values = rng.normal(means, 1, (25, 200)).reshape(25, 1, 200, 1)
            for interval, found_rates in rates.items():
                asked = question(values, interval=interval, clusters="none")
                answers = answers_of(asked)
                found = find_intervals(asked.hypotheses, asked.options, answers)
                selected = answers == "yes"
                missed = (found.ci_low > means) | (found.ci_high < means)
                found_rates.append(missed[selected].sum() / max(1, selected.sum()))
        assert np.mean(rates["t"]) > 0.1
        assert np.mean(rates["fcr"]) <= 0.05

    def test_they_need_answers(self) -> None:
        asked = question(values_of(), interval="fcr")
        with pytest.raises(UsageError, match="interval 'fcr' needs tests with answers"):
            find_intervals(asked.hypotheses, asked.options)


def test_both_directions_together_keep_the_false_discovery_rate() -> None:
    """No mean is at the threshold; half of them are so near that only chance gives an answer."""
    rng = np.random.default_rng(1)
    means = 3 + np.repeat([-1.0, -1e-6, 1e-6, 1.0], [50, 50, 50, 50])
    shares = []
    for _ in range(150):
        asked = question(rng.normal(means, 1, (25, 200)).reshape(25, 1, 200, 1))
        answers = outcome_of(asked).answer
        wrong = np.where(means > 3, answers == "no", answers == "yes")
        shares.append(wrong.sum() / max(1, np.isin(answers, ["yes", "no"]).sum()))
    assert np.mean(shares) <= 0.05


@pytest.mark.parametrize(
    ("options", "claims"),
    [
        ({"correction": "holm"}, ["the correction holm promises"]),
        ({"interval": "simultaneous", "resamples": 99}, ["simultaneous intervals promise"]),
        (
            {"interval": "simultaneous", "resamples": 99, "correction": "bonferroni"},
            ["the correction bonferroni promises", "simultaneous intervals promise"],
        ),
        ({"test": "betting", "correction": "holm"}, []),
        (
            {"test": "betting", "correction": "holm", "interval": "simultaneous", "resamples": 99},
            ["simultaneous intervals promise"],
        ),
        ({"correction": "fdr_bh"}, []),
    ],
    ids=str,
)
def test_claims_about_families_of_skewed_scores_are_warned_of(
    options: dict[str, Any], claims: list[str]
) -> None:
    rng = np.random.default_rng(0)
    skewed = question(rng.gamma(0.2, 1, (100, 1, 2, 1)), bound=100, **options)
    unused = find_p_values(skewed.hypotheses, TestOptions(), "greater")
    warnings = find_warnings(skewed.hypotheses, skewed.options, unused)
    warned = [warning for warning in warnings if "no error in a whole family" in warning]
    assert len(warned) == len(claims)
    for warning, claim in zip(warned, claims, strict=True):
        advice = (
            "interval='fcr'"
            if "intervals" in claim
            else "Run headroles assign --test betting, which"
        )
        assert warning.startswith(claim)
        assert advice in warning
    even = question(rng.normal(3, 1, (100, 1, 2, 1)), **options)
    assert find_warnings(even.hypotheses, even.options, unused) == []


@pytest.mark.parametrize(("bound", "sides"), [(None, 1), (None, 2)])
def test_no_warning_names_a_test_that_cannot_be_made(bound: float | None, sides: int) -> None:
    values = np.random.default_rng(0).gamma(0.2, 1, (100, 1, 2, 1))
    options = {"correction": "holm", "interval": "simultaneous", "resamples": 99}
    asked = question(values, bound=bound, **options)
    unused = find_p_values(asked.hypotheses, TestOptions(), "greater")
    warned = " ".join(find_warnings(asked.hypotheses, asked.options, unused, sides))
    assert "Pass correction='fdr_bh' (--correction fdr_bh), which promises less." in warned
    assert "betting" not in warned
    assert ("interval='fcr'" in warned) == (sides == 1)
