"""From scores to what is tested: columns, thresholds, clusters, the offset to be beaten."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_rel

from headroles import HeadScores, assign_roles, compare_roles, power_analysis
from headroles.errors import UsageError
from headroles.inference.doubled import find_clusters
from headroles.studies.evidence import RoleHypotheses
from headroles.studies.heads import (
    HeadColumns,
    ThresholdOptions,
    baseline_of,
    class_baseline_of,
    clusters_in,
    second_half,
)
from headroles.testing.hypotheses import Hypotheses
from headroles.testing.options import TestOptions
from tests.conftest import changed, make_scores, role_ids
from tests.studies.conftest import hits_of, with_class_hits

RNG = np.random.default_rng(0)


def hypotheses(scores: HeadScores, threshold: float | None = None, **options: Any) -> Hypotheses:
    against = ThresholdOptions(threshold=threshold)
    return RoleHypotheses.from_scores(scores, TestOptions(**options), against).means


def test_order_is_role_layer_head() -> None:
    values = RNG.normal(size=(4, 2, 3, 2)).astype(np.float32)
    scores = make_scores(values, ["local", "syntactic:any:to_governor"])
    np.testing.assert_array_equal(
        hypotheses(scores).sample.values, np.moveaxis(values, -1, 1).reshape(4, 12)
    )
    labels = HeadColumns.from_scores(scores).labels
    order = list(zip(*(labels[name] for name in ("role", "layer", "head")), strict=True))
    assert order == [*itertools.product(scores.role_ids, range(2), range(3))]


def test_roles_without_examples_contrasts_controls_and_measures_are_no_columns() -> None:
    values = RNG.normal(size=(4, 1, 2, 3))
    values[..., 1] = np.nan
    assert hypotheses(make_scores(values, ["a", "b", "c"])).names == ("a", "c")
    roles = role_ids(["obj"])
    trees = tuple(f"{name}:other_trees" for name in roles if name.endswith("governor"))
    none = ("offset", "near", "back", "between", "trees", "evenness", "every_arc")
    for ids in ((*roles, *trees), role_ids([], score="excess")):
        names = hypotheses(make_scores(RNG.normal(size=(4, 1, 2, len(ids))), ids)).names
        assert names == tuple(name for name in ids if not name.endswith(none))


@pytest.mark.parametrize(("score", "threshold"), [("bias", 3), ("excess", 0.1), ("hit", 0.5)])
def test_thresholds_are_those_of_the_score(score: str, threshold: float) -> None:
    scores = make_scores(RNG.normal(size=(4, 1, 2, 1)), ["local"], score=score)
    assert (hypotheses(scores).threshold == threshold).all()


@pytest.mark.parametrize(
    ("clusters", "documents", "expected"),
    [
        ("auto", "bbaa", [1, 1, 0, 0]),
        ("auto", "aaaa", None),
        ("document", "abca", [0, 1, 2, 0]),
        ("none", "bbaa", None),
    ],
)
def test_documents_are_clusters_if_there_are_several(
    clusters: str, documents: str, expected: list[int] | None
) -> None:
    scores = make_scores(RNG.normal(size=(4, 1, 2, 1)), ["local"], list(documents))
    found = clusters_in(scores.clusters, TestOptions(clusters=clusters))
    assert (None if found is None else found.tolist()) == expected
    n_clusters = hypotheses(scores, clusters=clusters).n_clusters
    assert n_clusters == (4 if expected is None else len(set(documents)))


def copied(scores: HeadScores, n: int) -> HeadScores:
    """The scores of a corpus that stands there ``n`` times, each time in documents of its own."""
    whole = scores.select(np.tile(np.arange(scores.n_examples), n))
    documents = [f"{name} {k}" for k in range(n) for name in scores.documents]
    ids = [f"{name} {k}" for k in range(n) for name in scores.ids]
    return replace(whole, ids=tuple(ids), documents=tuple(documents))


def test_copies_of_a_corpus_add_no_evidence() -> None:
    values = 4 + np.random.default_rng(0).normal(size=(40, 1, 3, 1))
    once = make_scores(values, ["local"], [f"d{k // 2}" for k in range(40)])
    once = replace(once, digests=tuple(map(str, range(40))), lengths=np.full(40, 20))
    four = copied(once, 4)
    one, joined = assign_roles(once), assign_roles(four)
    for name in ("mean", "n_clusters", "df", "p_value", "ci_low", "answer", "certified"):
        expected = one.frame[name]
        if expected.dtype == float:
            np.testing.assert_allclose(joined.frame[name], expected, rtol=1e-9)
        else:
            assert joined.frame[name].tolist() == expected.tolist()
    kept = assign_roles(four, duplicates="keep")
    assert (kept.frame["p_value"] < one.frame["p_value"]).all()
    assert (kept.facts["n_clusters"], joined.facts["n_clusters"]) == (80, 20)
    for table in (kept, joined):
        assert (table.facts["joined_documents"], table.facts["doubled_examples"]) == (80, 160)
    said = "160 of 160 examples stand in several documents, and 80 of 80 documents share"
    assert [said in text for text in joined.record.warnings].count(True) == 1
    assert not any("several documents" in text for text in kept.record.warnings)
    (text,) = [
        text
        for text in assign_roles(four, clusters="none").record.warnings
        if "several documents" in text
    ]
    assert "`clusters='none'` takes every copy as an independent example" in text
    assert power_analysis(four).record.warnings[-1].startswith(said)


def test_copies_are_of_one_half() -> None:
    scores = make_scores(RNG.normal(size=(6, 1, 2, 1)), ["local"], [*"aabbcc"])
    scores = replace(scores, digests=tuple("123456"), lengths=np.full(6, 20))
    assert second_half(copied(scores, 2)).tolist() == [False, False, True, True, False, False] * 2


def test_shares_of_first_choices_lie_between_0_and_1() -> None:
    """Compared with offsets, too, whose means add up to them but for rounding."""
    rng = np.random.default_rng(0)
    documents = [f"d{k // 3}" for k in range(30)]
    hits = np.stack([np.zeros(30), np.ones(30), rng.integers(0, 2, 30)], axis=1)
    shares = {1: rng.random(30), -1: rng.random(30)}
    frame = assign_roles(hits_of(hits, shares, documents)).frame
    assert frame["mean"].tolist() == [0, 1, hits[:, 2].mean()]


def test_one_document_is_no_sample_of_documents() -> None:
    with pytest.raises(UsageError, match=r"all examples are of one document.*clusters='none'"):
        clusters_in(find_clusters(["a"] * 4, (), np.ones(4)), TestOptions(clusters="document"))


def test_every_table_of_tests_notes_removed_heads() -> None:
    """Of a comparison whichever side lacks them, each checkpoint by itself."""
    values = np.random.default_rng(0).normal(3, 1, (30, 2, 2, 1)).astype(np.float32)
    whole = replace(made := make_scores(values, ["local"]), digests=made.ids)
    values = values.copy()
    values[:, 1, 0] = np.nan
    pruned = changed(replace(whole, values=values), model={"removed_heads": [[1, 0]]})
    removed = "untestable: the head was removed from the model"
    shifts = compare_roles(whole, pruned, whole, names=["pruned", "same"]).frame
    by_name = shifts.set_index("checkpoint")
    tables = [assign_roles(pruned), power_analysis(pruned), compare_roles(pruned, whole)]
    for frame in (*(table.frame for table in tables), by_name.loc["pruned"]):
        gone = frame["note"] == removed
        assert frame[gone][["layer", "head"]].to_numpy().tolist() == [[1, 0]]
    assert removed not in set(by_name.loc["same", "note"])
    assert shifts["checkpoint"].tolist() == ["pruned"] * 4 + ["same"] * 4


OBJECT = "syntactic:obj:to_governor"


def test_documents_belong_to_the_halves_by_turns() -> None:
    scores = make_scores(np.zeros((5, 1, 1, 1)), ["local"], list("bbaac"))
    assert second_half(scores).tolist() == [False, False, True, True, False]
    alone = make_scores(np.zeros((3, 1, 1, 1)), ["local"])
    assert second_half(alone).tolist() == [False, True, False]


def test_the_offset_of_a_half_is_the_best_of_the_other() -> None:
    first, second = np.array([1, 0, 1, 0.0]), np.array([0, 1, 0, 1.0])
    scores = hits_of(np.zeros((4, 1)), {-1: first, 2: second}, list("abcd"))
    rival: Any = baseline_of(scores, OBJECT)
    assert (rival.offsets, rival.hits.tolist()) == ((2, -1), [0, 0, 0, 0])


def test_the_class_rule_of_a_half_is_the_best_of_the_other() -> None:
    """Verbs to the left are right in documents a and c, nouns on either side in b and d."""
    first, second = np.array([2, 0, 2, 0]), np.array([0, 2, 0, 2])
    scores = hits_of(np.zeros((4, 1)), {-1: np.zeros(4)}, list("abcd"))
    scores = with_class_hits(scores, {0: first, 5: second}, 2)
    rival: Any = class_baseline_of(scores, OBJECT)
    expected = ("nearest noun on either side", "nearest verb to the left")
    assert (tuple(map(str, rival.rules)), rival.hits.tolist()) == (expected, [0, 0, 0, 0])
    same = with_class_hits(scores, {1: np.array([2, 1, 0, 2])}, 2)
    best: Any = class_baseline_of(same, OBJECT)
    assert [str(rule) for rule in best.rules] == ["nearest verb to the right"] * 2
    assert best.hits.tolist() == [1, 0.5, 0, 1]


def test_first_choices_are_tested_beside_the_class_rule() -> None:
    """By paired tests; the first head beats both rules, the second the offset alone."""
    rng = np.random.default_rng(0)
    rule, offset = rng.integers(2, 6, 40), (rng.random(40) * 0.2).astype(np.float32)
    noise = rng.normal(0, 0.02, (40, 3))
    hits = np.stack([rule / 10 + 0.4, rule / 10 + 0.05, 0 * rule], axis=1) + noise
    scores = hits_of(hits, {-1: offset}, [f"d{k}" for k in range(40)])
    scores = with_class_hits(scores, {2: rule}, 10)
    table = assign_roles(scores)
    frame = table.frame
    assert frame["evidence"].tolist() == ["class", "distance", ""]
    assert frame["class_answer"].tolist() == ["yes", "no", "no"]
    assert frame["attractors_answer"].tolist() == [""] * 3
    assert frame["past_attractors"].isna().all()
    for row in frame.itertuples():
        own = scores.values[:, 0, row.head, 0].astype(float)
        test = ttest_rel(own, rule / 10 + 0.1, alternative="greater")
        low, high = ttest_rel(own, rule / 10).confidence_interval()
        found = (row.p_class, row.beyond_class, row.class_low, row.class_high, row.n_class)
        expected = (test.pvalue, (own - rule / 10).mean(), low, high, 40)
        assert found == pytest.approx(expected)
    assert table.facts["class_rules"] == {OBJECT: ("nearest verb on either side",) * 2}
    assert table.heads_with(OBJECT, beyond="class") == [(0, 0)]
    assert "beyond the nearest word of a class" in table.in_full()
    planned = power_analysis(scores).frame["examples_class"]
    assert planned[0] == 10  # it takes ten documents
    assert planned[1:].isna().all()
    wider = assign_roles(scores, offset_margin=0.45).frame
    assert wider["class_answer"].tolist() == ["no"] * 3
    without = assign_roles(scores, threshold=0.5).frame
    assert set(without["class_answer"]) | set(without["evidence"]) == {""}


def test_scores_that_lack_class_rules_are_untestable_beyond_distance() -> None:
    rng = np.random.default_rng(0)
    scores = hits_of(
        0.5 + rng.random((40, 2)) / 3, {-1: rng.random(40) / 5}, [*map(str, range(40))]
    )
    table = assign_roles(scores)
    assert table.frame["class_answer"].tolist() == ["untestable"] * 2
    assert table.frame["evidence"].tolist() == ["distance"] * 2
    (said,) = [text for text in table.record.warnings if "nearest word of a class" in text]
    assert said.endswith("so evidence beyond such a rule is untestable. Score again")


def test_is_the_paired_test_of_both_rules() -> None:
    """Of a layer that lacks examples, over its own examples."""
    rng = np.random.default_rng(0)
    hits, rule = rng.random((40, 2, 3, 1)), (rng.random(40) * 0.6).astype(np.float32)
    hits[::3, 1] = np.nan
    scores = hits_of(hits[:, 0, :, 0], {-1: rule}, [f"d{k}" for k in range(40)])
    scores = replace(scores, values=hits.astype(np.float32))
    for margin in (0.1, 0.25):
        frame = assign_roles(scores, offset_margin=margin).frame
        for row in frame.itertuples():
            own = scores.values[:, row.layer, row.head, 0].astype(float)
            has = ~np.isnan(own)
            test = ttest_rel(own[has], rule[has] + margin, alternative="greater")
            expected = (test.pvalue, own[has].mean(), rule[has].mean() + margin)
            assert (row.p_value, row.mean, row.threshold) == pytest.approx(expected)


def test_a_head_that_is_the_rule_does_not_beat_it() -> None:
    rule = np.random.default_rng(1).random(40).astype(np.float32)
    hits = np.column_stack([rule, np.minimum(1, rule + 0.5)])
    for margin in (0.0, 0.1):
        scores = hits_of(hits, {1: rule}, [f"d{k}" for k in range(40)])
        answers = assign_roles(scores, offset_margin=margin).frame["answer"].tolist()
        assert answers == ["no" if margin else "undecided", "yes"]


def test_a_threshold_that_is_asked_for_replaces_the_rule(tmp_path: Path) -> None:
    hits = np.random.default_rng(2).normal(0.7, 0.1, (40, 1))
    scores = hits_of(hits, {1: np.full(40, 0.9)}, [f"d{k}" for k in range(40)])
    for threshold, answer, offsets in ((None, "no", {OBJECT: (1, 1)}), (0.5, "yes", {})):
        table = assign_roles(scores, threshold=threshold)
        assert (table.frame["answer"].tolist(), table.facts["offsets"]) == ([answer], offsets)
        rule = "beats the best fixed offset by 10 points"
        assert (rule in repr(table)) == (threshold is None)
    scores.offset_shares[2] = np.nan  # type: ignore[index]
    loaded = HeadScores.load(scores.save(tmp_path / "out"))
    np.testing.assert_array_equal(loaded.offset_shares, scores.offset_shares)
