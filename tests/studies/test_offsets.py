"""The rule that heads have to beat: which offset, what it hits, and a tie with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ttest_rel

from headroles import HeadScores, assign_roles
from headroles.roles import OFFSETS
from headroles.studies.heads import baseline_of, second_half
from tests.conftest import make_scores

ROLE = "syntactic:obj:to_governor"


def scores_of(hits: np.ndarray, shares: dict[int, np.ndarray], documents: list[str]) -> HeadScores:
    """Hits (examples, heads) of one layer, and what some offsets hit."""
    scores = make_scores(hits[:, None, :, None], [ROLE], documents, score="hit")
    table = np.zeros((len(hits), 1, len(OFFSETS)), dtype=np.float32)
    for offset, own in shares.items():
        table[:, 0, OFFSETS.index(offset)] = own
    return replace(scores, offset_shares=table)


def test_documents_belong_to_the_halves_by_turns() -> None:
    scores = make_scores(np.zeros((5, 1, 1, 1)), ["local"], list("bbaac"))
    assert second_half(scores).tolist() == [False, False, True, True, False]
    alone = make_scores(np.zeros((3, 1, 1, 1)), ["local"])
    assert second_half(alone).tolist() == [False, True, False]


def test_the_offset_of_a_half_is_the_best_of_the_other() -> None:
    first, second = np.array([1, 0, 1, 0.0]), np.array([0, 1, 0, 1.0])
    scores = scores_of(np.zeros((4, 1)), {-1: first, 2: second}, list("abcd"))
    rival = baseline_of(scores, ROLE)
    assert rival is not None
    assert rival.offsets == (2, -1)
    assert rival.hits.tolist() == [0, 0, 0, 0]


def test_is_the_paired_test_of_both_rules() -> None:
    rng = np.random.default_rng(0)
    hits, rule = rng.random((40, 3)), rng.random(40) * 0.6
    documents = [f"d{k}" for k in range(40)]
    scores = scores_of(hits, {-1: rule}, documents)
    for margin in (0.1, 0.25):
        frame = assign_roles(scores, offset_margin=margin).frame
        stored, rival = scores.values[:, 0, :, 0].astype(float), rule.astype(np.float32) + margin
        for head in range(3):
            expected = ttest_rel(stored[:, head], rival, alternative="greater")
            assert frame["p_value"][head] == pytest.approx(expected.pvalue)
        assert frame["mean"].tolist() == pytest.approx(stored.mean(axis=0).tolist())
        assert frame["threshold"].tolist() == pytest.approx([rule.mean() + margin] * 3)


def test_a_layer_that_lacks_examples_is_compared_with_the_rule_over_its_own_examples() -> None:
    rng = np.random.default_rng(2)
    hits, rule = rng.random((40, 2, 1, 1)), (rng.random(40) * 0.6).astype(np.float32)
    hits[::3, 1] = np.nan
    one_layer = scores_of(hits[:, 0, :, 0], {-1: rule}, [f"d{k}" for k in range(40)])
    made = make_scores(hits, [ROLE], [f"d{k}" for k in range(40)], score="hit")
    scores = replace(made, offset_shares=one_layer.offset_shares)
    frame = assign_roles(scores).frame
    has = ~np.isnan(hits[:, 1, 0, 0])
    stored = scores.values[has, 1, 0, 0].astype(float)
    expected = ttest_rel(stored, rule[has] + 0.1, alternative="greater")
    assert frame["mean"][1] == pytest.approx(stored.mean())
    assert frame["threshold"][1] == pytest.approx(rule[has].mean() + 0.1)
    assert frame["p_value"][1] == pytest.approx(expected.pvalue)
    assert frame["threshold"][0] == pytest.approx(rule.mean() + 0.1)


def test_a_head_that_is_the_rule_does_not_beat_it() -> None:
    rule = np.random.default_rng(1).random(40).astype(np.float32)
    hits = np.column_stack([rule, np.minimum(1, rule + 0.5)])
    for margin in (0.0, 0.1):
        scores = scores_of(hits, {1: rule}, [f"d{k}" for k in range(40)])
        answers = assign_roles(scores, offset_margin=margin).frame["answer"].tolist()
        assert answers == ["no" if margin else "undecided", "yes"]


def test_a_threshold_that_is_asked_for_replaces_the_rule() -> None:
    rule = np.full(40, 0.9)
    hits = np.random.default_rng(2).normal(0.7, 0.1, (40, 1))
    scores = scores_of(hits, {1: rule}, [f"d{k}" for k in range(40)])
    assert assign_roles(scores).frame["answer"].tolist() == ["no"]
    table = assign_roles(scores, threshold=0.5)
    assert table.frame["answer"].tolist() == ["yes"]
    assert table.tests.offsets == {}


def test_the_table_names_the_offsets() -> None:
    scores = scores_of(np.full((6, 1), 0.5), {-2: np.full(6, 0.3)}, list("abcdef"))
    table = assign_roles(scores)
    assert table.tests.offsets == {ROLE: (-2, -2)}
    assert "of arcs by 0.1 more than the best fixed offset has" in repr(table)


def test_offsets_are_stored_with_the_scores(tmp_path) -> None:  # type: ignore[no-untyped-def]
    scores = scores_of(np.full((4, 2), 0.5), {-2: np.array([0, 0.5, 1, 0.25])}, list("abcd"))
    scores.offset_shares[2] = np.nan  # type: ignore[index]
    scores.save(tmp_path / "out")
    loaded = HeadScores.load(tmp_path / "out")
    np.testing.assert_array_equal(loaded.offset_shares, scores.offset_shares)
