"""Commands that were interrupted go on where they stood, and come to the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from unittest import mock

import pytest
from click.testing import Result
from typer.testing import CliRunner

from headroles.cli import app
from headroles.storage import parts_in
from headroles.studies.stored import load_table
from headroles.tasks.running import TaskRun


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def commands(model: Path, task: Path) -> dict[str, list[object]]:
    small = ["--batch-size", 2]
    return {
        "importance": ["importance", model, task, *small],
        "ablate": ["ablate", model, task, *small, "--sets", "layers,thirds"],
        "pruning-curves": [
            *("pruning-curves", model, task, "--test", task, *small, "--draws", 2),
            *("--shares", "0.5", "--orders", "reestimated,ablation,random", "--steps", 2),
        ],
    }


@contextmanager
def counted(most: float = inf) -> Iterator[list[object]]:
    """A list that grows with every forward pass; the one after ``most`` is interrupted."""
    forward, passes = TaskRun.losses_of, []

    def losses_of(self: TaskRun, batch: object) -> object:
        if len(passes) == most:
            raise KeyboardInterrupt
        passes.append(batch)
        return forward(self, batch)

    with mock.patch.object(TaskRun, "losses_of", losses_of):
        yield passes


@pytest.mark.parametrize("name", ["importance", "ablate", "pruning-curves"])
def test_goes_on(name: str, classifier: Path, labelled: Path, tmp_path: Path) -> None:
    command, out = commands(classifier, labelled)[name], tmp_path / "out"
    with counted() as whole:
        assert run(*command, "--out", tmp_path / "whole").exit_code == 0
    with counted(len(whole) * 3 // 4):
        stopped = run(*command, "--out", out)
    assert stopped.exit_code == 130
    assert "run the same command with --resume" in " ".join(stopped.stderr.split())
    assert not (out / "run.json").exists()
    assert parts_in(out).count
    asked = run(*command, "--out", out)
    assert asked.exit_code == 1
    assert "of an unfinished run; to go on" in " ".join(asked.stderr.split())
    with counted() as rest:
        result = run(*command, "--out", out, "--resume")
    assert result.exit_code == 0, result.output
    assert len(rest) <= len(whole) // 2
    assert load_table(out).frame.equals(load_table(tmp_path / "whole").frame)
    assert sorted(one.name for one in out.iterdir()) == sorted(
        one.name for one in (tmp_path / "whole").iterdir()
    )


def test_another_study_is_refused(classifier: Path, labelled: Path, tmp_path: Path) -> None:
    command, out = commands(classifier, labelled), tmp_path / "out"
    with counted(7):
        assert run(*command["ablate"], "--out", out).exit_code == 130
    n_kept = parts_in(out).count
    for other, said in (
        (
            [*command["ablate"], "--ablation", "uniform"],
            'options ablation was "zero" and is "uniform"',
        ),
        ([*command["ablate"], "--examples", 6], "options examples was null and is 6"),
    ):
        result = run(*other, "--out", out, "--resume")
        assert result.exit_code == 1
        assert said in " ".join(result.stderr.split())
        assert parts_in(out).count == n_kept
    assert run(*command["importance"], "--out", out, "--resume").exit_code == 1
    assert run(*command["importance"], "--out", out, "--no-resume").exit_code == 0
    assert not parts_in(out).count


def test_progress_is_told_in_batches(
    classifier: Path, labelled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headroles.cli.console.SECONDS_BETWEEN_LINES", 0)
    for name, command in commands(classifier, labelled).items():
        result = run(*command, "--out", tmp_path / name)
        assert "1 of 4 batches" in result.stderr, result.output
        assert "sentences" not in result.stderr
