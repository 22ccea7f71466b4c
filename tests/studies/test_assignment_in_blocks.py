"""Role tables from blocks of scores: those of all scores at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from headroles import assign_roles, score_heads
from headroles.cli import app
from headroles.errors import UsageError
from headroles.scoring import HeadScores, ScoreBlock, ScoresInBlocks, open_scores
from headroles.scoring import in_blocks as in_blocks_module
from headroles.studies import AssignOptions, RoleTable, assign, assign_in_blocks

SIZE = 7
"""Examples of a block, which are not those of a document."""


@pytest.fixture(scope="module", params=["bias", "excess", "hit"])
def scores(request: pytest.FixtureRequest, bert_folder: Path, sample: Path) -> HeadScores:
    return score_heads(str(bert_folder), sample, score=request.param)  # type: ignore[arg-type]


def blocks_of(scores: HeadScores) -> ScoresInBlocks:
    def blocks() -> Iterator[ScoreBlock]:
        for start in range(0, scores.n_examples, SIZE):
            yield scores.block.part(slice(start, start + SIZE))

    return ScoresInBlocks(
        scores.roles, scores.n_layers, scores.n_heads, scores.score, blocks, scores.provenance
    )


def both(scores: HeadScores, **options: Any) -> tuple[RoleTable, RoleTable]:
    if scores.score.of_first_choice:
        options = {"threshold": 0.4, **options}
    asked = AssignOptions(**options)
    return assign_in_blocks(blocks_of(scores), asked), assign(scores, asked)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"clusters": "none"},
        {"test": "betting", "family": "role"},
        {"interval": "fcr", "correction": "holm", "alpha": 0.2},
        {"preset": "published"},
    ],
)
def test_tables_are_those_of_all_scores_at_once(
    scores: HeadScores, options: dict[str, Any]
) -> None:
    if options.get("preset") and scores.score.name != "bias":
        pytest.skip("the published preset is of bias scores")
    found, expected = both(scores, **options)
    pd.testing.assert_frame_equal(found.frame, expected.frame, rtol=1e-6, atol=1e-9)
    assert found.provenance == expected.provenance
    assert expected.frame["statistic"].nunique() > 50  # there is something to compare


def test_scores_without_bounds_are_not_certified(scores: HeadScores) -> None:
    found, expected = both(replace(scores, bounds=None))
    pd.testing.assert_frame_equal(found.frame, expected.frame, rtol=1e-6, atol=1e-9)
    assert set(found.frame["certified"]) == {""}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"test": "wilcoxon", "clusters": "none"}, "test wilcoxon takes all scores at once"),
        ({"correction": "max_t", "test": "sign_flip"}, "pass --test t or betting"),
        ({"interval": "bca"}, "interval bca takes all scores at once, .* examples x .* GiB"),
    ],
)
def test_what_takes_all_scores_is_refused(
    scores: HeadScores, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        assign_in_blocks(blocks_of(scores), AssignOptions(threshold=0.4, **options))


def test_offsets_are_found_in_all_scores(scores: HeadScores) -> None:
    if not scores.score.of_first_choice:
        pytest.skip("offsets are those of first choices")
    with pytest.raises(UsageError, match="best fixed offset takes all scores"):
        assign_in_blocks(blocks_of(scores), AssignOptions())


def test_a_document_that_comes_back_is_refused(scores: HeadScores) -> None:
    mixed = replace(scores, documents=(*scores.documents[1:], scores.documents[0]))
    with pytest.raises(UsageError, match="goes on after others"):
        assign_in_blocks(blocks_of(mixed), AssignOptions(threshold=0.4))
    table = assign_in_blocks(blocks_of(mixed), AssignOptions(threshold=0.4, clusters="none"))
    assert np.isfinite(table.frame["mean"]).any()


def test_folders_of_many_scores_are_tested_in_blocks(
    scores: HeadScores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = scores.save(tmp_path / "scores")
    expected = assign_roles(scores, threshold=0.4)
    assert isinstance(open_scores(folder), HeadScores)
    monkeypatch.setattr(in_blocks_module, "MOST_AT_ONCE", 100)
    assert isinstance(open_scores(folder), ScoresInBlocks)
    found = assign_roles(str(folder), threshold=0.4)  # type: ignore[arg-type]
    pd.testing.assert_frame_equal(found.frame, expected.frame, rtol=1e-6, atol=1e-9)
    result = CliRunner().invoke(app, ["assign", str(folder), "--threshold", "0.4"])
    assert result.exit_code == 0, result.output
    stored = RoleTable.load(folder).frame
    pd.testing.assert_frame_equal(stored, expected.frame, rtol=1e-6, atol=1e-9)
