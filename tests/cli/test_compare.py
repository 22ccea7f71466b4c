"""``headroles compare`` as a user runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import torch

from headroles import HeadScores, RoleComparison, compare_roles
from headroles.errors import ModelError, StorageError
from headroles.interrupts import Terminated
from headroles.storage import HIDDEN, parts_in
from tests.commands import contents, names, record_in, run, run_well
from tests.conftest import make_bert, make_tokenizer
from tests.scoring.test_parts import WINDOW, content, stopped_after

SHIFTS = {"comparison.csv", "comparison.parquet", "run.json"}
SCORES = {"scores.parquet", "examples.parquet", "run.json"}


@pytest.fixture(scope="module")
def tuned_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model of ``bert_folder`` with other weights in its last layers."""
    model = make_bert()
    torch.manual_seed(1)
    with torch.no_grad():
        for name, weights in model.named_parameters():
            if "layer.1" in name or "layer.2" in name:
                weights += 0.3 * torch.randn_like(weights)
    folder = tmp_path_factory.mktemp("tuned") / "tiny-bert"
    model.save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def results(
    bert_folder: Path, tuned_folder: Path, sample: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Both models scored and compared; tests must not change it."""
    out = tmp_path_factory.mktemp("results") / "compared"
    models = ("--models", bert_folder, tuned_folder)
    run_well("compare", *models, "--corpus", sample, "--threshold", 1.2, "--out", out)
    return out


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


class TestModels:
    def test_keeps_the_scores_of_each_which_are_those_of_score(
        self, results: Path, tuned_folder: Path, sample: Path, out: Path
    ) -> None:
        assert names(results) == SHIFTS | {"before", "after"}
        assert names(results / "before") == names(results / "after") == SCORES
        assert names(results.parent) == {"compared"}
        run_well("score", tuned_folder, sample, "--out", out)
        one, other = HeadScores.load(out), HeadScores.load(results / "after")
        np.testing.assert_array_equal(one.values, other.values)
        assert (one.ids, one.digests) == (other.ids, other.digests)
        for key in ("options", "model", "corpus", "facts"):
            assert getattr(one.record, key) == getattr(other.record, key)

    def test_is_the_comparison_of_stored_scores(self, results: Path, out: Path) -> None:
        before, after = results / "before", results / "after"
        run_well("compare", before, after, "--threshold", 1.2, "--out", out)
        assert names(out) == SHIFTS
        assert (out / "comparison.csv").read_bytes() == (results / "comparison.csv").read_bytes()
        expected = compare_roles(HeadScores.load(before), HeadScores.load(after), threshold=1.2)
        found = RoleComparison.load(out).frame
        pd.testing.assert_frame_equal(found, expected.frame, check_exact=True)

    def test_several_models_and_files_by_name(
        self, bert_folder: Path, tuned_folder: Path, treebank: Path, tmp_path: Path, out: Path
    ) -> None:
        more = tmp_path / "more.conllu"
        more.write_text(treebank.read_text().replace("sent_id = ", "sent_id = c"))
        # the flag may stand before each of the models
        models = ("--models", bert_folder, "--models", tuned_folder, "--models", bert_folder)
        corpora = ("--corpus", treebank, "--corpus", more)
        run_well("compare", *models, *corpora, "--names", "one, two", "--out", out)
        assert names(out) == SHIFTS | {"before", "one", "two"}
        assert RoleComparison.load(out).checkpoints == ("one", "two")
        assert record_in(out)["sources"]["before"]["corpus"]["files"] == [str(treebank), str(more)]
        back = RoleComparison.load(out).frame.query("checkpoint == 'two'")
        assert not back["changed"].any()


class TestFailure:
    """Interrupted and failed comparisons, which resume."""

    @pytest.fixture
    def large(
        self, bert_folder: Path, tuned_folder: Path, sample: Path, monkeypatch: pytest.MonkeyPatch
    ) -> tuple[Any, ...]:
        """A comparison with five windows for each model."""
        monkeypatch.setattr("headroles.scoring.run.WINDOW_EXAMPLES", WINDOW)
        return ("compare", "--models", bert_folder, tuned_folder, "--corpus", sample)

    def check_equal(self, found: Path, expected: Path) -> None:
        assert names(found) == names(expected) == SHIFTS | {"before", "after"}
        assert (found / "comparison.csv").read_bytes() == (expected / "comparison.csv").read_bytes()
        for name in ("before", "after"):
            assert content(found / name) == content(expected / name)
            assert names(found / name) == names(expected / name) == SCORES

    @pytest.mark.parametrize("moments", [(2, 2), (7, 1)])
    def test_goes_on_where_it_stood(
        self, large: tuple[Any, ...], out: Path, tmp_path: Path, moments: tuple[int, int]
    ) -> None:
        run_well(*large, "--out", tmp_path / "whole")
        first, second = moments
        with stopped_after(first, Terminated()):
            stopped = run(*large, "--out", out)
        assert stopped.exit_code == 143
        assert stopped.stderr == (
            f"interrupted: the finished work is saved in {out}; to continue, run the same command "
            "with --resume\n"
        )
        assert names(out) == {HIDDEN}
        assert parts_in(out).count == first
        refused = run(*large, "--out", out)
        assert "holds the work of an unfinished run; to continue" in refused.stderr
        with stopped_after(second, ModelError("no luck")):
            failed = run(*large, "--out", out, "--resume")
        error, printed = failed.stderr.splitlines()
        assert error == "error: no luck"
        assert printed.startswith(f"warning: the finished work is saved in {out}")
        assert parts_in(out).count == first + second
        with stopped_after(10 - first - second, AssertionError()):
            run_well(*large, "--out", out, "--resume")
        self.check_equal(out, tmp_path / "whole")

    def test_the_tests_may_be_others(
        self, large: tuple[Any, ...], out: Path, tmp_path: Path
    ) -> None:
        """What fails when all is scored costs nothing of the scores."""
        with pytest.MonkeyPatch.context() as patch:
            no_luck = mock.Mock(side_effect=StorageError("no luck"))
            patch.setattr(RoleComparison, "write_files", no_luck)
            failed = run(*large, "--out", out, "--alpha", 0.01)
        assert failed.exit_code == 1
        assert "the finished work is saved" in failed.stderr
        assert parts_in(out).count == 10
        with stopped_after(0, AssertionError()):
            run_well(*large, "--out", out, "--resume")
        run_well(*large, "--out", tmp_path / "whole")
        self.check_equal(out, tmp_path / "whole")

    def test_older_results_stay_until_then(
        self, large: tuple[Any, ...], out: Path, tmp_path: Path
    ) -> None:
        run_well(*large, "--window", 1, "--out", out)
        (out / "before" / "notes.txt").write_text("mine", "utf-8")
        held = contents(out)
        with stopped_after(7):
            stopped = run(*large, "--out", out, "--overwrite")
        assert f"the results in {out} are unchanged, and the finished work" in stopped.stderr
        assert {file: kept for file, kept in contents(out).items() if HIDDEN not in file} == held
        run_well(*large, "--out", out, "--overwrite", "--resume")
        (out / "before" / "notes.txt").unlink()
        run_well(*large, "--out", tmp_path / "whole")
        self.check_equal(out, tmp_path / "whole")


def test_other_corpora_are_compared_where_they_meet(
    results: Path, tuned_folder: Path, sample: Path, tmp_path: Path, out: Path
) -> None:
    part = tmp_path / "part.conllu"
    sentences = sample.read_text(encoding="utf-8").split("\n\n")
    part.write_text("\n\n".join(sentences[:12]) + "\n\n", encoding="utf-8")
    run_well("score", tuned_folder, part, "--relations", "nsubj", "--out", tmp_path / "part")
    arguments = ("compare", results / "before", tmp_path / "part", "--out", out)
    result = run(*arguments)
    assert result.exit_code == 2
    assert "differ in their relations" in result.stderr
    assert "--on-mismatch intersect" in result.stderr
    assert not out.exists()
    shown = run_well(*arguments, "--on-mismatch", "intersect").stdout
    dropped = record_in(out)["facts"]["dropped_examples"]
    assert dropped["before"] > 50 > 2 > dropped["after"]
    assert f"Dropped: of before {dropped['before']} examples and " in shown
    assert RoleComparison.load(out).roles[-1] == "syntactic:nsubj:to_dependent"
