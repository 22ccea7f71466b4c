"""Damaged folders and odd options end in an answer or an error; the long run is in benchmarks."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import fuzz_commands, fuzz_sent
from benchmarks.fuzz_folders import make_results, try_model, try_result
from benchmarks.fuzz_inputs import try_options
from benchmarks.fuzzing import go_through, save_model
from headroles.studies.classification.role_table import RoleTable


def test_model_folders(tmp_path: Path) -> None:
    save_model(tmp_path / "model")
    outcomes = go_through(lambda chance: try_model(tmp_path / "model", chance), 25, seed=1)
    assert outcomes["loaded"] < sum(outcomes.values())


def test_result_folders(tmp_path: Path) -> None:
    results = make_results(tmp_path)
    outcomes = go_through(lambda chance: try_result(chance.choice(results), chance), 120, seed=1)
    assert outcomes["StorageError"] > 50
    assert outcomes["read, with other words around it"] > 5


def test_sent_folders(tmp_path: Path) -> None:
    outcomes = go_through(fuzz_sent.SURFACES["hidden"].prepare(tmp_path), 60, seed=1)
    assert outcomes["replaced"] > 1


def test_options() -> None:
    outcomes = go_through(try_options, 300, seed=1)
    assert outcomes["UsageError"] > 150


def test_a_changed_table_that_is_believed_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headroles.storage.check_files", lambda *_: None)

    def negated(cls: type, folder: Path, record: object) -> object:
        table = known[1]
        return RoleTable(table.frame.assign(mean=-table.frame["mean"]), table.record)

    known = next((one[0], one[2]) for one in make_results(tmp_path) if one[0] is RoleTable)
    place = tmp_path / "roles"
    monkeypatch.setattr(RoleTable, "read_files", classmethod(negated))
    with pytest.raises(AssertionError, match="was believed"):
        go_through(lambda chance: try_result((RoleTable, place, known[1]), chance), 40, seed=2)


@pytest.mark.parametrize(("surface", "times"), [("tasks", 12), ("roles", 9), ("names", 9)])
def test_commands(tmp_path: Path, surface: str, times: int) -> None:
    attempt = fuzz_commands.SURFACES[surface].prepare(tmp_path)
    assert len(go_through(attempt, times, seed=0)) > 1


@pytest.mark.parametrize(
    "command", [["export", "\x1b[2J"], ["models", "--json"]], ids=["printed", "raised"]
)
def test_what_no_command_may_do_is_noticed(
    monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    """Control characters on the output, and tracebacks."""

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("headroles.cli.console.print_json", fail)
    monkeypatch.setattr("headroles.cli.console.printable", str)
    monkeypatch.setattr("headroles.errors.HeadRolesError.__str__", Exception.__str__)
    with pytest.raises(AssertionError):
        fuzz_commands.run(*command)
