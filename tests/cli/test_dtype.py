"""``--dtype auto`` from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from headroles import HeadScores, RoleTable
from tests.cli.test_cli import run, run_well
from tests.scoring.half import in_seconds, native

ASKED = ("--dtype", "auto", "--score", "excess", "--roles", "local", "--device", "cpu")


def test_scores_and_roles_say_what_was_chosen(
    bert_folder: Path, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    native(monkeypatch)
    in_seconds(monkeypatch, 2, 1)
    out = tmp_path / "out"
    said = "scores  in bfloat16, chosen by auto: bfloat16 took 0.50 of the time over the first 64"
    assert said in run_well("score", bert_folder, sample, *ASKED, "--out", out).stdout
    assert HeadScores.load(out).record.model.dtype == "bfloat16"
    shown = run_well("assign", out, "--full", "--threshold", 0.99).stdout
    assert said in shown
    asked = (*ASKED, "--threshold", 0.99, "--overwrite", "--full")
    shown = run_well("classify", bert_folder, sample, *asked, "--out", out).stdout
    assert said in shown
    assert RoleTable.load(out).record.chosen_dtype == HeadScores.load(out).record.chosen_dtype


@pytest.mark.parametrize(
    ("command", "more", "told"),
    [
        ("score", ("--part", "1/2"), "each part of a corpus would choose a dtype by itself"),
        ("score", ("--until", "0.5"), "auto scores some heads again after that"),
        ("classify", ("--until", "0.5"), "auto scores some heads again after that"),
    ],
)
def test_where_a_choice_makes_no_sense_it_is_refused(
    bert_folder: Path, sample: Path, tmp_path: Path, command: str, more: tuple[str, ...], told: str
) -> None:
    refused = run(command, bert_folder, sample, *ASKED, *more, "--out", tmp_path / "out")
    assert refused.exit_code == 2
    assert told in refused.stderr
    assert "--dtype float32" in refused.stderr


def test_models_to_compare_need_one_dtype(bert_folder: Path, sample: Path, tmp_path: Path) -> None:
    models = ("compare", "--models", bert_folder, bert_folder, "--corpus", sample)
    refused = run(*models, *ASKED, "--out", tmp_path / "out")
    assert refused.exit_code == 2
    assert "auto would choose a dtype for each model by itself" in refused.stderr


def test_other_commands_load_a_model_as_they_are_told(bert_folder: Path) -> None:
    refused = run("collaborate", bert_folder, "--dtype", "auto")
    assert refused.exit_code == 2
    assert "must be one of float32, bfloat16, float16" in " ".join(refused.stderr.split())
