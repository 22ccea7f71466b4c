"""``--until`` from the command line: scoring that stops when enough is decided."""

from __future__ import annotations

import json
from pathlib import Path

from headroles import HeadScores, RoleTable
from tests.commands import run, run_well

ASKED = ("--score", "excess", "--relations", "nsubj", "--no-beyond-offset")


def test_classify_tells_where_it_stopped(bert_folder: Path, sample: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    asked = (*ASKED, "--until", 0.5, "--threshold", 0.9, "--out", out, "--full")
    shown = run_well("classify", bert_folder, sample, *asked).stdout
    assert "tests by betting" in shown
    assert "of 140 sentences, with" in shown
    before = RoleTable.load(out).frame
    run_well("assign", out, "--threshold", 0.9)
    assert RoleTable.load(out).frame.equals(before)


def test_score_stops_at_the_usual_thresholds(
    bert_folder: Path, sample: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    summary = run_well(
        "score", bert_folder, sample, *ASKED, "--until", 0.05, "--out", out, "--json"
    ).stdout
    stopped = HeadScores.load(out).record.stopped
    assert json.loads(summary)["examples"] == HeadScores.load(out).n_examples
    assert (stopped.until, stopped.until_of, stopped.unit) == (0.05, "corpus", "example")
    run_well("assign", out)


def test_how_to_stop_needs_when(bert_folder: Path, sample: Path, tmp_path: Path) -> None:
    result = run("score", bert_folder, sample, "--until-of", "text", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "pass --until too" in result.stderr
