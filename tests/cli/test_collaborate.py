"""``headroles collaborate``, ``redundancy``, and their folders in every other command."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch

from headroles.models.heads.remaining import removed_heads
from headroles.models.heads.surgery import zero_heads
from headroles.models.loading.encoder import load_model
from tests.commands import names, record_in, run, run_well
from tests.models.test_attention import make_inputs
from tests.rounding import assert_same_outputs, tolerance
from tests.tasks.conftest import classifier, labelled

__all__ = ["classifier", "labelled"]


@pytest.fixture(scope="module")
def made(classifier: Path, labelled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collaborative classifier, measured on its task."""
    folder = tmp_path_factory.mktemp("task") / "model"
    settings = ("--rank", 16, "--sample-examples", 40)
    run_well("collaborate", classifier, *settings, "--task", labelled, "--out", folder)
    return folder


@pytest.fixture(scope="module")
def pruned(classifier: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier whose last layer has no head left, and the one before it some."""
    folder = tmp_path_factory.mktemp("task") / "pruned"
    run_well("prune", classifier, "--order", "top", "--keep", 7, "--out", folder)
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def logits(folder: Path) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = load_model(folder)(**make_inputs()).logits
    return found


class TestMaking:
    def test_overwriting_replaces_model_and_table(self, bert_folder: Path, out: Path) -> None:
        asked = ("--method", "per-head", "--out", out, "--json")
        facts = json.loads(run_well("collaborate", bert_folder, "--rank", 16, *asked).stdout)
        assert [layer["rank"] for layer in facts["rows"]] == [16] * 3
        assert facts["facts"]["parameters_after"] < facts["facts"]["parameters_before"]
        assert facts["out"] == str(out)
        before = (out / "low_rank.safetensors").read_bytes()
        result = run("collaborate", bert_folder, "--rank", 8, "--out", out)
        assert result.exit_code == 1
        assert "is not empty" in result.stderr
        assert (out / "low_rank.safetensors").read_bytes() == before
        run_well("collaborate", bert_folder, "--rank", 8, "--out", out, "--overwrite")
        assert load_model(out).encoder.layer[0].attention.self.scores.rank == 8
        assert '"rank": 8' in run_well("export", out, "--format", "json").stdout

    @pytest.mark.parametrize("with_task", [False, True])
    def test_progress_is_that_of_the_whole_study(
        self,
        with_task: bool,
        classifier: Path,
        labelled: Path,
        out: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr("headroles.cli.console.SECONDS_BETWEEN_LINES", 0)
        task = ("--task", labelled) if with_task else ()
        shown = run("collaborate", classifier, "--rank", 16, *task, "--out", out)
        lines = re.findall(r"collaboration: (\d+) of (\d+) steps", shown.stderr)
        done, total = zip(*(map(int, line) for line in lines), strict=True)
        assert list(done) == sorted(done)
        assert done[-1] == total[-1]
        assert done[0] < total[0] / 4 < done[len(done) // 2]


class TestFolderInEveryCommand:
    def test_scores_roles_and_a_comparison_with_the_original(
        self, bert_folder: Path, treebank: Path, out: Path, tmp_path: Path
    ) -> None:
        """Its folder holds a table too, and is a model all the same."""
        folder = tmp_path / "model"
        run_well("collaborate", bert_folder, "--rank", 16, "--out", folder)
        run_well("classify", folder, treebank, "--no-beyond-offset", "--out", out)
        run_well("assign", out)
        assert record_in(out)["sources"]["scores"]["model"]["model"] == str(folder)
        both = ("--models", bert_folder, folder, "--corpus", treebank, "--no-beyond-offset")
        run_well("compare", *both, "--out", tmp_path / "compared")
        assert record_in(tmp_path / "compared")

    def test_loss_and_metrics(self, made: Path, classifier: Path, labelled: Path) -> None:
        task = record_in(made)["facts"]["task"]
        assert task["examples"] == 8
        assert set(task["before"]) == set(task["after"]) == {"loss", "accuracy", "f1", "matthews"}
        change = task["after"]["loss"] - task["before"]["loss"]
        assert task["loss_change"] == pytest.approx(change)
        assert task["ci_low"] < change < task["ci_high"]
        for folder, when in ((classifier, "before"), (made, "after")):
            out = run_well("ablate", folder, labelled, "--out", made.parent / when, "--json")
            assert json.loads(out.stdout)["facts"]["measured"] == pytest.approx(task[when])

    def test_pruning_equals_masking(self, made: Path, out: Path) -> None:
        run_well("prune", made, "--order", "top", "--keep", 7, "--out", out)
        removed = removed_heads(load_model(out).config)
        assert len(removed) == 5
        masked = load_model(made)
        zero_heads(masked, removed)
        with torch.no_grad():
            expected = masked(**make_inputs()).logits
        assert_same_outputs(logits(out), expected)
        assert {"low_rank.json", "low_rank.safetensors", "run.json"} <= names(out)


@pytest.mark.parametrize(
    ("rank", "method", "ranks"),
    [
        (32, "shared", [32, 24]),
        (32, "per-head", [32, 24]),
        (16, "shared", [16, 16]),
        (16, "per-head", [16, 12]),
    ],
)
def test_a_rank_is_that_of_whole_layers(
    pruned: Path, rank: int, method: str, ranks: list[int], out: Path
) -> None:
    """At full rank the model is the pruned one; layers without heads have no row."""
    arguments = ("--rank", rank, "--method", method, "--out", out, "--json")
    rows = json.loads(run_well("collaborate", pruned, *arguments).stdout)["rows"]
    assert [(row["layer"], row["rank"]) for row in rows] == list(enumerate(ranks))
    if rank == 32:
        assert max(row["divergence"] for row in rows) < tolerance()
        assert_same_outputs(logits(out), logits(pruned))


class TestRedundancy:
    def test_with_roles_it_is_saved(
        self, bert_folder: Path, treebank: Path, out: Path, tmp_path: Path
    ) -> None:
        classified = tmp_path / "classified"
        run_well("classify", bert_folder, treebank, "--no-beyond-offset", "--out", classified)
        arguments = ("--draws", 9, "--permutations", 99, "--roles-from", classified)
        run_well("redundancy", bert_folder, *arguments, "--out", out)
        assert names(out) == {"run.json", "redundancy.csv", "redundancy.parquet"}
        layers = run_well("export", out, "--view", "layers").stdout
        assert layers.startswith("layer,heads,head_size,width,head_90%")

    def test_roles_of_a_model_without_heads_are_refused(
        self, pruned: Path, treebank: Path, out: Path
    ) -> None:
        run_well("classify", pruned, treebank, "--no-beyond-offset", "--out", out)
        result = run("redundancy", pruned, "--roles-from", out)
        assert result.exit_code == 2
        assert "lacks 5 of its heads" in result.stderr
