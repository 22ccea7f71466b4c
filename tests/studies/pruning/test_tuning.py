"""Models that are fine-tuned with heads masked, before the heads are removed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from headroles import load_model, prune_heads
from headroles.errors import UsageError
from headroles.models.heads.surgery import heads_of
from headroles.models.heads.tuning import weights_of_heads
from headroles.studies.pruning.prune import (
    HeadState,
    PruneOptions,
    Pruning,
    find_compensation,
    fine_tune,
    write_without,
)
from headroles.studies.removals import without
from headroles.tasks.options import TaskOptions
from headroles.tasks.running import open_run
from tests.commands import record_in, run
from tests.rounding import near
from tests.tasks.conftest import make_task_model, save

GONE = [(0, 1), (0, 2), (2, 3), *[(1, head) for head in range(4)]]
ALL = torch.ones(1, 3, 4)


def options(file: Path, **asked: object) -> PruneOptions:
    settings = {"keep": 5, "fine_tune_on": file, "epochs": 2, "learning_rate": 1e-3} | asked
    return PruneOptions(**settings)


def test_what_was_fine_tuned_is_what_is_written(
    classifier: Path, labelled: Path, tmp_path: Path
) -> None:
    asked = options(labelled, update_examples=3)
    opened = open_run(classifier, labelled, asked)
    before = opened.outcomes(without(GONE, opened.shape)[None]).losses
    own = weights_of_heads(opened.sites)
    found = fine_tune(opened, None, GONE, asked)
    assert [found[name] for name in ("examples", "updates", "update_examples")] == [8, 6, 3]
    masked = opened.outcomes(without(GONE, opened.shape)[None]).losses
    assert masked.mean() < before.mean()
    # Nothing reaches what is masked.
    after = weights_of_heads(opened.sites)
    assert {head for head in own if torch.equal(own[head], after[head])} == set(GONE)
    for zeroed in (True, False):
        out = tmp_path / str(zeroed)
        write_without(Pruning, opened.encoder, GONE, out, asked, zeroed=zeroed, order="own")
        assert open_run(out, labelled, TaskOptions()).outcomes(ALL).losses == near(masked)


def test_masked_is_as_without_the_heads(labelled: Path, tmp_path: Path) -> None:
    """Fine-tuning what is left, after the heads are gone, comes to the same."""
    plain = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    model = save(make_task_model(**plain), tmp_path / "model")
    losses = []
    for first in (GONE, []):
        folder, asked = tmp_path / f"{len(first)} gone first", options(labelled)
        opened = open_run(model, labelled, asked)
        write_without(Pruning, opened.encoder, first, folder, asked, order="")
        opened = open_run(folder, labelled, asked)
        rest = [head for head in heads_of(opened.encoder.model) if head in GONE]
        fine_tune(opened, None, rest, asked)
        losses.append(opened.outcomes(without(GONE, opened.shape)[None]).losses)
    assert losses[0] == near(losses[1])


@pytest.mark.parametrize(("model", "task"), [("masked_lm", "plain"), ("regressor", "numbered")])
def test_other_objectives(
    model: str, task: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    file = request.getfixturevalue(task)
    asked = options(file, order="top", keep=8)
    found = prune_heads(request.getfixturevalue(model), tmp_path / "out", asked, test=file)
    assert found.facts["after"]["loss"] < found.facts["fine_tuning"]["masked"]["loss"]


class TestCompensation:
    def test_nothing_gone_is_nothing_to_make_up_for(
        self, classifier: Path, labelled: Path, tmp_path: Path
    ) -> None:
        asked = options(labelled, keep=12, order="top", compensation=True)
        pruned = prune_heads(classifier, tmp_path / "out", asked, test=labelled)
        found, frame = pruned.facts["fine_tuning"], pruned.compensation
        assert len(frame) == 12
        assert (frame[["weight_change", "importance_change", "excess_change"]] == 0).all(axis=None)
        assert (frame["answer"] == "undecided").all()
        assert found["whole"] == pruned.facts["after"] != pruned.facts["before"] == found["masked"]

    def test_the_model_that_is_written_is_that_without_it(
        self, classifier: Path, labelled: Path, tmp_path: Path
    ) -> None:
        for compensation in (False, True):
            asked = options(labelled, order="top", compensation=compensation, epochs=1)
            prune_heads(classifier, tmp_path / str(compensation), asked)
        one, other = (load_model(tmp_path / name).state_dict() for name in ("False", "True"))
        assert all(torch.equal(one[name], own) for name, own in other.items())

    @pytest.mark.parametrize("scale", [1, 1e-6])
    def test_by_hand(self, scale: float) -> None:
        heads = [(0, 0), (0, 1), (1, 0), (1, 1)]
        rng = np.random.default_rng(0)
        own = {head: torch.tensor([3.0, 4.0]) for head in heads}
        before = rng.random((40, 2, 2))
        rises = np.array([[9.0, 2.0], [2.0, 5.0]])  # the first is of a head that is gone
        before *= scale  # derivatives of a model that has learnt its examples well are small
        whole = HeadState(own, before)
        after = HeadState(
            own | {(1, 1): torch.tensor([3.0, 6.0])},
            before + scale * (rises + rng.normal(scale=0.1, size=(40, 2, 2))),
        )
        frame = find_compensation(whole, after, [(0, 0)])
        assert list(zip(frame["layer"], frame["head"], strict=True)) == heads[1:]
        assert frame["weight_change"].tolist() == pytest.approx([0, 0, 2 / 5])
        assert frame["importance"].to_numpy() == pytest.approx(before.mean(0).ravel()[1:])
        changes, excess = (frame[name] / scale for name in ("importance_change", "excess_change"))
        assert changes.to_numpy() == pytest.approx([2, 2, 5], abs=0.1)
        assert excess.to_numpy() == pytest.approx([-1, -1, 2], abs=0.1)
        assert frame["answer"].tolist() == ["less", "less", "more"]


class TestCommand:
    def test_summary_and_record(self, classifier: Path, labelled: Path, tmp_path: Path) -> None:
        tuned = ("--fine-tune-on", labelled, "--epochs", 1, "--fine-tune-examples", 6)
        asked = ("--order", "random", "--keep", 7, "--test", labelled, "--compensation")
        result = run("prune", classifier, *asked, *tuned, "--full", "--out", tmp_path / "out")
        assert result.exit_code == 0, result.output
        assert "Fine-tuned on 6 examples with the heads masked, 1 updates of 32" in result.stdout
        for row in ("before, fine-tuned", "after, not fine-tuned", "heads differ by"):
            assert row in result.stdout
        notes = record_in(tmp_path / "out")
        assert len(notes["facts"]["fine_tuning"]["compensation"]) == 7
        assert notes["options"]["epochs"] == 1
        facts = notes["facts"]
        assert facts["after"] != facts["fine_tuning"]["masked"] != facts["before"]

    def test_what_cannot_be_meant(self, classifier: Path, tmp_path: Path, labelled: Path) -> None:
        with pytest.raises(UsageError, match="name examples with fine_tune_on"):
            PruneOptions(keep=3, compensation=True)
        with pytest.raises(UsageError, match="learning_rate is 0; it must be a number above"):
            options(labelled, learning_rate=0)
        asked = options(labelled, keep=0, order="top", compensation=True)
        with pytest.raises(UsageError, match="all heads are removed, and none could compensate"):
            prune_heads(classifier, tmp_path / "out", asked)
        asked = ("--order", "top", "--keep", 3, "--fine-tune-on", tmp_path / "none.tsv")
        result = run("prune", classifier, *asked, "--out", tmp_path / "out")
        assert result.exit_code == 1
        assert "there is no file" in result.stderr
