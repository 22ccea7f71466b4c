"""Learnt gates: closed forms and draws, the heads that stay, and the models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AlbertForSequenceClassification

from headroles import Gating, gate_heads, load_model
from headroles.errors import ModelError, UsageError
from headroles.models.heads.remaining import removed_heads
from headroles.studies.pruning import gate
from headroles.studies.pruning.gate import GateOptions, learn_gates, p_nonzero
from headroles.tasks.options import TaskOptions
from headroles.tasks.running import TaskRun, open_run
from tests.conftest import changed, flat
from tests.rounding import near
from tests.studies.conftest import losses_of
from tests.tasks.conftest import HEADS, SENTENCES, make_task_model, save, write_labelled


def tensor(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize(
    ("log_alpha", "nonzero", "open_whole"),  # log alpha, P(gate != 0), P(gate = 1)
    [
        (-3.0, 0.098972, 0.022068),
        (-1.0, 0.448015, 0.142913),
        (0.0, 0.688112, 0.311888),
        (1.0, 0.857087, 0.551985),
        (3.0, 0.977932, 0.901028),
    ],
)
def test_closed_forms_by_hand_and_by_draws(
    log_alpha: float, nonzero: float, open_whole: float
) -> None:
    given, n = tensor(log_alpha), 200_000
    uniform = torch.rand(n, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    drawn = gate.draw_gates(given, uniform)
    for found, share, expected in (
        (gate.p_nonzero(given), drawn != 0, nonzero),
        (gate.p_one(given), drawn == 1, open_whole),
    ):
        assert found.item() == pytest.approx(expected, abs=5e-7)
        assert share.double().mean().item() == pytest.approx(expected, abs=4 * 0.5 / n**0.5)


def test_draws_by_hand_their_gradients_and_the_rule_at_the_end() -> None:
    found = gate.draw_gates(tensor(0), tensor(0.05, 0.3, 0.5, 0.9))
    assert found.tolist() == pytest.approx([0, 0, 0.5, 1], abs=5e-7)
    before = torch.sigmoid(torch.logit(tensor(0.3, 0.9)) / gate.TEMPERATURE)
    assert before.tolist() == pytest.approx([0.071255, 0.998718], abs=5e-7)
    given, uniform = tensor(-1.2, 0.3, 0.9).requires_grad_(), tensor(0.7, 0.5, 0.4)
    assert torch.autograd.gradcheck(lambda one: gate.draw_gates(one, uniform), given)
    assert gate.draw_gates(tensor(0.0), tensor(0.0, 1.0)).tolist() == [0, 1]  # and no infinity
    assert gate.is_open(tensor(-3, -1, 1, 3)).tolist() == [False, False, True, True]


@pytest.mark.parametrize("expected", [0.01, 1, 2.5, 3.99])
def test_as_many_open_gates_as_wanted(expected: float) -> None:
    given = tensor(-7, 0.2, 0.1, 12)
    shifted = given + gate.shift_to(given, expected)
    assert gate.p_nonzero(shifted).sum().item() == pytest.approx(expected, abs=1e-9)


def test_the_descent() -> None:
    found = gate.expected_open(12, GateOptions(keep=3, updates=30))
    assert len(found) == 30
    assert found[19:] == [3.0] * 11
    assert np.diff(found[:20]) == pytest.approx([(3 - 12 * 0.977932) / 20] * 19, abs=0.001)


def test_heads_that_matter_stay(tmp_path: Path, labelled: Path) -> None:
    """Only three heads contribute to answers."""
    own, made = {(0, 1), (1, 3), (2, 0)}, make_task_model()
    for layer, head in {*HEADS} - own:
        output = made.bert.encoder.layer[layer].attention.output.dense
        output.weight.data[:, head * 8 : head * 8 + 8] = 0
    model = save(made, tmp_path / "model")
    # Labels are what the model says, so that every head that changes it is a loss.
    said = open_run(model, labelled, TaskOptions()).outcomes_unmasked().predictions[:, 0]
    assert len(np.unique(said)) == 2
    rows = [(text, str(int(label))) for (text, _), label in zip(SENTENCES, said, strict=True)]
    opened = open_run(model, write_labelled(tmp_path / "task.tsv", rows), TaskOptions())
    found = learn_gates(opened, GateOptions(keep=3, updates=60), 0)
    assert set(found.kept) == own
    assert found.loss == near(opened.outcomes_unmasked().losses.mean())


def test_the_number_of_open_gates_is_reached(opened: TaskRun) -> None:
    for keep in (1, 11):
        options = GateOptions(keep=keep, updates=12)
        found = learn_gates(opened, options, 0)
        assert learn_gates(opened, options, 0) == found
        assert p_nonzero(torch.tensor(found.log_alpha)).sum().item() == near(keep)
        assert len(found.kept) == keep
        lowest = min(dict(zip(HEADS, found.log_alpha, strict=True))[head] for head in found.kept)
        assert sum(value >= lowest for value in found.log_alpha) == keep


def test_weights_stay_unless_they_are_trained(
    classifier: Path, labelled: Path, tmp_path: Path
) -> None:
    before = load_model(classifier).state_dict()
    name = "bert.encoder.layer.0.output.dense.weight"
    for weights, rate in (("frozen", GateOptions.weight_rate), ("trained", 0.01)):
        options = GateOptions(keep=6, seeds=2, updates=5, weights=weights, weight_rate=rate)
        result = gate_heads(classifier, labelled, tmp_path / weights, options=options)
        after = load_model(tmp_path / weights).state_dict()
        assert torch.equal(before[name], after[name]) == (weights == "frozen")
        # What was written has the loss that the seed that was chosen reached.
        assert losses_of(tmp_path / weights, labelled).mean() == near(result.seeds["loss"].min())
    # Every seed starts from the same weights.
    alone = replace(options, seeds=1, seed=1)
    second = gate_heads(classifier, labelled, tmp_path / "second", options=alone)
    of_second = result.frame.loc[result.frame["seed"] == 1, "log_alpha"].to_numpy()
    assert of_second == near(second.frame["log_alpha"].to_numpy())
    assert result.seeds["loss"][1] == near(second.seeds["loss"][0])


def test_a_folder_that_is_a_model(classifier: Path, labelled: Path, tmp_path: Path) -> None:
    out, again = tmp_path / "small", tmp_path / "smaller"
    gating = gate_heads(classifier, labelled, out, keep=5, seeds=3, updates=6, test=labelled)
    assert Gating.load(out) == gating
    facts, removed = gating.facts, removed_heads(load_model(out).config)
    by_seed = gating.frame[gating.frame["kept"]].groupby("seed")
    sets = [set(zip(own["layer"], own["head"], strict=True)) for _, own in by_seed]
    best = facts["chosen_seed"]
    assert gating.removed == removed == [head for head in HEADS if head not in sets[best]]
    assert facts["after"]["loss"] == near(gating.seeds["loss"][best])
    # Seeds agree on so many heads.
    shared = [len(sets[one] & sets[other]) / 5 for one, other in ((0, 1), (0, 2), (1, 2))]
    assert facts["overlap"] == pytest.approx(np.mean(shared))
    assert facts["overlap_by_chance"] == pytest.approx(5 / 12)
    for overlap, is_warned in ((0.5, True), (0.9, False)):
        shown = flat(changed(gating, facts={"overlap": overlap}))
        assert ("This set of heads is sufficient" in shown) == is_warned
    # Gates can be learnt of what is left.
    asked = {"keep": 2, "seeds": 1, "updates": 4, "test": labelled, "examples": 6}
    found = gate_heads(out, labelled, again, **asked)
    assert found.facts["measured_on"] == "8 examples of labelled.tsv"  # examples are of the task
    assert set(found.kept) < sets[best]
    assert len(removed_heads(load_model(again).config)) == 10
    assert Gating.load(again) == found


def test_models_whose_gates_cannot_be_learnt(tmp_path: Path, labelled: Path) -> None:
    model = make_task_model()
    model.classifier.bias.data.fill_(torch.nan)
    opened = open_run(save(model, tmp_path / "model"), labelled, TaskOptions())
    with pytest.raises(ModelError, match="not finite while gates are learnt; run the model"):
        learn_gates(opened, GateOptions(keep=2), 0)
    albert = make_task_model(AlbertForSequenceClassification, embedding_size=16)
    folder = save(albert, tmp_path / "albert")
    with pytest.raises(UsageError, match="layers of this model share one attention module"):
        gate_heads(folder, labelled, tmp_path / "out", keep=3)
