"""Classification: what is taken for scores, and more scores than memory holds."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

import headroles as hr
from headroles import Classification, HeadScores, RoleTable, arrays, assign_roles
from headroles.errors import StorageError, UsageError
from headroles.studies.controls import with_permuted_words
from tests.commands import run_well
from tests.conftest import make_scores


@pytest.fixture(scope="module", params=["bias", "hit"])
def scores(request: pytest.FixtureRequest, bert_folder: Path, sample: Path) -> HeadScores:
    """Scores with bounds, gaps, contrasts and, of first choices, fixed offsets."""
    return hr.score_heads(str(bert_folder), sample, score=request.param, relations="nsubj,obj")  # type: ignore[arg-type]


@pytest.fixture
def folder(scores: HeadScores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of scores that memory does not hold, and whose columns are tested part by part."""
    saved = scores.save(tmp_path / "scores")
    monkeypatch.setattr(arrays, "MOST_HELD", 100)
    monkeypatch.setattr(arrays, "MOST_AT_ONCE", 3 * scores.n_examples)
    return saved


@pytest.mark.parametrize(
    "options", [{}, {"test": "betting"}, {"clusters": "none", "threshold": 0.4}]
)
def test_tables_are_those_of_scores_in_memory(
    scores: HeadScores, folder: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = assign_roles(HeadScores.load(folder), **options)
    monkeypatch.undo()
    expected = assign_roles(scores, **options)
    pd.testing.assert_frame_equal(found.frame, expected.frame, rtol=1e-6, atol=1e-7)
    assert (found.facts, found.warnings) == (expected.facts, expected.warnings)
    assert expected.frame["statistic"].nunique() > 50  # there is something to compare


def test_a_disk_without_room(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = Mock(side_effect=OSError(28, "No space left on device"))
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(StorageError, match=r"of 0.0 GiB, which cannot be written \(No space left"):
        HeadScores.load(folder)


def test_scores_that_memory_does_not_hold_lie_in_a_file(scores: HeadScores, folder: Path) -> None:
    loaded = HeadScores.load(folder)
    assert isinstance(loaded.values.base.base, np.memmap)
    assert loaded == scores
    run_well("assign", folder)
    pd.testing.assert_frame_equal(
        RoleTable.load(folder).frame, assign_roles(loaded).frame, rtol=1e-6, atol=1e-7
    )


@pytest.fixture(scope="module")
def by_hand() -> HeadScores:
    values = np.random.default_rng(0).normal(3.2, 1, (30, 1, 2, 2))
    values[3, ..., 1] = np.nan
    return make_scores(values, ["local", "syntactic:any:to_governor"], [f"d{k}" for k in range(30)])


def test_comes_back_as_it_was_saved_and_stands_for_its_scores(
    by_hand: HeadScores, tmp_path: Path
) -> None:
    result = Classification(by_hand, assign_roles(by_hand))
    folder = result.save(tmp_path / "out")
    again = Classification.load(folder)
    assert (again.scores, again.roles) == (by_hand, result.roles)
    assert (repr(again), again.warnings) == (repr(result.roles), result.roles.warnings)
    assert again.scores != make_scores(by_hand.values + 1, by_hand.role_ids)
    for given in (result, folder, str(folder)):
        assert assign_roles(given).frame.equals(result.roles.frame)
    assert hr.power_analysis(result).frame.equals(hr.power_analysis(by_hand).frame)
    with pytest.raises(UsageError, match="the scores 'before' do not name their examples"):
        hr.compare_roles(result, folder)  # both were understood, and were made by hand


@pytest.mark.parametrize("given", [None, 3, {"scores": 1}])
def test_objects_without_scores_are_refused(given: object) -> None:
    with pytest.raises(UsageError, match="holds no scores; give what score_heads or classify"):
        assign_roles(given)


def test_unknown_roles_are_refused_with_the_nearest(by_hand: HeadScores) -> None:
    with pytest.raises(UsageError, match="no role 'sytactic'; did you mean 'syntactic'"):
        assign_roles(by_hand).heads_with("sytactic")
    with pytest.raises(UsageError, match="no role 'loca'; did you mean 'local'"):
        by_hand.column("loca")


def test_version() -> None:
    assert hr.__version__ == version("headroles")


def test_a_control_is_answered_as_roles_are(bert_folder: Path, sample: Path) -> None:
    """Heads of permuted words count where they would have a role, beside other trees too."""
    options: dict[str, Any] = {"roles": "syntactic", "relations": "det,case", "threshold": 0.9}
    options |= {"distance_margin": 0.0, "alpha": 0.4, "correction": "none"}
    corpus = hr.read_conllu(sample)
    table = hr.classify_heads(str(bert_folder), corpus, controls="trees,words", **options).roles
    expected = hr.classify_heads(
        str(bert_folder), with_permuted_words(corpus, 0), controls="trees", **options
    ).roles
    found = {
        role: {tuple(head) for head in heads}
        for role, heads in table.facts["controls"]["words"].items()
    }
    assert found == {
        role: {*heads} for role in expected.roles if (heads := expected.heads_with(role))
    }
    assert found
    assert [*table.facts["controls_beyond"]] == ["words"]  # other trees have no further steps
    beyond = table.facts["controls_beyond"]["words"]
    for step, heads in beyond.items():
        assert {*map(tuple, heads)} == {*expected.heads_with("syntactic", beyond=step)}
    assert [*beyond] == ["class", "attractors"]
    n = len(beyond["class"])
    assert f"count, {n} beyond nearer words of the class" in " ".join(str(table).split())
