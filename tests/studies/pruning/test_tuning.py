"""Models that are fine-tuned with heads masked, before the heads are removed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from headroles import load_model, prune_heads
from headroles.errors import ModelError
from headroles.models.heads.gates import weights_of_heads
from headroles.models.heads.surgery import heads_of
from headroles.studies.pruning.prune import (
    PruneOptions,
    Pruning,
    find_compensation,
    fine_tune,
    train_weights,
    write_without,
)
from headroles.studies.removals import without
from headroles.tasks.running import TaskRun, open_run
from tests.commands import record_in, run
from tests.rounding import near
from tests.studies.conftest import losses_of
from tests.tasks.conftest import make_task_model, save

GONE = [(0, 1), (0, 2), (2, 3), *[(1, head) for head in range(4)]]
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def options(file: Path | str, **asked: object) -> PruneOptions:
    settings = {"keep": 5, "fine_tune_on": file, "epochs": 2, "learning_rate": 1e-3} | asked
    return PruneOptions(**settings)


def masked_losses(opened: TaskRun) -> np.ndarray:
    return opened.outcomes(without(GONE, opened.shape)[None]).losses


def test_what_was_fine_tuned_is_what_is_written(
    opened: TaskRun, labelled: Path, tmp_path: Path
) -> None:
    asked = options(labelled, update_examples=3)
    before, own = masked_losses(opened), weights_of_heads(opened.sites)
    found = fine_tune(opened, None, GONE, asked)
    assert [found[name] for name in ("examples", "updates", "update_examples")] == [8, 6, 3]
    masked = masked_losses(opened)
    assert masked.mean() < before.mean()
    # Nothing reaches what is masked.
    after = weights_of_heads(opened.sites)
    assert {head for head in own if torch.equal(own[head], after[head])} == set(GONE)
    for zeroed in (True, False):
        out = tmp_path / str(zeroed)
        write_without(Pruning, opened.encoder, GONE, out, asked, zeroed=zeroed, order="own")
        assert losses_of(out, labelled) == near(masked)


def test_masked_is_as_without_the_heads(labelled: Path, tmp_path: Path) -> None:
    """Fine-tuning what is left, after the heads are gone, comes to the same."""
    model = save(make_task_model(**NO_DROPOUT), tmp_path / "model")
    losses = []
    for first in (GONE, []):
        folder, asked = tmp_path / f"{len(first)} gone first", options(labelled)
        opened = open_run(model, labelled, asked)
        write_without(Pruning, opened.encoder, first, folder, asked, order="")
        opened = open_run(folder, labelled, asked)
        rest = [head for head in heads_of(opened.encoder.model) if head in GONE]
        fine_tune(opened, None, rest, asked)
        losses.append(masked_losses(opened))
    assert losses[0] == near(losses[1])


@pytest.mark.parametrize(("model", "task"), [("masked_lm", "plain"), ("regressor", "numbered")])
def test_other_objectives(
    model: str, task: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    file = request.getfixturevalue(task)
    asked = options(file, order="top", keep=8)
    found = prune_heads(request.getfixturevalue(model), tmp_path / "out", asked, test=file)
    assert found.facts["after"]["loss"] < found.facts["fine_tuning"]["masked"]["loss"]


# The updates.

IDS, LABELS = torch.arange(8, 56).view(6, 8), torch.tensor([0, 1, 1, 0, 1, 0])


def loss_of(model: Any, rows: slice = slice(None)) -> Tensor:
    return cross_entropy(model(input_ids=IDS[rows]).logits, LABELS[rows])


def train(model: Any, n_groups: int = 3, **asked: object) -> int:
    """Train a model on groups of two examples; return the number of updates."""
    numbers = []

    def gradients_of(number: int, weights: Sequence[Tensor]) -> Sequence[Tensor]:
        numbers.append(number)
        return torch.autograd.grad(loss_of(model, slice(2 * number, 2 * number + 2)), weights)

    train_weights(model, n_groups, gradients_of, options("unread", **asked))
    assert not model.training
    return len(numbers)


def test_the_loss_falls_and_updates_are_counted() -> None:
    model = make_task_model()
    before = loss_of(model)
    assert train(model, epochs=2.5, learning_rate=5e-3) == 8
    assert loss_of(model) < 0.7 * before


def test_one_update_is_one_of_adamw() -> None:
    model, expected = make_task_model(**NO_DROPOUT), make_task_model(**NO_DROPOUT)
    train(model, n_groups=1, epochs=1)
    adam = torch.optim.AdamW(expected.parameters(), lr=1e-3, eps=1e-8, weight_decay=0)
    loss_of(expected, slice(2)).backward()
    torch.nn.utils.clip_grad_norm_(expected.parameters(), 1.0)
    adam.step()
    # The first update moves a weight by the learning rate at most: a thousandth of that is
    # more than rounding adds, and less than any other update would do.
    for name, weights in expected.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], weights, rtol=0, atol=1e-6)


def test_a_seed_gives_the_same_weights_and_leaves_others_their_random_numbers() -> None:
    def numbers() -> tuple[float, ...]:
        return random.random(), np.random.random(), float(torch.rand(()))  # noqa: NPY002

    random.seed(5), np.random.seed(5), torch.manual_seed(5)  # noqa: NPY002
    expected, found = numbers(), []
    for seed in (4, 4, 5):
        model = make_task_model()  # sets a seed of its own
        random.seed(5), np.random.seed(5), torch.manual_seed(5)  # noqa: NPY002
        train(model, seed=seed)
        assert numbers() == expected
        found.append(model.state_dict())
    assert all(torch.equal(found[0][name], own) for name, own in found[1].items())
    assert not torch.equal(found[2]["classifier.weight"], found[0]["classifier.weight"])


def test_weights_that_are_not_finite() -> None:
    def gradients_of(number: int, weights: Sequence[Tensor]) -> list[Tensor]:
        return [torch.full_like(values, torch.inf) for values in weights]

    with pytest.raises(ModelError, match=r"not finite after fine-tuning; lower .* \(0\.001\)"):
        train_weights(make_task_model(), 2, gradients_of, options("unread"))


# Heads that make up for others.


def test_nothing_gone_is_nothing_to_make_up_for(
    classifier: Path, labelled: Path, tmp_path: Path
) -> None:
    asked = options(labelled, keep=12, order="top", compensation=True)
    pruned = prune_heads(classifier, tmp_path / "out", asked, test=labelled)
    found, frame = pruned.facts["fine_tuning"], pruned.compensation
    assert len(frame) == 12
    assert (frame[["weight_change", "importance_change", "excess_change"]] == 0).all(axis=None)
    assert (frame["answer"] == "undecided").all()
    assert found["whole"] == pruned.facts["after"] != pruned.facts["before"] == found["masked"]


@pytest.mark.parametrize("scale", [1, 1e-6])
def test_compensation_by_hand(scale: float) -> None:
    heads = [(0, 0), (0, 1), (1, 0), (1, 1)]
    rng = np.random.default_rng(0)
    own = {head: torch.tensor([3.0, 4.0]) for head in heads}
    before = rng.random((40, 2, 2))
    rises = np.array([[9.0, 2.0], [2.0, 5.0]])  # the first is of a head that is gone
    before *= scale  # derivatives of a model that has learnt its examples well are small
    others = before + scale * (rises + rng.normal(scale=0.1, size=(40, 2, 2)))
    after = own | {(1, 1): torch.tensor([3.0, 6.0])}, others
    frame = find_compensation((own, before), after, [(0, 0)])
    assert list(zip(frame["layer"], frame["head"], strict=True)) == heads[1:]
    assert frame["weight_change"].tolist() == pytest.approx([0, 0, 2 / 5])
    assert frame["importance"].to_numpy() == pytest.approx(before.mean(0).ravel()[1:])
    changes, excess = (frame[name] / scale for name in ("importance_change", "excess_change"))
    assert changes.to_numpy() == pytest.approx([2, 2, 5], abs=0.1)
    assert excess.to_numpy() == pytest.approx([-1, -1, 2], abs=0.1)
    assert frame["answer"].tolist() == ["less", "less", "more"]


def test_the_command_and_the_model_that_it_writes(
    classifier: Path, labelled: Path, tmp_path: Path
) -> None:
    """Compensation is measured beside the model, and does not change what is written."""
    tuned = ("--fine-tune-on", labelled, "--epochs", 1, "--fine-tune-examples", 6)
    asked = ("--order", "random", "--keep", 7, "--test", labelled, *tuned, "--full")
    for out, given in (("without", []), ("with", ["--compensation"])):
        result = run("prune", classifier, *asked, *given, "--out", tmp_path / out)
        assert result.exit_code == 0, result.output
    assert "Fine-tuned on 6 examples with the heads masked, 1 updates of 32" in result.stdout
    for row in ("before, fine-tuned", "after, not fine-tuned", "heads differ by"):
        assert row in result.stdout
    one, other = (load_model(tmp_path / out).state_dict() for out in ("with", "without"))
    assert all(torch.equal(one[name], own) for name, own in other.items())
    notes = record_in(tmp_path / "with")
    assert notes["options"]["epochs"] == 1
    facts = notes["facts"]
    assert len(facts["fine_tuning"]["compensation"]) == 7
    assert facts["after"] != facts["fine_tuning"]["masked"] != facts["before"]
