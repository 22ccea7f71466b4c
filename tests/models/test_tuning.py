"""Weights that are trained further, and which of them are a head's."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from torch import Tensor

from headroles.errors import ModelError
from headroles.models.heads.gates import HeadSites
from headroles.models.heads.surgery import heads_of, remove_heads
from headroles.models.heads.tuning import (
    TuningRecipe,
    n_updates_of,
    train_weights,
    weights_of_heads,
)
from tests.models.families import PROJECTED
from tests.models.test_surgery import A_LAYER, SOME, make_rich, of_family
from tests.tasks.conftest import make_task_model

IDS = torch.arange(8, 56).view(6, 8)
LABELS = torch.tensor([0, 1, 1, 0, 1, 0])
BATCHES = [
    (
        {"input_ids": IDS[rows : rows + 2], "attention_mask": torch.ones(2, 8, dtype=torch.long)},
        LABELS[rows : rows + 2],
    )
    for rows in (0, 2, 4)
]


def train(model: Any, recipe: TuningRecipe) -> int:
    """Train a model on all batches; return the number of updates."""
    calls = []

    def gradients_of(number: int, weights: Sequence[Tensor]) -> tuple[Tensor, Sequence[Tensor]]:
        inputs, targets = BATCHES[number]
        calls.append(number)
        loss = loss_of(model(**inputs).logits, targets)
        return loss.detach(), torch.autograd.grad(loss, weights)

    train_weights(model, len(BATCHES), gradients_of, recipe)
    return len(calls)


def loss_of(logits: Tensor, targets: Tensor) -> Tensor:
    return torch.nn.functional.cross_entropy(logits, targets)


def trained(recipe: TuningRecipe, **config: float) -> dict[str, Tensor]:
    model = make_task_model(**config)
    train(model, recipe)
    assert not model.training
    return model.state_dict()


def test_the_loss_falls_and_updates_are_counted() -> None:
    model = make_task_model()
    before = loss_of(model(input_ids=IDS).logits, LABELS)
    recipe = TuningRecipe(epochs=2.5, learning_rate=5e-3, seed=0)
    n_updates = train(model, recipe)
    assert loss_of(model(input_ids=IDS).logits, LABELS) < 0.7 * before
    assert n_updates == n_updates_of(recipe, len(BATCHES)) == 8


def test_one_update_is_one_of_adamw() -> None:
    recipe = TuningRecipe(epochs=1, learning_rate=1e-3, seed=0)
    plain = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    model = make_task_model(**plain)
    with mock.patch(f"{__name__}.BATCHES", BATCHES[:1]):
        train(model, recipe)
    expected = make_task_model(**plain)
    adam = torch.optim.AdamW(expected.parameters(), lr=1e-3, eps=1e-8, weight_decay=0)
    loss_of(expected(**BATCHES[0][0]).logits, LABELS[:2]).backward()
    torch.nn.utils.clip_grad_norm_(expected.parameters(), 1.0)
    adam.step()
    # The first update moves a weight by the learning rate at most, whatever its gradient: a
    # thousandth of that is more than rounding adds, and less than any other update would do.
    for name, weights in expected.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], weights, rtol=0, atol=1e-3 / 1000)


def test_a_seed_gives_the_same_weights_and_leaves_others_their_random_numbers() -> None:
    random.seed(5), np.random.seed(5), torch.manual_seed(5)  # noqa: NPY002
    expected = random.random(), np.random.random(), float(torch.rand(()))  # noqa: NPY002
    recipe = TuningRecipe(epochs=2, learning_rate=1e-3, seed=4)
    first = trained(recipe)
    random.seed(5), np.random.seed(5)  # noqa: NPY002
    model = make_task_model()  # sets a seed of its own
    torch.manual_seed(5)
    train(model, recipe)
    assert (random.random(), np.random.random(), float(torch.rand(()))) == expected  # noqa: NPY002
    assert all(torch.equal(first[name], own) for name, own in model.state_dict().items())
    other = trained(TuningRecipe(epochs=2, learning_rate=1e-3, seed=5))
    assert not torch.equal(other["classifier.weight"], first["classifier.weight"])


def test_weights_that_are_not_finite() -> None:
    with pytest.raises(ModelError, match=r"not finite after fine-tuning; lower .* \(1e\+30\)"):
        trained(TuningRecipe(epochs=3, learning_rate=1e30, seed=0))


@pytest.mark.parametrize("kind", PROJECTED)
def test_heads_that_stay_keep_their_weights(kind: str) -> None:
    model = make_rich(kind)
    removed = of_family(kind, SOME + A_LAYER)
    before = weights_of_heads(HeadSites.from_model(model))
    assert list(before) == heads_of(model)
    remove_heads(model, removed)
    after = weights_of_heads(HeadSites.from_model(model))
    assert list(after) == heads_of(model)
    assert all(torch.equal(before[head], own) for head, own in after.items())


def test_weights_of_a_head_are_all_that_is_its_own() -> None:
    model = make_task_model()
    before = weights_of_heads(HeadSites.from_model(model))
    assert {len(own) for own in before.values()} == {4 * 8 * 32}
    own = model.bert.encoder.layer[1].attention
    with torch.no_grad():
        for linear in (own.self.query, own.self.key, own.self.value):
            linear.weight[16:24] += 1
        own.output.dense.weight[:, 16:24] += 1
    after = weights_of_heads(HeadSites.from_model(model))
    changed = {head for head, own in after.items() if not torch.equal(own, before[head])}
    assert changed == {(1, 2)}
    assert after[1, 2] == pytest.approx(before[1, 2] + 1)
