"""``headroles replicate`` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headroles import Replication
from tests.commands import run, run_well


@pytest.fixture
def folders(bert_folder: Path, treebank: Path, sample: Path, tmp_path: Path) -> list[Path]:
    """Scores of one model over two treebanks."""
    folders = [tmp_path / "small", tmp_path / "sample"]
    for folder, corpus in zip(folders, (treebank, sample), strict=True):
        run_well("score", bert_folder, corpus, "--out", folder, "--relations", "nsubj")
    return folders


def test_one_model_over_two_corpora(folders: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    shown = run_well("replicate", *folders, "--threshold", 0.5, "--out", out).stdout
    assert "2 corpora: small, sample" in shown
    table = Replication.load(out)
    assert set(table.frame["at_least"]) == {1, 2}
    assert len(table) == 2 * 3 * 4 * len(set(table.frame["role"]))
    exported = run_well("export", out, "--view", "counts", "--format", "csv").stdout
    assert exported.startswith("role,1,2")
    summary = json.loads(
        run_well("replicate", *folders, "--out", out, "--overwrite", "--json").stdout
    )
    assert summary["facts"]["names"] == ["small", "sample"]
    called = "--names", "English,German"
    shown = run_well("replicate", *folders, "--out", out, "--overwrite", *called).stdout
    assert "2 corpora: English, German" in shown


def test_refuses_a_single_folder_and_leaves_nothing(folders: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run("replicate", folders[0], "--out", out)
    assert result.exit_code == 2
    assert "needs two score sets or more" in result.stderr
    assert not out.exists()
