"""Interrupted commands resume, with the results of commands without interruptions."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
import pytest
from click.testing import Result

from headroles.interrupts import Terminated
from headroles.storage import HIDDEN, parts_in
from headroles.tasks.running import TaskRun
from tests.commands import record_in, run
from tests.conftest import change_json

COMMANDS = {
    "importance": "importance MODEL TASK",
    "ablate": "ablate MODEL TASK --sets layers,thirds",
    "by-role": "by-role MODEL TASK --roles-from ROLES --draws 2 --permutations 99",
    "pruning-curves": "pruning-curves MODEL TWICE --test TASK --shares 0.5 --steps 2 "
    "--orders reestimated,ablation,random",
    "prune": "prune MODEL TASK --test TASK --keep 5 --order reestimated --steps 3",
    "gate": "gate MODEL TASK --test TASK --keep 5 --seeds 2 --updates 6 --update-examples 2",
}
COMMANDS["gate, trained"] = COMMANDS["gate"] + " --weights trained --weight-rate 0.01"


@pytest.fixture
def commands(
    classifier: Path, labelled: Path, labelled_twice: Path, roles: Path
) -> dict[str, list[object]]:
    """Every command that can resume, with options that change its saved parts."""
    given = {"MODEL": classifier, "TASK": labelled, "TWICE": labelled_twice, "ROLES": roles}
    found = {}
    for name, line in COMMANDS.items():
        words = [given.get(word, word) for word in line.split()]
        found[name] = [*words, "--batch-tokens", 64 if "gate" in name else 36]
    return found


@contextmanager
def counted(most: float = inf, end: type[BaseException] = KeyboardInterrupt) -> Iterator[list[Any]]:
    """Yield a list that grows with every forward pass; interrupt the pass after ``most``."""
    forward, passes = TaskRun.losses_of, []

    def losses_of(self: TaskRun, batch: object) -> object:
        if len(passes) == most:
            raise end
        passes.append(batch)
        return forward(self, batch)

    with mock.patch.object(TaskRun, "losses_of", losses_of):
        yield passes


def written(folder: Path) -> dict[str, object]:
    """Return the content of a folder; of tables and of the record without times and commands."""
    found: dict[str, object] = {}
    for file in folder.rglob("*"):
        if file.is_file():
            is_table = file.suffix == ".parquet"
            content = pd.read_parquet(file).to_csv() if is_table else file.read_bytes()
            found[str(file.relative_to(folder))] = content
    if "run.json" in found:
        of_one_run = ("created", "command", "digest", "holds")
        record = record_in(folder).items()
        found["run.json"] = {name: value for name, value in record if name not in of_one_run}
    return found


def said(result: Result) -> str:
    return " ".join(result.stderr.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_goes_on(name: str, commands: dict[str, list[object]], tmp_path: Path) -> None:
    command, out = commands[name], tmp_path / "out"
    with counted() as whole:
        assert run(*command, "--out", tmp_path / "whole").exit_code == 0
    for most, resume, end, code in (
        (len(whole) // 2, [], KeyboardInterrupt, 130),
        (len(whole) // 3, ["--resume"], Terminated, 143),
    ):
        with counted(most, end):
            stopped = run(*command, "--out", out, *resume)
        assert stopped.exit_code == code
        assert "run the same command with --resume" in said(stopped)
        assert parts_in(out).count
        assert list(written(out)) == [file for file in written(out) if file.startswith(HIDDEN)]
    asked = run(*command, "--out", out)
    assert asked.exit_code == 1
    assert "of an unfinished run; to continue" in said(asked)
    with counted() as rest:
        result = run(*command, "--out", out, "--resume")
    assert result.exit_code == 0, result.output
    assert len(rest) < 0.6 * len(whole)
    assert written(out) == written(tmp_path / "whole")


def test_older_results_stay_until_then_and_progress_goes_on_where_it_stood(
    commands: dict[str, list[object]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, out = [*commands["gate"], "--out", tmp_path / "out"], tmp_path / "out"
    assert run(*command, "--examples", 6).exit_code == 0
    older = written(out)
    monkeypatch.setattr("headroles.cli.console.SECONDS_BETWEEN_LINES", 0)
    with counted(2 + 6 + 2 + 1):  # 2 batches of the test, a seed with its loss, an update
        stopped = run(*command, "--overwrite")
    assert "to continue, run the same command with --resume" in said(stopped)
    assert older == {file: own for file, own in written(out).items() if not file.startswith(HIDDEN)}
    resumed = run(*command, "--overwrite", "--resume")
    assert resumed.exit_code == 0
    for result, is_before in ((stopped, True), (resumed, False)):
        assert ("5 of 12 steps" in result.stderr) == is_before
        assert ("8 of 12 steps" in result.stderr) != is_before


def test_fine_tuning_starts_anew(
    commands: dict[str, list[object]], labelled: Path, tmp_path: Path
) -> None:
    """Saved parts are of the weights before fine-tuning, and do not serve others."""
    command = [*commands["prune"], "--fine-tune-on", labelled, "--epochs", 1]
    command += ["--learning-rate", 0.01, "--compensation"]
    assert run(*command, "--out", tmp_path / "whole").exit_code == 0
    with mock.patch("headroles.studies.pruning.prune.train_weights", side_effect=KeyboardInterrupt):
        stopped = run(*command, "--out", tmp_path / "out")
    assert stopped.exit_code == 130
    assert "run the same command with --resume" in said(stopped)
    result = run(*command, "--out", tmp_path / "out", "--resume")
    assert result.exit_code == 0, result.output
    assert written(tmp_path / "out") == written(tmp_path / "whole")


@pytest.mark.parametrize(
    ("name", "change", "differs"),
    [
        ("ablate", "--ablation uniform", 'options ablation was "zero" and is "uniform"'),
        ("ablate", "--examples 6", "options examples was null and is 6"),
        ("by-role", "--draws 3", "options draws was 2 and is 3"),
        ("prune", "--keep 6", "options keep was 5 and is 6"),
        ("gate", "--updates 7", "options updates was 6 and is 7"),
        ("gate", "--batch-tokens 50", "options batch_tokens was 64 and is 50"),
        ("ablate", {"config.json": {"label2id": {"good": 0, "bad": 1}}}, "task 1 targets was "),
        ("ablate", {"config.json": {"hidden_act": "relu"}}, "model config_sha256 was "),
        ("ablate", {"config.json": {"layer_norm_eps": 0.5}}, "model config_sha256 was "),
        ("ablate", {"tokenizer.json": {"normalizer": {"type": "Lowercase"}}}, "tokenizer digest "),
    ],
)
def test_another_plan_is_refused(
    name: str, change: Any, differs: str, commands: dict[str, list[object]], tmp_path: Path
) -> None:
    """Other options, and another use of the same weights."""
    study, model, *rest = commands[name]
    model = shutil.copytree(str(model), tmp_path / "model")
    command = [study, model, *rest, "--out", tmp_path / "out"]
    with counted(7):
        assert run(*command).exit_code == 130
    kept = written(tmp_path / "out")
    for file, changes in change.items() if isinstance(change, dict) else ():
        change_json(model / file, **changes)
    result = run(*command, *(change.split() if isinstance(change, str) else ()), "--resume")
    assert result.exit_code == 1
    assert f"has other settings: {differs}" in said(result)
    other = ["importance" if name == "ablate" else "ablate", model, rest[0], "--out", command[-1]]
    assert run(*other, "--resume").exit_code == 1
    assert written(tmp_path / "out") == kept
    if name == "ablate":
        assert run(*other, "--no-resume").exit_code == 0
        assert not parts_in(tmp_path / "out").count


def test_progress_is_that_of_the_whole_study(
    commands: dict[str, list[object]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headroles.cli.console.SECONDS_BETWEEN_LINES", 0)
    batches = 4
    totals = {
        "importance": 2 * batches,  # forward and back
        "ablate": (1 + 1 + 2 / 3 + 1 / 3) * batches,  # of three layers each third is one
        "by-role": None,
        "pruning-curves": None,
    }
    for name, expected in totals.items():
        result = run(*commands[name], "--out", tmp_path / name)
        lines = re.findall(r"(\d+) of (\d+) passes", result.stderr)
        done, total = zip(*(map(int, line) for line in lines), strict=True)
        assert "sentences" not in result.stderr
        assert len(done) >= batches
        assert list(done) == sorted(done)
        assert done[-1] <= total[-1] <= 1.25 * done[-1]
        assert total[-1] / 2 <= total[0] <= 2 * total[-1]
        if expected is not None:
            assert set(total) == {expected}
