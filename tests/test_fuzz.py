"""Benchmarks: a short run of damaged files and odd options, and what they call slower."""

from __future__ import annotations

import json
import random
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from benchmarks.fuzz import (
    Hang,
    at_most,
    bitexts,
    commands,
    corpora,
    folders,
    go_through,
    lies,
    save_model,
)
from benchmarks.fuzz.folders import make_results, try_model, try_result
from benchmarks.fuzz.surfaces import MODULES, SURFACES
from benchmarks.kill import GIVEN, all_commands, needed
from benchmarks.speeds import FIGURES, processor, slower
from headroles.errors import CorpusError
from headroles.registry import COMMANDS
from headroles.studies.classification.role_table import RoleTable


def fail(*_: object) -> None:
    raise ZeroDivisionError


def test_no_damaged_treebank_ends_in_a_traceback(tmp_path: Path) -> None:
    outcomes = go_through(corpora.SURFACES["corpora"].prepare(tmp_path), 200, seed=1)
    assert set(outcomes) <= {"prepared", "CorpusError", "UsageError"}
    assert min(outcomes["prepared"], outcomes["CorpusError"]) >= 20  # both sides are tried


def test_the_undamaged_treebank_is_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "t.conllu"
    assert corpora.prepare(file, corpora.GOOD) == "prepared"
    with pytest.raises(CorpusError):
        corpora.prepare(file, b"\xff" + corpora.GOOD)
    monkeypatch.setattr("benchmarks.fuzz.corpora.make_readout", fail)
    with pytest.raises(ZeroDivisionError):
        corpora.prepare(file, corpora.GOOD)


def test_model_folders(tmp_path: Path) -> None:
    save_model(tmp_path / "model")
    outcomes = go_through(lambda chance: try_model(tmp_path / "model", chance), 25, seed=1)
    assert outcomes["loaded"] < sum(outcomes.values())


def test_result_folders(tmp_path: Path) -> None:
    results = make_results(tmp_path)
    outcomes = go_through(lambda chance: try_result(chance.choice(results), chance), 120, seed=1)
    assert outcomes["StorageError"] > 50
    assert outcomes["read, with other words around it"] > 5


def test_every_surface_has_a_name_of_its_own() -> None:
    assert len(SURFACES) == sum(len(module.SURFACES) for module in MODULES)


def test_most_lies_in_single_cells_are_refused(tmp_path: Path) -> None:
    outcomes: Counter[str] = Counter()
    make_results(tmp_path)
    for folder in sorted(tmp_path.iterdir()):
        for kind in lies.tables_in(folder):
            for what in lies.lies_about(kind):
                outcomes[lies.try_lie(folder, kind, what, random.Random(what))] += 1
    assert outcomes["refused"] > 2 * outcomes["believed"] > 0


def test_sent_folders(tmp_path: Path) -> None:
    outcomes = go_through(folders.SURFACES["hidden"].prepare(tmp_path), 60, seed=1)
    assert outcomes["replaced"] > 1


def test_options() -> None:
    outcomes = go_through(commands.try_options, 300, seed=1)
    assert outcomes["UsageError"] > 150


def test_a_changed_table_that_is_believed_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headroles.storage.check_files", lambda *_: None)

    def negated(cls: type, folder: Path, record: object) -> object:
        table = known[2]
        return RoleTable(table.frame.assign(mean=-table.frame["mean"]), table.record)

    known = next(one for one in make_results(tmp_path) if one[0] is RoleTable)
    monkeypatch.setattr(RoleTable, "read_files", classmethod(negated))
    given = (RoleTable, tmp_path / "roles", known[2])
    with pytest.raises(AssertionError, match="was believed"):
        go_through(lambda chance: try_result(given, chance), 40, seed=2)


@pytest.mark.parametrize(("surface", "times"), [("tasks", 12), ("roles", 9), ("names", 9)])
def test_commands(tmp_path: Path, surface: str, times: int) -> None:
    attempt = commands.SURFACES[surface].prepare(tmp_path)
    assert len(go_through(attempt, times, seed=0)) > 1


@pytest.mark.parametrize(
    "words", [["export", "\x1b[2J"], ["models", "--json"]], ids=["printed", "raised"]
)
def test_what_no_command_may_do_is_noticed(
    monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    """Control characters on the output, and tracebacks."""

    monkeypatch.setattr("headroles.cli.console.print_json", fail)
    monkeypatch.setattr("headroles.cli.console.printable", str)
    monkeypatch.setattr("headroles.errors.HeadRolesError.__str__", Exception.__str__)
    with pytest.raises(AssertionError):
        commands.run(*words)


@pytest.mark.parametrize("wait", [lambda: time.sleep(60), lambda: all(iter(lambda: 1, 0))])
def test_a_hang_is_noticed_even_where_its_alarm_is_swallowed(wait: Callable[[], object]) -> None:
    with pytest.raises(Hang), at_most(0.01), suppress(BaseException):
        wait()


def test_every_command_that_writes_is_killed(tmp_path: Path) -> None:
    model, text = str(save_model(tmp_path / "model")), tmp_path / "text"
    text.write_bytes(corpora.GOOD)
    names = "model task_model task translator target_tokenizer links_from".split()
    sizes = "sentences examples steps updates pairs".split()
    asked = Namespace(**dict.fromkeys(names, model), **dict.fromkeys(sizes, 2))
    asked.treebank = asked.bitext = asked.links = text
    commands = all_commands(asked, tmp_path)
    killed = {words[0] for name, (words, _) in commands.items() if name not in GIVEN}
    assert {command.name for command in COMMANDS} - killed == {"demo", "show", "models", "info"}
    needs = needed(commands, tmp_path, ["combine-claims", "assign"])
    assert needs == ["classify", "claims", "claims 2", "claims 3", "assign", "combine-claims"]


def test_a_tenth_slower_fails() -> None:
    before = {"ablate": 30.0, "hit": 1.2, "gone": 1.0}
    assert slower({"ablate": 32.9, "hit": 1.0, "new": 9.0}, before) == []
    assert slower({"ablate": 33.1, "hit": 1.0}, before) == [
        "ablate takes 33.10 forward passes, 30.00 in the last release"
    ]


def test_figures_are_by_processor() -> None:
    figures = json.loads(FIGURES.read_text("utf-8"))
    assert "," in processor()
    assert all(ratio > 0 for of_one in figures.values() for ratio in of_one.values())


@pytest.mark.parametrize(("surface", "outcome"), [("pairs", "scored"), ("crossing", "scored")])
def test_pairs_and_attention_across(tmp_path: Path, surface: str, outcome: str) -> None:
    outcomes = go_through(bitexts.SURFACES[surface].prepare(tmp_path), 60, seed=1)
    assert 10 < outcomes[outcome] < 60


def test_bitexts(tmp_path: Path) -> None:
    outcomes = go_through(bitexts.SURFACES["bitexts"].prepare(tmp_path), 40, seed=1)
    assert outcomes["HeadRolesError"] > 5
    assert outcomes["classified"] + outcomes["aligned"] > 5
