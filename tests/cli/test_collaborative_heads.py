"""What can be done to the heads of a collaborative model, and to those of a pruned one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from headroles import load_model
from headroles.models.heads.surgery import removed_from, zero_heads
from tests.commands import names, run, run_well
from tests.models.test_attention import make_inputs
from tests.rounding import assert_same_outputs, tolerance
from tests.tasks.conftest import classifier, labelled

__all__ = ["classifier", "labelled"]
ASKED = ("--rank", 16, "--sample-examples", 40)


@pytest.fixture(scope="module")
def made(classifier: Path, labelled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collaborative classifier, measured on its task."""
    folder = tmp_path_factory.mktemp("task") / "model"
    run_well("collaborate", classifier, *ASKED, "--task", labelled, "--out", folder)
    return folder


@pytest.fixture(scope="module")
def pruned(classifier: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier whose last layer has no head left, and the one before it some."""
    folder = tmp_path_factory.mktemp("task") / "pruned"
    run_well("prune", classifier, "--order", "top", "--keep", 7, "--out", folder)
    return folder


def logits(folder: Path) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = load_model(folder)(**make_inputs()).logits
    return found


class TestTask:
    def test_loss_and_metrics(self, made: Path, classifier: Path, labelled: Path) -> None:
        task = json.loads((made / "run.json").read_text())["collaboration"]["task"]
        assert task["examples"] == 8
        assert set(task["before"]) == set(task["after"]) == {"loss", "accuracy", "f1", "matthews"}
        change = task["after"]["loss"] - task["before"]["loss"]
        assert task["loss_change"] == pytest.approx(change)
        assert task["ci_low"] < change < task["ci_high"]
        for folder, when in ((classifier, "before"), (made, "after")):
            out = run_well("ablate", folder, labelled, "--out", made.parent / when, "--json")
            assert json.loads(out.stdout)["facts"]["measured"] == pytest.approx(task[when])


class TestHeadsOfACollaborativeModel:
    def test_pruning_equals_masking(self, made: Path, tmp_path: Path) -> None:
        out = tmp_path / "out"
        facts = json.loads(
            run_well("prune", made, "--order", "top", "--keep", 7, "--out", out, "--json").stdout
        )
        assert facts["parameters"]["after"] < facts["parameters"]["before"]
        masked = load_model(made)
        zero_heads(masked, [(layer, head) for layer, head in facts["removed"]])
        with torch.no_grad():
            expected = masked(**make_inputs()).logits
        assert_same_outputs(logits(out), expected)
        assert {"low_rank.json", "low_rank.safetensors", "run.json"} <= names(out)
        assert len(removed_from(load_model(out))) == 5

    def test_again_it_can_be_pruned_and_measured(
        self, made: Path, labelled: Path, tmp_path: Path
    ) -> None:
        first, second = tmp_path / "first", tmp_path / "second"
        asked = ("--order", "importance", "--test", labelled)
        run_well("prune", made, labelled, *asked, "--keep", 8, "--out", first)
        shown = run_well("prune", first, labelled, *asked, "--keep", 4, "--out", second).stdout
        assert "4 of 8 heads removed" in shown
        assert "accuracy" in shown

    def test_importance_ablation_and_gates(
        self, made: Path, labelled: Path, tmp_path: Path
    ) -> None:
        run_well("importance", made, labelled, "--out", tmp_path / "importance")
        uniform = ("--ablation", "uniform", "--out", tmp_path / "uniform")
        run_well("ablate", made, labelled, *uniform)
        gates = ("--keep", 6, "--updates", 3, "--seeds", 1, "--out", tmp_path / "gated")
        run_well("gate", made, labelled, *gates)
        assert len(removed_from(load_model(tmp_path / "gated"))) == 6

    def test_without_heads_it_is_scored_and_compared(
        self, made: Path, classifier: Path, treebank: Path, tmp_path: Path
    ) -> None:
        out = tmp_path / "pruned"
        run_well("prune", made, "--order", "random", "--keep", 9, "--out", out)
        plain = ("--no-beyond-offset", "--out")
        norms = ("--measure", "norms")
        run_well("classify", out, treebank, *norms, *plain, tmp_path / "classified")
        models = ("--models", classifier, out, "--corpus", treebank)
        run_well("compare", *models, *plain, tmp_path / "compared")


class TestHeadsOfAPrunedModel:
    @pytest.mark.parametrize("method", ["shared", "per-head"])
    def test_full_rank_is_the_pruned_model(self, pruned: Path, method: str, tmp_path: Path) -> None:
        arguments = ("--rank", 32, "--method", method, "--out", tmp_path / "out", "--json")
        facts = json.loads(run_well("collaborate", pruned, *arguments).stdout)
        assert [(one["layer"], one["rank"]) for one in facts["layers"]] == [(0, 32), (1, 24)]
        assert max(one["divergence"] for one in facts["layers"]) < tolerance()
        assert_same_outputs(logits(tmp_path / "out"), logits(pruned))

    @pytest.mark.parametrize(("method", "ranks"), [("shared", [16, 16]), ("per-head", [16, 12])])
    def test_a_rank_is_that_of_whole_layers(
        self, pruned: Path, method: str, ranks: list[int], tmp_path: Path
    ) -> None:
        arguments = ("--rank", 16, "--method", method, "--out", tmp_path / "out", "--json")
        facts = json.loads(run_well("collaborate", pruned, *arguments).stdout)
        assert [one["rank"] for one in facts["layers"]] == ranks

    def test_report_calls_heads_by_their_numbers(self, pruned: Path, tmp_path: Path) -> None:
        run_well("collaborate", pruned, "--report", "--draws", 9, "--out", tmp_path / "out")
        rows = run_well("export", tmp_path / "out").stdout.splitlines()[1:]
        found = {tuple(map(int, row.split(",")[:3])) for row in rows}
        kept = sorted({head for row in found if row[0] == 1 for head in row[1:]})
        gone = {head for layer, head in removed_from(load_model(pruned)) if layer == 1}
        assert set(kept) == set(range(4)) - gone
        assert len(found) == 6 + 3

    def test_roles_of_a_model_without_heads_are_refused(
        self, pruned: Path, treebank: Path, tmp_path: Path
    ) -> None:
        out = tmp_path / "classified"
        run_well("classify", pruned, treebank, "--no-beyond-offset", "--out", out)
        result = run("collaborate", pruned, "--report", "--roles-from", out)
        assert result.exit_code == 2
        assert "lacks 5 of its heads" in result.stderr
