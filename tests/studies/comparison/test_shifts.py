"""The tests of differences: against scipy and statsmodels, with gaps and without variance."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import ttost_paired

from headroles import HeadScores, assign_roles, compare_roles
from headroles.inference import Bounds
from tests.conftest import changed
from tests.inference.conftest import betting_test
from tests.studies.comparison.made import ROLES, make_scores, random_scores, shifted

ANY = "syntactic:any:to_governor"


@pytest.fixture
def before() -> HeadScores:
    return random_scores()


@pytest.fixture
def after(before: HeadScores) -> HeadScores:
    """Every head moved, each by more than the one before it."""
    by = np.linspace(-0.3, 0.6, 2 * 3 * 3).reshape(2, 3, 3)
    return shifted(before, by, noise=0.5)


def compare(*sides: HeadScores, **options: Any) -> pd.DataFrame:
    return compare_roles(*sides, **options).frame


def row(frame: pd.DataFrame, layer: int, head: int, role: str) -> Any:
    (found,) = frame.query("layer == @layer & head == @head & role == @role").itertuples()
    return found


def pair(sides: list[HeadScores], layer: int, head: int, role: str) -> list[np.ndarray]:
    """The scores of one head and role in the examples that have them."""
    values = [side.values[:, layer, head, ROLES.index(role)].astype(float) for side in sides]
    return [own[~np.isnan(own)] for own in values]


@pytest.mark.parametrize("role", ROLES)
def test_a_row_is_the_paired_test_of_its_head(
    before: HeadScores, after: HeadScores, role: str
) -> None:
    first, second = pair([before, after], 1, 2, role)
    n, moved, paired = len(first), second - first, stats.ttest_rel(second, first)
    interval, sd = paired.confidence_interval(0.95), moved.std(ddof=1)
    ends = [
        stats.ttest_1samp(moved, limit, alternative=side).pvalue
        for limit, side in ((0.4, "greater"), (-0.4, "less"))
    ]
    expected = {"n": n, "n_clusters": n, "mean_before": first.mean(), "mean_after": second.mean()}
    expected |= {"difference": moved.mean(), "sd": sd, "standard_error": sd / np.sqrt(n)}
    expected |= {"effect_size": moved.mean() / sd, "ci_low": interval.low, "ci_high": interval.high}
    expected |= {"statistic": paired.statistic, "p_value": paired.pvalue}
    expected |= {"p_equivalent": ttost_paired(second, first, -0.4, 0.4)[0]}
    expected |= {"p_changed": min(1, 2 * min(ends))}
    found = row(compare(before, after, margin=0.4), 1, 2, role)
    assert {name: getattr(found, name) for name in expected} == pytest.approx(expected)


def test_documents_are_clusters() -> None:
    """The robust error of OLS on a constant, with statsmodels' small-sample factor undone."""
    clustered = random_scores(documents=8)
    later = shifted(clustered, 0.2, noise=0.5)
    first, second = pair([clustered, later], 0, 1, "local")
    codes = np.array([int(name[1:]) for name in clustered.documents])
    fitted = sm.OLS(second - first, np.ones(40)).fit(
        cov_type="cluster", cov_kwds={"groups": codes}, use_t=True
    )
    found = row(compare(clustered, later), 0, 1, "local")
    assert (found.n, found.n_clusters) == (40, 8)
    # statsmodels multiplies by G / (G - 1) * (n - 1) / (n - k), which is G / (G - 1) here
    assert found.standard_error == pytest.approx(fitted.bse[0])
    assert found.p_value == pytest.approx(fitted.pvalues[0])
    alone = row(compare(clustered, later, clusters="none"), 0, 1, "local")
    assert alone.p_value == pytest.approx(stats.ttest_rel(second, first).pvalue)


@pytest.mark.parametrize("correction", ["fdr_bh", "bonferroni", "hochberg", "none"])
def test_each_question_is_corrected_by_itself_over_all_checkpoints(
    before: HeadScores, after: HeadScores, correction: str
) -> None:
    last = shifted(before, 0.3, noise=0.5, seed=9)
    name = {"hochberg": "simes-hochberg"}.get(correction, correction)
    for sides in ((before, after), (before, after, last)):
        frame = compare(*sides, correction=correction)
        for p in ("p_changed", "p_equivalent"):
            adjusted = frame[p] if name == "none" else multipletests(frame[p], method=name)[1]
            np.testing.assert_allclose(frame[f"{p}_adjusted"], adjusted)
        np.testing.assert_array_equal(frame.changed, frame.p_changed_adjusted <= 0.05)
        np.testing.assert_array_equal(frame.equivalent, frame.p_equivalent_adjusted <= 0.05)


def test_every_checkpoint_is_compared_with_the_first(before: HeadScores, after: HeadScores) -> None:
    last = shifted(before, 1.0, noise=0.5, seed=9)
    both = compare_roles(before, after, last, correction="none")
    assert both.checkpoints == ("1", "2")
    for name, scores in (("1", after), ("2", last)):
        alone = compare(before, scores, names=[name], correction="none")
        rows = both.frame[both.frame.checkpoint == name].reset_index(drop=True)
        pd.testing.assert_frame_equal(rows, alone)


# Without variance.


@pytest.mark.parametrize("n", [40, 1000])
@pytest.mark.parametrize("noise", [0, 1e-7])
def test_what_is_the_same_is_equivalent(n: int, noise: float) -> None:
    """In any number of examples; of one model also as another machine computes it."""
    before = random_scores(n=n)
    if noise:
        before = changed(before, model={"weights_sha256": "a" * 64})
    shifts = compare_roles(before, shifted(before, 0.0, noise=noise))
    frame, layers = shifts.frame, shifts.layers()
    assert frame[["statistic", "p_value", "p_changed", "p_equivalent"]].isna().all(axis=None)
    note = "the same scores before and after"
    (row,) = (
        frame[["difference", "changed", "equivalent", "change", "note"]].drop_duplicates().values
    )
    assert row.tolist() == [0, False, True, "equivalent", note]
    names = ["effect_size", "rms_difference", "changed", "equivalent"]
    assert (layers[names] == [0, 0, 0, 1]).all(axis=None)
    assert (shifts.moved().effect_size == 0).all()
    said = f"({len(frame)} of them have the same scores before and after), 0 undecided."
    assert said in " ".join(str(shifts).split())


def test_first_choices_and_scores_of_0_agree_by_chance_too() -> None:
    """Unless both are of one model."""
    hits = np.tile([[0.0, 1.0], [1.0, 0.0]], (3, 1))
    scores = make_scores(hits[:, None, :, None], ("local",), score="hit")
    assert set(compare(scores, scores).change) == {"undecided"}
    of_one = changed(scores, model={"weights_sha256": "a" * 64})
    assert set(compare(of_one, of_one).change) == {"equivalent"}
    nothing = random_scores(n=4)
    nothing.values[:] = 0
    assert set(compare(nothing, nothing).change) == {"undecided"}


def test_a_constant_difference_is_decided_by_its_size() -> None:
    before = random_scores(n=1000)
    before.values[:, 0, :, 0] = np.round(before.values[:, 0, :, 0] * 64) / 64
    by = np.zeros((2, 3, 3), dtype=np.float32)
    by[0, :, 0] = 0.25, -0.25, 2.0  # exact in binary
    frame = compare(before, shifted(before, by))
    found = frame[(frame.layer == 0) & (frame.role == "local")]
    expected = [[False, True, "equivalent"]] * 2 + [[True, False, "changed"]]
    assert found[["changed", "equivalent", "change"]].values.tolist() == expected
    assert found.p_value.isna().all()


@pytest.mark.parametrize(
    ("size", "lean", "change"),
    [
        (0.0, None, "equivalent"),  # half of the scores, as those of contrasts, by the least step
        (0.0, 3e-6, "equivalent"),
        (50.0, 3e-6, "undecided"),  # 400 examples do not bound such a mean within half a unit
    ],
)
def test_rounding_is_no_change(size: float, lean: float | None, change: str) -> None:
    """Another batch size rounds scores of a head a little up: not evidence of anything."""
    rng = np.random.default_rng(4)
    values = (size + rng.normal(0, 1, (400, 1, 2, 3))).astype(np.float32)
    if lean is None:
        nudged = np.where(rng.random(values.shape) < 0.5, values, np.nextafter(values, np.inf))
    else:
        nudged = values + max(1, size) * rng.normal(lean, 2e-6, values.shape)
    frame = compare(make_scores(values), make_scores(nudged))
    assert (frame.difference > 0).all()
    assert frame[["changed", "change"]].drop_duplicates().values.tolist() == [[False, change]]
    assert frame.note.str.startswith("degenerate").all()


def test_degenerate_tests_do_not_count(before: HeadScores, after: HeadScores) -> None:
    after.values[:, 1] = before.values[:, 1]
    frame = compare(before, after, correction="bonferroni")
    moved = frame[frame.layer == 0]
    np.testing.assert_allclose(moved.p_changed_adjusted, np.minimum(1, 9 * moved.p_changed))


# Too few examples.


def test_nothing_is_said_of_one_example_or_one_cluster(before: HeadScores) -> None:
    """``block`` is in one example only; all arcs are in the first document."""
    before.values[1:, ..., 1] = np.nan
    before.values[0, ..., 1] = 2.0
    before.counts[:, 1] = np.arange(40) == 0
    clustered = random_scores(documents=2)
    clustered.values[1::2, ..., 2] = np.nan
    clustered.counts[1::2, 2] = 0
    for scores, role, unit in ((before, "block", "examples"), (clustered, ANY, "clusters")):
        frame = compare(scores, shifted(scores, 1.0, noise=0.1))
        rows = frame[frame.role == role]
        assert set(rows.note) == {f"untestable: fewer than two {unit}"}
        assert set(rows.change) == set(rows.status) == {"untestable"}
        assert not rows[["changed", "equivalent"]].any(axis=None)
        assert rows[["p_value", "p_changed"]].isna().all(axis=None)
        np.testing.assert_allclose(rows.difference, rows.mean_after - rows.mean_before)
        if unit == "examples":
            assert set(rows.n) == {1}
            assert rows[["sd", "effect_size"]].isna().all(axis=None)
    alone = compare_roles(random_scores(n=1), random_scores(n=1))
    assert alone.moved().empty
    assert "untestable" in alone.in_full()


def test_evenness_is_left_out() -> None:
    values = np.random.default_rng(0).normal(0.3, 0.1, (20, 2, 2, 2))
    scores = make_scores(values, ("block", "block:evenness"), score="excess")
    assert compare_roles(scores, shifted(scores, 0.1, 0.05)).roles == ("block",)


def test_a_role_that_no_example_has_any_more(before: HeadScores) -> None:
    """It is untestable after, and nothing is claimed; one that no example had is left out."""
    values, counts = before.values.copy(), before.counts.copy()
    values[..., -1], counts[:, -1] = np.nan, 0
    after = replace(before, values=values, counts=counts)
    frame = compare(before, after)
    gone = frame[frame["role"] == ANY]
    assert set(gone["answer_after"]) == set(gone["status"]) == {"untestable"}
    assert not gone["changed"].any()
    assert compare_roles(after, before).roles == ("local", "block")


# Answers.


def test_answers_are_those_of_the_role_tables(before: HeadScores, after: HeadScores) -> None:
    options: dict[str, Any] = {"threshold": 3.1, "alpha": 0.1, "correction": "bonferroni"}
    frame = compare(before, after, **options)
    for side, scores in (("answer_before", before), ("answer_after", after)):
        assert frame[side].tolist() == assign_roles(scores, **options).frame["answer"].tolist()
    assert set(frame.threshold) == {3.1}


def test_a_role_of_arcs_is_lost_with_its_contrast() -> None:
    values = np.random.default_rng(0).normal([5.0, 2.0], 0.5, (50, 1, 1, 2))
    roles = (ANY, f"{ANY}:beyond_offset")
    frame = compare(*(make_scores(own, roles) for own in (values, values - [0.0, 2.0])))
    assert frame.answer_before.tolist() + frame.answer_after.tolist() == ["yes", "positional"]
    assert frame.status.tolist() == ["lost"]


# The margin.


@pytest.mark.parametrize(("score", "expected", "uniform"), [("bias", 0.5, 1), ("excess", 0.025, 0)])
def test_the_usual_margin(score: str, expected: float, uniform: float) -> None:
    """A quarter of the way from uniform attention to the usual threshold."""
    scores = random_scores(score=score)
    frame = compare(scores, scores)
    assert set(frame.margin) == {expected}
    assert expected == pytest.approx((frame.threshold.iloc[0] - uniform) / 4)


def test_the_margin_decides_what_is_equivalent(before: HeadScores) -> None:
    after = shifted(before, 0.2, noise=0.1)
    assert compare(before, after, margin=0.5).change.eq("equivalent").all()
    assert compare(before, after, margin=0.1).change.eq("changed").all()
    noise = shifted(before, 0.0, noise=3.0).values - before.values
    unsure = shifted(before, noise - np.nanmean(noise, axis=0))
    assert set(compare(before, unsure, margin=0.5).change) == {"undecided"}


def test_equivalence_is_a_two_sided_interval_inside_the_margin(
    before: HeadScores, after: HeadScores
) -> None:
    """Schuirmann: at level alpha, an interval of level 1 - 2 alpha."""
    frame = compare(before, after, alpha=0.05, margin=0.4, correction="none")
    wide = compare(before, after, alpha=0.1, margin=0.4, correction="none")
    inside = (wide.ci_low > -0.4) & (wide.ci_high < 0.4)
    assert 0 < inside.sum() < len(frame)
    np.testing.assert_array_equal(frame.equivalent, inside)


# Bets.


def bounded(values: np.ndarray) -> HeadScores:
    """``excess`` scores (examples, layers, heads, roles) that lie between -1 and 1."""
    bounds = np.broadcast_to(np.array([-1, 1], dtype="f4"), (len(values), values.shape[-1], 2))
    return replace(make_scores(values, score="excess"), bounds=bounds)


def test_certified_changes_are_bets_on_differences_between_the_bounds_of_both() -> None:
    rng = np.random.default_rng(5)
    first = bounded(rng.uniform(-0.2, 0.2, (400, 1, 2, 3)))
    by = np.array([[[0.3, 0.0, 0.005], [-0.3, 0.0, 0.02]]])
    second, third = (
        replace(first, values=(first.values + sign * by).astype(np.float32)) for sign in (1, -1)
    )
    shifts = compare_roles(first, second, third, margin=0.2)
    frame = shifts.frame
    assert set(frame["certified"]) == {"changed", "equivalent"}
    of_each = frame[frame["certified"] == "changed"].groupby("checkpoint").size()
    assert shifts.counts().groupby("checkpoint")["certified_changes"].sum().equals(of_each)
    # Bounds of differences are 2 wide on either side, and their cap is ten margins of 0.025.
    reach = np.full((400, 1), 2.0)
    bounds = Bounds(-reach, reach, -reach[0], reach[0], np.array([0]), 0.25)
    for found in frame.itertuples():
        after = second if found.checkpoint == "1" else third
        moved = np.subtract(*pair([after, first], 0, found.head, found.role))[:, None]
        p = betting_test(moved, 0, bounds, alternative="two-sided").p_value[0]
        ends = [
            betting_test(moved, limit, bounds, alternative=side).p_value[0]
            for limit, side in ((-0.2, "greater"), (0.2, "less"))
        ]
        assert (found.certified == "changed") == (p <= 0.05)
        assert (found.certified == "equivalent") == (max(ends) <= 0.05)
        assert found.certified_difference == pytest.approx(moved.mean(), rel=1e-6, abs=1e-9)


def test_without_bounds_on_either_side_nothing_is_certified() -> None:
    first = bounded(np.random.default_rng(6).uniform(-0.2, 0.2, (30, 1, 2, 3)))
    shifts = compare_roles(first, replace(shifted(first, 0.1), bounds=None))
    assert (shifts.frame["certified"] == "").all()
    assert shifts.frame["certified_difference"].isna().all()
    assert "certified" not in repr(shifts).lower()


def test_where_nothing_changed_t_shows_no_change_beyond_the_margin() -> None:
    """Many rises of 0.01 and a rare fall that makes up for them, if it is drawn at all."""
    rng, n = np.random.Generator(np.random.SFC64(7)), 60
    first = bounded(np.zeros((n, 2, 10, 3)))
    fell = rng.random(first.values.shape) < 0.02
    noise = rng.normal(0, 0.002, fell.shape)
    changes = np.where(fell, -0.49, 0.01) + noise
    found = compare_roles(first, replace(first, values=changes.astype(np.float32))).frame
    assert (found["p_value"] <= 0.05).mean() > 0.2
    assert not found["changed"].any()
    assert not found["certified"].isin(["changed", "trivial"]).any()
