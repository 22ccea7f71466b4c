"""``--resume``, ``--part`` and several processes from the command line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import pytest

from headroles import RoleTable
from headroles.errors import ModelError, StorageError
from headroles.storage import HIDDEN, parts_in
from tests.cli.conftest import copies_of
from tests.commands import names, run, run_well
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
    other = run(*asked, "--resume", "--window", 1).stderr
    assert "has other settings: options window was 2 and is 1" in other
    other = run(*asked, "--resume", "--spacing", "words").stderr
    assert 'has other settings: corpus spacing was "text" and is "words", corpus digest' in other
    with stopped_after(1, ModelError("no luck")):
        failed = run(*asked, "--resume")
    error, printed = failed.stderr.splitlines()
    assert error == "error: no luck"
    assert printed.startswith("warning: the finished work is saved")
    assert parts_in(tmp_path / "out").count == 3
    no_luck = mock.Mock(side_effect=StorageError("no luck"))
    with pytest.MonkeyPatch.context() as patch, stopped_after(3, AssertionError()):
        patch.setattr(RoleTable, "write_files", no_luck)  # which costs nothing of the scores
        assert run(*asked, "--resume").exit_code == 1
    with stopped_after(0, AssertionError()):
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


def test_killed_processes_resume(
    bert_folder: Path, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run is killed when it has kept a part; two processes that share the rest finish it."""
    pytest.importorskip("accelerate")
    monkeypatch.undo()
    corpus, out = copies_of(sample, 6, tmp_path), tmp_path / "out"  # three windows
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
