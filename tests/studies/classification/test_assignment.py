"""Role tables of more scores than memory holds: those of scores in memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from headroles import HeadScores, RoleTable, assign_roles, memory, score_heads
from headroles.errors import StorageError
from tests.commands import run_well

INDEPENDENT = {"clusters": "none"}


@pytest.fixture(scope="module", params=["bias", "hit"])
def scores(request: pytest.FixtureRequest, bert_folder: Path, sample: Path) -> HeadScores:
    """Scores with bounds, gaps, contrasts and, of first choices, fixed offsets."""
    return score_heads(str(bert_folder), sample, score=request.param, relations="nsubj,obj")  # type: ignore[arg-type]


@pytest.fixture
def folder(scores: HeadScores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of scores that memory does not hold, and whose columns are tested part by part."""
    saved = scores.save(tmp_path / "scores")
    monkeypatch.setattr(memory, "MOST_HELD", 100)
    monkeypatch.setattr(memory, "MOST_AT_ONCE", 3 * scores.n_examples)
    return saved


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"test": "betting"},
        {**INDEPENDENT, "threshold": 0.4},
    ],
)
def test_tables_are_those_of_scores_in_memory(
    scores: HeadScores, folder: Path, options: dict[str, Any]
) -> None:
    found = assign_roles(HeadScores.load(folder), **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "MOST_HELD", 2**28)
        patch.setattr(memory, "MOST_AT_ONCE", 2**26)
        expected = assign_roles(scores, **options)
    pd.testing.assert_frame_equal(found.frame, expected.frame, rtol=1e-6, atol=1e-7)
    assert (found.facts, found.warnings) == (expected.facts, expected.warnings)
    assert expected.frame["statistic"].nunique() > 50  # there is something to compare


def test_a_disk_without_room(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(StorageError, match=r"of 0.0 GiB, which cannot be written \(No space left"):
        HeadScores.load(folder)


def test_scores_that_memory_does_not_hold_lie_in_a_file(scores: HeadScores, folder: Path) -> None:
    loaded = HeadScores.load(folder)
    base = loaded.values.base
    assert base is not None
    assert isinstance(base.base, np.memmap)
    assert loaded == scores
    run_well("assign", folder)
    pd.testing.assert_frame_equal(
        RoleTable.load(folder).frame, assign_roles(loaded).frame, rtol=1e-6, atol=1e-7
    )
