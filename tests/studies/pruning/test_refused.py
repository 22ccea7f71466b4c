"""What commands that remove heads, or learn which ones to keep, refuse before any work."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest

from headroles.models.heads.surgery import remove_heads
from headroles.storage import result_folder
from headroles.tasks.running import TaskRun
from tests.commands import run
from tests.tasks.conftest import HEADS, SENTENCES, make_task_model, save, write_labelled

REFUSED = """
2 prune --keep 3                               => the order importance needs a task
2 prune                                        => give the number of heads to keep
2 prune --keep 3 --share 0.5                   => give the number of heads to keep
2 prune --keep 13 --order random       => 13 heads are to be kept, but the model has 12
2 prune --keep 3 --order with_role             => needs --role and --roles-from
2 prune --keep 3 --protect 3.1                 => the head is '3.1'; it must be layer-head
2 prune --keep 3 --order top --at-least 4      => 0 of 12 may go; keep at least 12
2 prune --keep 1 --order random --protect 0-1,2-2 => 2 are protected (--protect), so that 10 of 12
2 prune --keep 1 --order alternate             => 11 heads cannot be removed from layers of which
2 prune --keep 3 --order with_role --role x --roles-from ROLES => there is no role 'x'
2 prune --keep 3 --role local                  => does nothing with the order
2 prune --keep 3 --roles-from x                => does nothing with the order
2 prune --keep 3 --steps 3                     => does nothing with the order
2 prune --keep 3 --order random --estimator signed => does nothing with the order
2 prune --keep 3 --compensation                => name examples with --fine-tune-on
2 prune --keep 3 --learning-rate 0     => --learning-rate is 0.0; it must be a number above
2 prune --keep 0 --order top --compensation --fine-tune-on TASK => and none could compensate
1 prune --keep 3 --order top --fine-tune-on none.tsv => there is no file
2 gate TASK                                    => give the number of heads to keep: --keep
2 gate TASK --keep 12                  => 12 heads are to be kept, and the model has 12; keep fewer
2 gate TASK --keep 0                           => --keep is 0; it must be a whole number from 1
2 pruning-curves --orders luck                 => order is 'luck'; it must be one of
2 pruning-curves --orders random:l2            => 'l2' is not known
2 pruning-curves --orders random,random        => an order is named twice
2 pruning-curves --orders top          => is 'random'; it must be one of the orders: top
2 pruning-curves --orders with_role:local,random => needs --role and --roles-from, a folder
2 pruning-curves --draws 4             => --draws is 4; it must be a whole number from 5
2 pruning-curves --shares 0.5,1.2      => the share is 1.2; it must lie between 0 and 1
2 pruning-curves --shares 0.01 --orders random => 0.01 is 0 of 12 heads
2 pruning-curves --correction max_t            => correction is 'max_t'; it must be one of
2 pruning-curves --orders random --protect 3-0 => be protected, but the model has no heads in that
2 pruning-curves --orders random --protect 1-4 => the model has the heads 0, 1, 2, 3 there
2 pruning-curves                               => the order importance needs a task
2 by-role TASK                                 => name the folder of roles
2 ablate TASK --sets roles            => --roles-from goes with the set roles of --sets, and with it
"""


@pytest.mark.parametrize("line", REFUSED.strip().splitlines())
def test_what_cannot_be_meant(
    line: str, classifier: Path, labelled: Path, roles: Path, tmp_path: Path
) -> None:
    (code, command, *words), message = (part.split() for part in line.split("=>"))
    test = ["--test", labelled] if command == "pruning-curves" else []
    given = [{"TASK": labelled, "ROLES": roles}.get(word, word) for word in words]
    result = run(command, classifier, *given, *test, "--out", tmp_path / "out")
    assert result.exit_code == int(code)
    assert " ".join(message) in " ".join(result.stderr.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["importance", "ablate", "by-role", "gate", "pruning-curves"])
def test_a_model_without_any_head(command: str, roles: Path, tmp_path: Path) -> None:
    model = make_task_model()
    remove_heads(model, HEADS)
    folder = save(model, tmp_path / "none")
    task = write_labelled(tmp_path / "task.tsv", SENTENCES * 2)
    more = {"gate": ["--keep", 1], "pruning-curves": ["--test", task]}
    more["by-role"] = ["--roles-from", roles]
    result = run(command, folder, task, *more.get(command, []), "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "all heads of" in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["prune", "gate"])
def test_a_folder_that_another_run_writes_into(
    command: str, classifier: Path, labelled: Path, tmp_path: Path
) -> None:
    """Said before the work: the folder is claimed for all of it."""
    with (
        result_folder(tmp_path / "out"),
        mock.patch.object(TaskRun, "losses_of", side_effect=AssertionError),
    ):
        result = run(command, classifier, labelled, "--keep", 3, "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "another run is writing into" in " ".join(result.stderr.split())
