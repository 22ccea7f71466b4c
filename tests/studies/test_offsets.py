"""The rule that heads have to beat: which offset, what it hits, and a tie with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_rel

from headroles import HeadScores, assign_roles
from headroles.studies.heads import baseline_of, second_half
from tests.conftest import make_scores
from tests.studies.conftest import hits_of

ROLE = "syntactic:obj:to_governor"


def test_documents_belong_to_the_halves_by_turns() -> None:
    scores = make_scores(np.zeros((5, 1, 1, 1)), ["local"], list("bbaac"))
    assert second_half(scores).tolist() == [False, False, True, True, False]
    alone = make_scores(np.zeros((3, 1, 1, 1)), ["local"])
    assert second_half(alone).tolist() == [False, True, False]


def test_the_offset_of_a_half_is_the_best_of_the_other() -> None:
    first, second = np.array([1, 0, 1, 0.0]), np.array([0, 1, 0, 1.0])
    scores = hits_of(np.zeros((4, 1)), {-1: first, 2: second}, list("abcd"))
    rival = baseline_of(scores, ROLE)
    assert rival is not None
    assert rival.offsets == (2, -1)
    assert rival.hits.tolist() == [0, 0, 0, 0]


def test_is_the_paired_test_of_both_rules() -> None:
    """Of a layer that lacks examples, over its own examples."""
    rng = np.random.default_rng(0)
    hits, rule = rng.random((40, 2, 3, 1)), (rng.random(40) * 0.6).astype(np.float32)
    hits[::3, 1] = np.nan
    documents = [f"d{k}" for k in range(40)]
    scores = make_scores(hits, [ROLE], documents, score="hit")
    scores = replace(
        scores, offset_shares=hits_of(hits[:, 0, :, 0], {-1: rule}, documents).offset_shares
    )
    for margin in (0.1, 0.25):
        frame = assign_roles(scores, offset_margin=margin).frame
        for row in frame.itertuples():
            own = scores.values[:, row.layer, row.head, 0].astype(float)
            has = ~np.isnan(own)
            expected = ttest_rel(own[has], rule[has] + margin, alternative="greater")
            assert row.p_value == pytest.approx(expected.pvalue)
            assert row.mean == pytest.approx(own[has].mean())
            assert row.threshold == pytest.approx(rule[has].mean() + margin)


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
    table = assign_roles(scores)
    assert table.frame["answer"].tolist() == ["no"]
    assert table.facts["offsets"] == {ROLE: (1, 1)}
    assert "of arcs by 0.1 more than the best fixed offset has" in repr(table)
    table = assign_roles(scores, threshold=0.5)
    assert table.frame["answer"].tolist() == ["yes"]
    assert table.facts["offsets"] == {}
    scores.offset_shares[2] = np.nan  # type: ignore[index]
    loaded = HeadScores.load(scores.save(tmp_path / "out"))
    np.testing.assert_array_equal(loaded.offset_shares, scores.offset_shares)
