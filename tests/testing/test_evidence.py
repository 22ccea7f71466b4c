"""Answers, and tests in both directions against scipy and statsmodels."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import ttost_paired

from headroles import assign_roles
from headroles.arrays import MODEL_TERMS, FloatArray, rounding_bound
from headroles.inference import CORRECTIONS, Alternative, Bounds, Sample
from headroles.testing.evidence import (
    ANSWERS,
    BETTING,
    UNTESTABLE,
    PValues,
    answers,
    corrected_together,
    find_equivalence,
    find_p_values,
    in_at_least,
)
from headroles.testing.hypotheses import Hypotheses, size_of_scores
from headroles.testing.notes import FEW, find_notes, find_warnings, is_skewed
from headroles.testing.options import CorrectionOptions, TestOptions
from tests.conftest import make_scores

SIDES: tuple[Alternative, ...] = ("greater", "less")
DOCUMENTS = [f"d{k // 3}" for k in range(24)]


def values_of(n: int = 24, heads: int = 3, seed: int = 0) -> NDArray[np.float32]:
    """Skewed scores, some of them missing; heads differ in strength, some are near 3."""
    rng = np.random.default_rng(seed)
    means = rng.choice([2.0, 2.6, 3.0, 3.4, 4.5], (2, heads, 3))
    values = means * rng.gamma(9, 1 / 9, (n, 2, heads, 3))
    values[n // 2 :, ..., -1] = np.nan
    values[::7, ..., 0] = np.nan
    return values.astype(np.float32)


def question(
    values: Any,
    documents: list[str] | None = None,
    threshold: float = 3.0,
    bound: float | None = None,
    **options: Any,
) -> Any:
    """Hypotheses, the options of their tests, and the values.

    Values (examples, layers, heads, roles) stand side by side in the order role, layer, head; they
    are known to lie within ``bound`` around 0, if it is given.
    """
    asked = TestOptions(**options)
    n, *shape, n_roles = np.shape(values)
    clusters = None
    if documents is not None and asked.clusters != "none":
        clusters = np.unique(documents, return_inverse=True)[1]
    sample = Sample.from_values(np.moveaxis(np.asarray(values), -1, 1).reshape(n, -1), clusters)
    labels, bounds = np.repeat(np.arange(n_roles), np.prod(shape)), None
    if bound is not None:
        same = np.full((n, n_roles), bound)
        bounds = Bounds(-same, same, -same[0], same[0], labels, cap=2 * bound)
    hypotheses = Hypotheses.from_values(
        sample,
        threshold,
        size=size_of_scores(sample),
        labels=labels,
        names=tuple(f"r{role}" for role in range(n_roles)),
        is_clustered=clusters is not None,
        bounds=bounds,
    )
    return SimpleNamespace(hypotheses=hypotheses, options=asked, values=hypotheses.sample.values)


def answered(above: PValues, below: PValues, alpha: float) -> NDArray[np.str_]:
    """The side that is shown; both are never shown of one mean."""
    yes, no = above.shows(alpha), below.shows(alpha)
    assert not (yes & no).any()
    return np.where(np.isnan(below.evidence), UNTESTABLE, answers(yes | no, yes * 1.0 - no))


def outcome_of(asked: Any) -> SimpleNamespace:
    """What both directions say, side by side."""
    hypotheses, options = asked.hypotheses, asked.options
    above, below = (find_p_values(hypotheses, options, side) for side in SIDES)
    intervals = hypotheses.intervals(options.alpha)
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
        answer=answered(above, below, options.alpha),
    )


def columns_of(asked: Any) -> list[FloatArray]:
    """The values of each test that are there."""
    table = asked.values.astype(float)
    return [column[~np.isnan(column)] for column in table.T]


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

    @pytest.mark.parametrize("correction", CORRECTIONS)
    def test_corrections(self, correction: str) -> None:
        values = values_of(heads=5)
        values[1:, 0, 0] = np.nan  # untestable: these do not count
        found = outcome_of(question(values, correction=correction))
        for p, adjusted in (
            (found.p_above, found.p_above_adjusted),
            (found.p_below, found.p_below_adjusted),
        ):
            assert np.isnan(p).sum() == 3
            made = ~np.isnan(p)
            np.testing.assert_array_equal(made, ~np.isnan(adjusted))
            expected = p[made]
            if correction != "none":
                method = "simes-hochberg" if correction == "hochberg" else correction
                expected = multipletests(p[made], method=method)[1]
            np.testing.assert_allclose(adjusted[made], expected)


class TestAnswers:
    @given(
        seed=st.integers(0, 2**20),
        correction=st.sampled_from(CORRECTIONS),
        clustered=st.booleans(),
        alpha=st.floats(0.01, 0.49),
    )
    @settings(max_examples=12, deadline=None)
    def test_follow_from_the_p_values(
        self, seed: int, correction: str, clustered: bool, alpha: float
    ) -> None:
        values = values_of(seed=seed)
        values[1:, 0, 0] = np.nan
        documents = DOCUMENTS if clustered else None
        found = outcome_of(question(values, documents, correction=correction, alpha=alpha))
        yes, no, undecided, untestable = (found.answer == answer for answer in ANSWERS)
        assert (yes.astype(int) + no + undecided + untestable == 1).all()
        np.testing.assert_array_equal(yes, found.p_above_adjusted <= alpha)
        np.testing.assert_array_equal(no, found.p_below_adjusted <= alpha)
        np.testing.assert_array_equal(untestable, np.isnan(found.p_above))
        assert (found.described.mean[yes] > 3).all()
        assert (found.described.mean[no] < 3).all()
        assert untestable.sum() == 3

    @pytest.mark.parametrize("test", ["t", BETTING])
    def test_mirrored_scores_get_the_opposite_answers(self, test: str) -> None:
        values = values_of(400 if test == BETTING else 24)  # bounds are far from most values
        options: Any = {"test": test, "clusters": "none", "bound": 20}
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
        found, betting = (
            outcome_of(question(values, documents, 0.2, bound=1, test=test)).answer.tolist()
            for test in ("t", "betting")
        )
        assert found == betting
        assert found[2] == "undecided"
        assert (found[0] == "no") == (n > 2)

    @pytest.mark.parametrize("documents", [None, DOCUMENTS])
    def test_rounding_around_zero_does_not_vary(self, documents: list[str] | None) -> None:
        """A uniform head has no excess but that of float32 sums; its neighbour is tested."""
        rng = np.random.default_rng(0)
        values = rng.normal([1.2e-8, 0.1], [2e-8, 2e-5], (24, 1, 1, 2)).transpose(0, 1, 3, 2)
        values[3] = np.nan
        for threshold, expected in ((0.9, "no"), (0.0, "undecided"), (-0.9, "yes")):
            asked = question(values, documents, threshold=threshold)
            found = outcome_of(asked)
            assert found.answer[0] == expected
            units = "documents" if documents else "examples"
            assert find_notes(asked.hypotheses).tolist() == [
                f"degenerate: no variance beyond rounding, so only the number of {units} decides",
                "",
            ]
            assert np.isnan([found.p_above, found.p_below]).tolist() == [[True, False]] * 2
            assert found.ci_low[0] == found.ci_high[0] == found.described.mean[0]
            np.testing.assert_allclose(found.described.mean[0], np.nanmean(asked.values[:, 0]))
            assert found.described.n[0] == 23


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


def warnings_of(values: Any, documents: list[str] | None = None, **options: Any) -> list[str]:
    asked = question(values, documents, **options)
    return find_warnings(asked.hypotheses, asked.options)


@pytest.mark.parametrize("n_documents", [FEW - 1, FEW])
def test_few_documents_or_examples_are_warned_of(n_documents: int) -> None:
    values = np.random.default_rng(0).normal(3, 1, (n_documents, 1, 2, 1))
    for documents, units in (
        ([f"d{k}" for k in range(n_documents)], "documents"),
        (None, "examples"),
    ):
        warned = warnings_of(values, documents)
        assert len(warned) == (n_documents < FEW)
        assert all(text.startswith(f"fewer than 20 {units}: tests") for text in warned)
    assert all("document" not in text and "test=" not in text for text in warned)
    values = np.random.default_rng(0).normal(3, 1, (30, 1, 2, 1))
    for few in (2, 5, 6):
        advice = warnings_of(values, [f"d{k % few}" for k in range(30)])[0]
        assert "Add documents" in advice
        assert ("clusters='none'" in advice) == (few < 6)


def test_few_examples_for_their_skewness() -> None:
    """Cochran's rule against scipy's skewness, with missing values, where the tail is beyond 3."""
    rng = np.random.default_rng(0)
    skewed = 0.2 * rng.lognormal(0, 2, 200)
    values = np.stack([rng.normal(3, 1, 200), skewed, skewed + 4], axis=1)
    values[:40, 1:] = np.nan
    asked = question(values[:, None, None, :], clusters="none")
    skewness = stats.skew(values, axis=0, nan_policy="omit")
    n = (~np.isnan(values)).sum(axis=0)
    assert (n < 25 * skewness**2).tolist() == [False, True, True]
    assert outcome_of(asked).is_skewed.tolist() == [False, True, False]
    (warned,) = find_warnings(asked.hypotheses, asked.options)
    assert warned.startswith("Because scores are skewed, *no* may come too easily in 1 of 3 tests.")
    assert not find_warnings(asked.hypotheses, asked.options, certain=np.array([False, True, True]))
    (warned,) = find_warnings(asked.hypotheses, asked.options, sides=2)
    assert warned.startswith("Because scores are skewed, a change may come too easily in 1 of 3")
    scores = make_scores(values[:, None, None, :], ("local", "delimiter", "punctuation"))
    notes_of = dict(zip(*assign_roles(scores).frame[["role", "note"]].to_numpy().T, strict=True))
    assert notes_of["local"] == notes_of["punctuation"] == ""
    assert "finds this mean below what it is compared with too often" in notes_of["delimiter"]


def test_skewness_of_documents_counts_where_documents_are_the_units() -> None:
    """Forty examples of each of 25 documents, four fifths of whose variance is the documents'.

    Documents are lognormal around a threshold that is their mean, so that every *no* is wrong.
    """
    rng, documents = np.random.default_rng(0), np.repeat(np.arange(25), 40)
    of_documents = rng.lognormal(0, 1, (25, 400))
    noise = rng.normal(0, np.sqrt(of_documents.var() / 4), (1000, 400))
    asked = question(
        (of_documents[documents] + noise)[:, None, :, None],
        [f"d{k:02}" for k in documents],
        threshold=np.exp(0.5),
        correction="none",
    )
    found, sums = outcome_of(asked), np.add.reduceat(asked.values, np.arange(0, 1000, 40))
    centred = sums - sums.mean(axis=0)
    np.testing.assert_allclose(asked.hypotheses.sample.skewness, stats.skew(centred), rtol=1e-4)
    wrong = found.answer == "no"
    assert wrong.sum() > 40  # 10 % instead of 5
    # where a sample lacks the tail it also looks less skewed
    assert found.is_skewed[wrong].mean() > 2 / 3


def test_own_notes_come_before_skewness_and_after_what_was_not_tested() -> None:
    rng = np.random.default_rng(0)
    values = 0.1 * rng.lognormal(0, 2, (30, 1, 3, 1))
    values[:, 0, 0] = 4
    own = np.array(["seen", "seen", ""], dtype=object)
    notes = find_notes(question(values).hypotheses, own).tolist()
    assert [note.split(":")[0] for note in notes] == ["degenerate", "seen", "skewed"]


class TestEquivalence:
    """Two one-sided tests of differences, against scipy and statsmodels."""

    @pytest.mark.parametrize("clustered", [False, True])
    def test_is_the_larger_of_two_tests(self, clustered: bool) -> None:
        values = np.random.default_rng(0).normal(0.1, 0.5, (24, 1, 4, 2))
        documents = DOCUMENTS if clustered else None
        asked = question(values, documents, threshold=0, correction="none")
        found = find_equivalence(asked.hypotheses, asked.options, 0.3)
        ends = [
            find_p_values(asked.hypotheses.against(limit), asked.options, side).single
            for limit, side in ((-0.3, SIDES[0]), (0.3, SIDES[1]))
        ]
        np.testing.assert_array_equal(found.single, np.maximum(*ends))
        np.testing.assert_array_equal(found.adjusted, found.single)
        if not clustered:
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


def test_documents_that_cancel_but_for_float32_are_untestable() -> None:
    """Shares of thirds and sevenths: two documents of the same mean, in either type of array."""
    hits = np.array([1 / 3, 2 / 3, 1 / 7, 6 / 7, 1 / 2, 1 / 2], dtype=np.float32)
    clusters = np.repeat([0, 1, 2], 2)
    for values in (hits, hits.astype(np.float64)):
        tested = Hypotheses.from_values(values[:, None], 0.4, size=1.0, clusters=clusters)
        assert tested.moments.status.tolist() == ["untestable"]
        assert find_notes(tested).tolist() == ["untestable: the clusters cancel"]
    # an effect that is small, but larger than rounding, is found
    rng = np.random.default_rng(0)
    within = np.tile([0.3, -0.3], 20)[:, None] + np.repeat(rng.normal(1e-3, 1e-4, 20), 2)[:, None]
    tested = Hypotheses.from_values(within, 0.0, size=2.0, clusters=np.repeat(np.arange(20), 2))
    assert find_p_values(tested, TestOptions(), "greater").shows(0.05).tolist() == [True]


def test_heads_that_never_look_somewhere_are_answered_as_those_that_hardly_do() -> None:
    """Bias scores have no upper bound; scores of 0 in 32 documents are below 3 all the same."""
    rng = np.random.default_rng(0)
    values = np.stack([np.zeros(32), rng.gamma(1, 0.01, 32), np.full(32, 9.0)], axis=1)
    low, high = np.zeros((32, 1)), np.full((32, 1), 60.0)
    one = np.array([1.0])
    bounds = Bounds(low, high, 0 * one, np.inf * one, np.zeros(3, np.intp), cap=20)
    for n, expected in ((32, ["no", "no", "yes"]), (2, ["undecided", "no", "undecided"])):
        part = replace(bounds, low=low[:n], high=high[:n])
        tested = Hypotheses.from_values(values[:n], 3.0, size=[1, 1, 9], bounds=part)
        sides = (find_p_values(tested, TestOptions(), side) for side in SIDES)
        assert answered(*sides, 0.05).tolist() == expected


def test_heads_that_vary_by_little_more_than_rounding_are_answered_too() -> None:
    """Documents of ten examples each deviate by less than one example, and do not cancel."""
    rng, clusters = np.random.default_rng(0), np.repeat(np.arange(32), 10)
    rounding = rounding_bound(1.0, MODEL_TERMS)
    values = np.abs(rng.normal(0, np.array([2, 20]) * rounding, (320, 2)))
    low, high = np.zeros((320, 1)), np.full((320, 1), 60.0)
    bounds = Bounds(low, high, low[0], low[0] + np.inf, np.zeros(2, np.intp), cap=20)
    tested = Hypotheses.from_values(values, 3.0, size=1.0, clusters=clusters, bounds=bounds)
    assert tested.moments.status.tolist() == ["degenerate", ""]
    assert (tested.moments.mean > 0).all()
    sides = (find_p_values(tested, TestOptions(), side) for side in SIDES)
    assert answered(*sides, 0.05).tolist() == ["no", "no"]


def test_differences_of_large_scores_are_rounding_where_small_ones_are_not() -> None:
    """Noise of 2e-4 in scores near 100, as another batch size makes it, is no change."""
    rng = np.random.default_rng(0)
    differences = rng.normal(1e-4, 1e-4, (200, 2))
    hypotheses = Hypotheses.from_values(differences, 0, size=np.array([100.0, 1.0]))
    change = find_p_values(hypotheses, TestOptions(), "two-sided")
    assert change.shows(0.05).tolist() == [False, True]
    assert np.isnan(change.single).tolist() == [True, False]


def test_clusters_of_unequal_sizes_count_as_fewer() -> None:
    """One document of 60 examples beside 24 of one each."""
    values = np.random.default_rng(0).normal(3, 1, (84, 1, 2, 1))
    documents = [f"d{max(0, k - 59)}" for k in range(84)]
    asked = question(values, documents)
    assert asked.hypotheses.moments.n_clusters.tolist() == [25, 25]
    (warning,) = warnings_of(values, documents)
    assert "few documents (effective number 3, below 20): tests are unreliable. Add" in warning
    assert warnings_of(values[:50], [f"d{k // 2}" for k in range(50)]) == []


def test_betting_is_the_procedure_of_e_values_and_tests_a_column_without_variance() -> None:
    """Adjusted by Benjamini and Hochberg, for 120 examples of 40 documents."""
    documents = [f"d{k // 3}" for k in range(120)]
    means = np.array([0.1, 0.2, 0.5, 0.8])
    values = np.random.default_rng(0).beta(9 * means, 9 * (1 - means), (120, 1, 4))[..., None]
    values[:, 0, 0] = 0.1
    asked = question(values, documents, 0.5, bound=1, test="betting")
    found = outcome_of(asked)
    largest = np.sort(np.exp(found.statistic))[::-1]
    enough = largest >= 4 / (0.05 * np.arange(1, 5))
    assert (found.answer == "yes").sum() == np.max(np.arange(1, 5) * enough) == 1
    assert asked.hypotheses.moments.status[0] == "degenerate"
    assert found.answer.tolist() == ["no", "no", "undecided", "yes"]
    few = question(np.full((4, 1, 1, 1), 0.1), None, 0.5, bound=1, test="betting")
    assert outcome_of(few).answer.tolist() == ["undecided"]
    assert outcome_of(question(few.values[:, :, None, None], None, 0.5)).answer == "undecided"
    # There is neither a note nor a warning.
    assert find_warnings(asked.hypotheses, asked.options) == []
    assert find_notes(asked.hypotheses, test="betting").tolist() == [""] * 4


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"correction": "holm"}, "Run headroles assign --test betting, which keeps it."),
        ({"correction": "holm", "bound": None}, "Pass `correction='fdr_bh'`"),
        ({"test": "betting", "correction": "holm"}, None),
        ({"correction": "fdr_bh"}, None),
    ],
    ids=str,
)
def test_claims_about_families_of_skewed_scores_are_warned_of(
    options: dict[str, Any], advice: str | None
) -> None:
    rng = np.random.default_rng(0)
    asked = {"bound": 100, **options}
    warnings = warnings_of(rng.gamma(0.2, 1, (100, 1, 2, 1)), **asked)
    warned = [one for one in warnings if "no error in a whole family" in one]
    assert len(warned) == (advice is not None)
    assert all(one.startswith("holm promises") and str(advice) in one for one in warned)
    assert warnings_of(rng.normal(3, 1, (100, 1, 2, 1)), **asked) == []


def test_both_directions_together_keep_the_false_discovery_rate() -> None:
    """No mean is at the threshold; half of them are so near that only chance gives an answer."""
    rng = np.random.default_rng(1)
    means = 3 + np.repeat([-1.0, -1e-6, 1e-6, 1.0], [50, 50, 50, 50])
    shares = []
    for _ in range(150):
        asked = question(rng.normal(means, 1, (25, 200)).reshape(25, 1, 200, 1))
        said = outcome_of(asked).answer
        wrong = np.where(means > 3, said == "no", said == "yes")
        shares.append(wrong.sum() / max(1, np.isin(said, ["yes", "no"]).sum()))
    assert np.mean(shares) <= 0.05


@pytest.mark.parametrize("n", [2, 3, 5, 8, 40])
def test_hits_that_do_not_vary_are_seldom_answered_wrongly(n: int) -> None:
    """Heads hit with probabilities near the threshold; few samples of few units are all alike."""
    rng = np.random.Generator(np.random.PCG64DXSM(n))
    true = rng.choice([0.1, 0.25, 0.35, 0.5, 0.97], 200)
    wrong, decided = 0, 0
    for _ in range(20):
        hits = (rng.random((n, 200)) < true).astype(np.float32)
        asked = question(hits[:, None, :, None], threshold=0.3, bound=1)
        alike, said = asked.hypotheses.is_alike, outcome_of(asked).answer
        decided += int((alike & np.isin(said, ["yes", "no"])).sum())
        wrong += int((alike & (said == np.where(true > 0.3, "no", "yes"))).sum())
    assert wrong <= 1
    assert (decided > 0) == (n > 8)


def p_values(adjusted: list[float], by_bound: float = np.nan) -> PValues:
    p = np.array(adjusted)
    return PValues(p, p, p, np.zeros(len(p)), np.full(len(p), by_bound))


def test_words_follow_the_direction_and_there_is_one() -> None:
    found = answers([True, True, True, True, False], [2, -1, 0, np.nan, 1], ("more", "less"))
    assert found.tolist() == ["more", "less", "undecided", "undecided", "undecided"]
    assert answers([], []).shape == (0,)


def test_in_at_least_is_the_partial_conjunction_of_bonferroni() -> None:
    found = p_values([0.01, 0.3, 0.02, np.nan])
    assert in_at_least(found, 1).single[0] == pytest.approx(0.04)
    assert in_at_least(found, 2).single[0] == pytest.approx(0.06)
    assert in_at_least(found, 4).single[0] == 1  # what was not tested is no evidence
    assert np.isnan(in_at_least(p_values([np.nan]), 1).single[0])
    alike = Hypotheses.from_values(np.ones((30, 1)), 0.5, size=1)
    tested = find_p_values(alike, CorrectionOptions(), "greater")
    assert np.isnan(tested.single[0])
    assert in_at_least(tested, 1).single[0] == pytest.approx((1 / 1.5) ** 30)


def test_tests_of_different_kinds_are_corrected_together() -> None:
    single = [0.01, 0.04, 0.03, 0.2]
    parts = [p_values([single[0], single[1]]), p_values([single[2]]), p_values([np.nan, single[3]])]
    found = corrected_together(parts, CorrectionOptions())
    oracle = multipletests([0.01, 0.04, 0.03, 0.2], method="fdr_bh")[1]
    assert found.adjusted[[0, 1, 2, 4]] == pytest.approx(oracle)
    assert np.isnan(found.adjusted[3])
