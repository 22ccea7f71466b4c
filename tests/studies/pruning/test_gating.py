"""Learnt gates: the expected number of open gates, the heads that stay, and the models."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from msgspec import structs
from transformers import AlbertForSequenceClassification

from headroles import Gating, gate_heads, load_model
from headroles.errors import ModelError, UsageError
from headroles.models.heads.remaining import removed_heads
from headroles.studies.pruning.gate import GateOptions, expected_open, learn_gates, p_nonzero
from headroles.tasks.options import TaskOptions
from headroles.tasks.running import open_run
from tests.commands import run
from tests.rounding import near
from tests.tasks.conftest import HEADS, SENTENCES, make_task_model, save, write_labelled


def test_the_descent() -> None:
    found = expected_open(12, GateOptions(keep=3, updates=30))
    assert len(found) == 30
    assert found[19:] == [3.0] * 11
    assert np.diff(found[:20]) == pytest.approx([(3 - 12 * 0.977932) / 20] * 19, abs=0.001)


def make_matters_of(heads: list[tuple[int, int]], folder: Path) -> Path:
    """A classifier to whose answers only these heads of 3 x 4 contribute."""
    made = make_task_model()
    with torch.no_grad():
        for number, layer in enumerate(made.bert.encoder.layer):
            for head in range(4):
                if (number, head) not in heads:
                    layer.attention.output.dense.weight[:, head * 8 : head * 8 + 8] = 0
    return save(made, folder)


def test_heads_that_matter_stay(tmp_path: Path, labelled: Path) -> None:
    own = {(0, 1), (1, 3), (2, 0)}
    model = make_matters_of(sorted(own), tmp_path / "model")
    # Labels are what the model says, so that every head that changes it is a loss.
    opened = open_run(model, labelled, TaskOptions())
    said = opened.outcomes(torch.ones(1, 3, 4)).predictions[:, 0]
    assert len(np.unique(said)) == 2
    rows = [(text, str(int(label))) for (text, _), label in zip(SENTENCES, said, strict=True)]
    opened = open_run(model, write_labelled(tmp_path / "task.tsv", rows), TaskOptions())
    found = learn_gates(opened, GateOptions(keep=3, updates=60), 0)
    assert set(found.kept) == own
    whole = opened.outcomes(torch.ones(1, 3, 4)).losses.mean()
    assert found.loss == near(whole)


def test_the_number_of_open_gates_is_reached(classifier: Path, labelled: Path) -> None:
    opened = open_run(classifier, labelled, TaskOptions())
    for keep in (1, 11):
        options = GateOptions(keep=keep, updates=12)
        found = learn_gates(opened, options, 0)
        assert learn_gates(opened, options, 0) == found
        expected = p_nonzero(torch.tensor(found.log_alpha)).sum().item()
        assert expected == near(keep)
        assert len(found.kept) == keep
        lowest = min(dict(zip(HEADS, found.log_alpha, strict=True))[head] for head in found.kept)
        assert sum(value >= lowest for value in found.log_alpha) == keep


def test_weights_stay_unless_they_are_trained(
    classifier: Path, labelled: Path, tmp_path: Path
) -> None:
    before = load_model(classifier).state_dict()
    changed = {}
    for weights in ("frozen", "trained"):
        rate = 0.01 if weights == "trained" else GateOptions.weight_rate
        options = GateOptions(keep=6, seeds=2, updates=5, weights=weights, weight_rate=rate)
        result = gate_heads(classifier, labelled, tmp_path / weights, options)
        after = load_model(tmp_path / weights).state_dict()
        name = "bert.encoder.layer.0.output.dense.weight"
        changed[weights] = not torch.equal(before[name], after[name])
        # What was written has the loss that the seed that was chosen reached.
        written = open_run(tmp_path / weights, labelled, TaskOptions())
        loss = written.outcomes(torch.ones(1, 3, 4)).losses.mean()
        assert loss == near(result.seeds["loss"].min())
    assert changed == {"frozen": False, "trained": True}


def test_every_seed_starts_from_the_same_weights(
    classifier: Path, labelled: Path, tmp_path: Path
) -> None:
    options = {"keep": 6, "updates": 4, "weights": "trained", "weight_rate": 0.01}
    both = gate_heads(classifier, labelled, tmp_path / "both", seeds=2, **options)
    second = gate_heads(classifier, labelled, tmp_path / "one", seeds=1, seed=1, **options)
    of_second = both.frame.loc[both.frame["seed"] == 1, "log_alpha"].to_numpy()
    assert of_second == near(second.frame["log_alpha"].to_numpy())
    assert both.seeds["loss"][1] == near(second.seeds["loss"][0])


@pytest.mark.parametrize(("model", "task"), [("masked_lm", "plain"), ("regressor", "numbered")])
def test_other_objectives(
    model: str, task: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    folder, file = request.getfixturevalue(model), request.getfixturevalue(task)
    found = gate_heads(folder, file, tmp_path / "out", test=file, keep=4, seeds=1, updates=4)
    assert found.facts["after"]["loss"] == near(found.seeds["loss"][0])
    assert found.facts["after"]["loss"] != found.facts["before"]["loss"]


class TestCommand:
    def test_a_folder_that_is_a_model(
        self, classifier: Path, labelled: Path, tmp_path: Path
    ) -> None:
        out = tmp_path / "small"
        arguments = ("--keep", 5, "--seeds", 3, "--updates", 6, "--test", labelled, "--json")
        result = run("gate", classifier, labelled, *arguments, "--out", out)
        assert result.exit_code == 0, result.output
        printed = json.loads(result.stdout)
        facts = printed["facts"]
        assert [list(head) for head in removed_heads(load_model(out).config)] == facts["removed"]
        best = next(one for one in facts["seeds"] if one["seed"] == facts["chosen_seed"])
        kept = [row for row in printed["rows"] if row["kept"] and row["seed"] == best["seed"]]
        assert len(kept) == 5
        assert not [row for row in kept if [row["layer"], row["head"]] in facts["removed"]]
        assert facts["after"]["loss"] == near(best["loss"])
        assert Gating.load(out).agreement["seeds"].sum() == 15
        assert facts["overlap_by_chance"] == pytest.approx(5 / 12)
        # Gates can be learnt of what is left.
        again = tmp_path / "smaller"
        found = gate_heads(out, labelled, again, keep=2, seeds=1, updates=4)
        assert set(found.kept) < {(row["layer"], row["head"]) for row in kept}
        assert len(removed_heads(load_model(again).config)) == 10

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ([], "give the number of heads to keep: --keep"),
            (["--keep", 12], "12 heads are to be kept, and the model has 12; keep fewer"),
            (["--keep", 0], "--keep is 0; it must be a whole number from 1"),
            (["--keep", 3, "--weights", "light"], "is 'light'; it must be one of"),
        ],
    )
    def test_what_cannot_be_meant(
        self,
        arguments: list[object],
        message: str,
        classifier: Path,
        labelled: Path,
        tmp_path: Path,
    ) -> None:
        result = run("gate", classifier, labelled, *arguments, "--out", tmp_path / "out")
        assert result.exit_code == 2
        assert message in " ".join(result.stderr.split())
        assert not (tmp_path / "out").exists()


def test_losses_that_are_not_finite(tmp_path: Path, labelled: Path) -> None:
    model = make_task_model()
    with torch.no_grad():
        model.classifier.bias.fill_(torch.nan)
    opened = open_run(save(model, tmp_path / "model"), labelled, TaskOptions())
    with pytest.raises(ModelError, match="not finite while gates are learnt; lower"):
        learn_gates(opened, GateOptions(keep=2), 0)


def test_layers_that_share_a_module(tmp_path: Path, labelled: Path) -> None:
    albert = make_task_model(AlbertForSequenceClassification, embedding_size=16)
    model = save(albert, tmp_path / "albert")
    with pytest.raises(UsageError, match="layers of this model share one attention module"):
        gate_heads(model, labelled, tmp_path / "out", keep=3)


def test_how_much_seeds_agree(classifier: Path, labelled: Path, tmp_path: Path) -> None:
    found = gate_heads(classifier, labelled, tmp_path / "out", keep=2, seeds=3, updates=3)
    kept = found.frame[found.frame["kept"]].groupby("seed")
    sets = [set(zip(own["layer"], own["head"], strict=True)) for _, own in kept]
    shared = [len(sets[one] & sets[other]) / 2 for one, other in ((0, 1), (0, 2), (1, 2))]
    assert found.facts["overlap"] == pytest.approx(np.mean(shared))
    assert found.facts["overlap_by_chance"] == pytest.approx(2 / 12)
    facts = found.record.facts | {"overlap": 1 / 3}
    apart = replace(found, record=structs.replace(found.record, facts=facts))
    assert any("This set of heads is sufficient" in warning for warning in apart.warnings)
    assert Gating.load(tmp_path / "out") == found
