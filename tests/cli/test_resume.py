"""``--resume``, ``--part`` and several processes from the command line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from headroles import RoleComparison
from headroles.errors import ModelError, StorageError
from headroles.interrupts import Terminated
from headroles.storage import HIDDEN, parts_in
from tests.commands import contents, names, run, run_well
from tests.scoring.test_parts import WINDOW, content, stopped_after


@pytest.fixture(autouse=True)
def _windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headroles.scoring.run.WINDOW_EXAMPLES", WINDOW)


def test_an_interrupted_run_resumes(bert_folder: Path, sample: Path, tmp_path: Path) -> None:
    run_well("classify", bert_folder, sample, "--out", tmp_path / "whole")
    asked = ("classify", bert_folder, sample, "--out", tmp_path / "out")
    with stopped_after(2, KeyboardInterrupt()):
        stopped = run(*asked)
    assert stopped.exit_code == 130
    assert stopped.stderr == (
        f"interrupted: the finished work is saved in {tmp_path / 'out'}; to continue, run the same "
        "command with --resume\n"
    )
    assert parts_in(tmp_path / "out").count == 2
    refused = run(*asked)
    assert refused.exit_code == 1
    assert "holds the work of an unfinished run" in refused.stderr
    other = run(*asked, "--resume", "--window", 1)
    assert "has other settings: options window was 2 and is 1" in other.stderr
    with stopped_after(1, ModelError("no luck")):
        failed = run(*asked, "--resume")
    error, printed = failed.stderr.splitlines()
    assert error == "error: no luck"
    assert printed.startswith("warning: the finished work is saved")
    assert parts_in(tmp_path / "out").count == 3
    with stopped_after(3, AssertionError()):
        run_well(*asked, "--resume")
    found, expected = (content(tmp_path / name) for name in ("out", "whole"))
    assert found == expected
    assert names(tmp_path / "out") == names(tmp_path / "whole")


def test_parts_are_merged(bert_folder: Path, sample: Path, tmp_path: Path) -> None:
    asked = ("score", bert_folder, sample)
    run_well(*asked, "--out", tmp_path / "whole")
    parts = [tmp_path / "one", tmp_path / "two"]
    for number, part in enumerate(parts, start=1):
        shown = run_well(*asked, "--out", part, "--part", f"{number}/2").stdout
        assert f"this is part {number} of 2" in shown
    shown = run_well("merge", *parts, "--out", tmp_path / "merged").stdout
    assert "79 examples scored" in shown
    found, expected = (content(tmp_path / name) for name in ("merged", "whole"))
    assert found == expected


def large(sample: Path, folder: Path) -> Path:
    """The sample six times: 474 examples, three windows of the usual size."""
    text = sample.read_text(encoding="utf-8")
    file = folder / "large.conllu"
    copies = (text.replace("# sent_id = ", f"# sent_id = {copy}-") for copy in range(6))
    file.write_text("".join(copies), encoding="utf-8")
    return file


def test_killed_processes_resume(
    bert_folder: Path, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run is killed when it has kept a part; two processes that share the rest finish it."""
    pytest.importorskip("accelerate")
    monkeypatch.undo()
    corpus, out = large(sample, tmp_path), tmp_path / "out"
    asked = ["-m", "headroles", "score", str(bert_folder), str(corpus), "--out", str(out)]
    with subprocess.Popen([sys.executable, *asked], stderr=subprocess.DEVNULL) as process:
        while not list(out.glob(f"{HIDDEN}/parts/*/part-*")):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", *asked, "--resume"],
        check=True,
        capture_output=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    run_well("score", bert_folder, corpus, "--out", tmp_path / "whole")
    found, expected = (content(tmp_path / name) for name in ("out", "whole"))
    assert found == expected


SHIFTS = {"comparison.csv", "comparison.parquet", "run.json"}
SCORES = {"scores.parquet", "examples.parquet", "run.json"}


@pytest.fixture
def compared(bert_folder: Path, tuned_folder: Path, sample: Path) -> tuple[Any, ...]:
    """A comparison with five windows for each model."""
    return ("compare", "--models", bert_folder, tuned_folder, "--corpus", sample)


def check_equal(found: Path, expected: Path) -> None:
    assert names(found) == names(expected) == SHIFTS | {"before", "after"}
    assert (found / "comparison.csv").read_bytes() == (expected / "comparison.csv").read_bytes()
    for name in ("before", "after"):
        assert content(found / name) == content(expected / name)
        assert names(found / name) == names(expected / name) == SCORES


@pytest.mark.parametrize("moments", [(2, 2), (7, 1)])
def test_a_comparison_goes_on_where_it_stood(
    compared: tuple[Any, ...], out: Path, tmp_path: Path, moments: tuple[int, int]
) -> None:
    run_well(*compared, "--out", tmp_path / "whole")
    first, second = moments
    with stopped_after(first, Terminated()):
        stopped = run(*compared, "--out", out)
    assert stopped.exit_code == 143
    assert stopped.stderr == (
        f"interrupted: the finished work is saved in {out}; to continue, run the same command "
        "with --resume\n"
    )
    assert names(out) == {HIDDEN}
    assert parts_in(out).count == first
    refused = run(*compared, "--out", out)
    assert "holds the work of an unfinished run; to continue" in refused.stderr
    with stopped_after(second, ModelError("no luck")):
        failed = run(*compared, "--out", out, "--resume")
    error, printed = failed.stderr.splitlines()
    assert error == "error: no luck"
    assert printed.startswith(f"warning: the finished work is saved in {out}")
    assert parts_in(out).count == first + second
    with stopped_after(10 - first - second, AssertionError()):
        run_well(*compared, "--out", out, "--resume")
    check_equal(out, tmp_path / "whole")


def test_the_tests_of_a_comparison_may_be_others(
    compared: tuple[Any, ...], out: Path, tmp_path: Path
) -> None:
    """What fails when all is scored costs nothing of the scores."""
    with pytest.MonkeyPatch.context() as patch:
        no_luck = mock.Mock(side_effect=StorageError("no luck"))
        patch.setattr(RoleComparison, "write_files", no_luck)
        failed = run(*compared, "--out", out, "--alpha", 0.01)
    assert failed.exit_code == 1
    assert "the finished work is saved" in failed.stderr
    assert parts_in(out).count == 10
    with stopped_after(0, AssertionError()):
        run_well(*compared, "--out", out, "--resume")
    run_well(*compared, "--out", tmp_path / "whole")
    check_equal(out, tmp_path / "whole")


def test_older_results_stay_until_a_comparison_is_whole(
    compared: tuple[Any, ...], out: Path, tmp_path: Path
) -> None:
    run_well(*compared, "--window", 1, "--out", out)
    (out / "before" / "notes.txt").write_text("mine", "utf-8")
    held = contents(out)
    with stopped_after(7):
        stopped = run(*compared, "--out", out, "--overwrite")
    assert f"the results in {out} are unchanged, and the finished work" in stopped.stderr
    assert {file: kept for file, kept in contents(out).items() if HIDDEN not in file} == held
    run_well(*compared, "--out", out, "--overwrite", "--resume")
    (out / "before" / "notes.txt").unlink()
    run_well(*compared, "--out", tmp_path / "whole")
    check_equal(out, tmp_path / "whole")
