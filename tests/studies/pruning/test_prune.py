"""Orders by hand, models pruned by the command, and models fine-tuned with heads masked."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import AlbertForSequenceClassification

from headroles import ablate_heads, find_pruning_curves, gate_heads, load_model, prune_heads
from headroles.errors import ModelError, UsageError
from headroles.models.heads.gates import HeadSites, weights_of_heads
from headroles.models.heads.remaining import removed_heads
from headroles.models.heads.stack import find_stack
from headroles.models.heads.surgery import remove_heads, zero_heads
from headroles.studies.pruning.orders import choose_heads, order_layers
from headroles.studies.pruning.prune import (
    PruneOptions,
    Pruning,
    find_compensation,
    fine_tune,
    train_weights,
    write_without,
)
from headroles.studies.removals import rises_of, without
from headroles.tasks.options import TaskOptions
from headroles.tasks.running import TaskRun, open_run
from tests.commands import record_in, run_well
from tests.models.families import make_whole
from tests.models.test_saved_models import outputs
from tests.rounding import assert_same_outputs, near
from tests.studies.conftest import losses_of
from tests.tasks.conftest import HEADS, make_task_model, save
from tests.tasks.test_writing import make_translator

SIX_LAYERS = [(layer, head) for layer in range(6) for head in range(4)]


def chosen(order: str, n_removed: int, **options: object) -> list[tuple[int, int]]:
    return choose_heads(order, n_removed, SIX_LAYERS, PruneOptions(keep=1, **options))


@pytest.mark.parametrize(
    ("order", "layers", "of_five"),
    [
        ("bottom", [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4]),
        ("top", [5, 4, 3, 2, 1, 0], [4, 3, 2, 1, 0]),
        ("middle", [2, 3, 1, 4, 0, 5], [2, 1, 3, 0, 4]),
        ("both_ends", [0, 5, 1, 4, 2, 3], [0, 4, 1, 3, 2]),
        ("alternate", [1, 3, 5], [1, 3]),
    ],
)
def test_layers_go_one_after_the_other_the_last_in_part(
    order: str, layers: list[int], of_five: list[int]
) -> None:
    assert order_layers(order, 6) == layers
    assert order_layers(order, 5) == of_five
    heads = chosen(order, 10)
    assert len(set(heads)) == 10
    assert [layer for layer, _ in heads] == np.repeat(layers[:3], [4, 4, 2]).tolist()
    left = chosen(order, 6, at_least=1, protect=[(layers[0], 2)])
    assert [layer for layer, _ in left] == np.repeat(layers[:2], 3).tolist()
    assert (layers[0], 2) not in left


def test_at_random_and_what_stays() -> None:
    assert chosen("random", 9) == chosen("random", 9) != chosen("random", 9, seed=1)
    assert chosen("random", 5) == chosen("random", 9)[:5]
    per_layer = Counter(layer for layer, _ in chosen("random_per_layer", 13))
    assert sorted(per_layer.values()) == [2, 2, 2, 2, 2, 3]
    left = set(SIX_LAYERS) - set(chosen("random", 18, at_least=1))
    assert {layer for layer, _ in left} == set(range(6))
    assert (0, 1) not in chosen("bottom", 22, protect="0-1, 3-2")


def test_importance_goes_from_the_least(opened: TaskRun) -> None:
    options = PruneOptions(keep=1, order="reestimated", steps=3)
    means = np.abs(opened.derivatives().by_gate).mean(0)
    expected = sorted(HEADS, key=lambda head: means[head])[:6]
    assert choose_heads("importance", 6, HEADS, options, opened) == expected
    again = choose_heads("reestimated", 6, HEADS, options, opened)
    assert again[:2] == expected[:2]
    means = np.abs(opened.derivatives(gates=without(expected[:2], (3, 4))).by_gate).mean(0)
    left = [head for head in HEADS if head not in expected[:2]]
    assert again[2:4] == sorted(left, key=lambda head: means[head])[:2]
    # More steps than heads are one head a step.
    by_one, by_less = (
        choose_heads("reestimated", 5, HEADS, replace(options, steps=steps), opened)
        for steps in (5, 10**9)
    )
    assert by_less == by_one
    rises = rises_of(opened, [(head,) for head in HEADS])
    least = min(HEADS, key=lambda head: rises[head])
    assert choose_heads("ablation", 1, HEADS, options, opened) == [least]


def test_what_is_left_does_what_the_masked_model_does(
    classifier: Path, labelled: Path, opened: TaskRun, tmp_path: Path
) -> None:
    out = tmp_path / "small"
    asked: dict[str, Any] = {"task": labelled, "test": labelled, "examples": 6, "keep": 7}
    facts = prune_heads(classifier, out, **asked).facts
    assert len(facts["removed"]) == 5
    assert facts["measured_on"] == "8 examples of labelled.tsv"  # --examples are those of TASK
    assert [*removed_heads(load_model(out).config)] == facts["removed"]
    masked = opened.outcomes(without(map(tuple, facts["removed"]), (3, 4))[None]).losses
    assert losses_of(out, labelled) == near(masked)
    assert facts["after"]["loss"] == near(masked.mean())
    tested = stats.ttest_rel(masked[:, 0], opened.outcomes_unmasked().losses[:, 0])
    interval = tested.confidence_interval()
    change = facts["loss_change"]
    assert change["loss_change"] == near(facts["after"]["loss"] - facts["before"]["loss"])
    assert change["p_value"] == pytest.approx(tested.pvalue, rel=1e-3)
    assert (change["ci_low"], change["ci_high"]) == pytest.approx(tuple(interval), rel=1e-3)
    # Zeros in the place of heads are the same model.
    zeroed = prune_heads(classifier, tmp_path / "zeroed", **asked, written_as="zeroed")
    assert zeroed.facts["after"]["loss"] == near(facts["after"]["loss"])
    assert zeroed.facts["before"]["loss"] == facts["before"]["loss"] != facts["after"]["loss"]
    # It is a model like any other: it can be pruned again, by the old numbers.
    again = prune_heads(out, tmp_path / "smaller", order="bottom", keep=4)
    assert "3 of 7 heads removed (order: bottom)" in repr(again)
    assert len(removed_heads(load_model(tmp_path / "smaller").config)) == 8


def test_layers_without_any_head(labelled: Path, tmp_path: Path) -> None:
    model = make_task_model()
    remove_heads(model, [(2, head) for head in range(4)])
    folder = save(model, tmp_path / "two")
    found = ablate_heads(folder, labelled, sets="single,others,layers,thirds")
    counts = found.frame["set"].value_counts().to_dict()
    assert counts == {"single": 8, "others": 8, "layers": 2, "thirds": 2}
    assert "upper third" not in found.frame["removed"].tolist()
    curves = find_pruning_curves(folder, labelled, orders="top,random", shares="0.5")
    removed = {tuple(head) for head in curves.facts["points"][0]["removed"]}
    assert removed == {(1, head) for head in range(4)}


def test_a_head_is_removed_from_all_layers_that_share_it(labelled: Path, tmp_path: Path) -> None:
    model = make_task_model(AlbertForSequenceClassification, embedding_size=16)
    albert = save(model, tmp_path / "albert")
    for order in ("reestimated", "ablation", "random_per_layer", "top"):
        options = {"task": labelled, "order": order, "keep": 6, "protect": "2-1"}
        pruned = prune_heads(albert, tmp_path / f"{order} of six", **options)
        heads = {number for _, number in pruned.removed} - {1}
        assert pruned.removed == [(layer, head) for layer in range(3) for head in sorted(heads)]
        assert len(heads) == 2
        assert [*removed_heads(load_model(tmp_path / f"{order} of six").config)] == pruned.removed
    # The least head is the least of all layers together.
    opened = open_run(albert, labelled, TaskOptions())
    losses = opened.outcomes(1 - torch.eye(4)[:, None].expand(4, 3, 4)).losses.mean(0)
    derivatives = np.abs(opened.derivatives().by_gate.sum(1)).mean(0)
    for order, values in (("ablation", losses), ("importance", derivatives)):
        pruned = prune_heads(albert, tmp_path / order, task=labelled, order=order, keep=9)
        assert {number for _, number in pruned.removed} == {int(values.argmin())}
    # Numbers are of heads of all layers.
    assert len(prune_heads(albert, tmp_path / "share", order="random", share=0.3).removed) == 3
    with pytest.raises(UsageError, match=r"from 3 layers at once; 5 of 12 .* keep=6 or keep=9"):
        prune_heads(albert, tmp_path / "out", order="random", keep=7)


@pytest.mark.parametrize(
    ("kind", "task"), [("marian", "MTModel"), ("t5", "EncoderModel"), ("xlm", "WithLMHeadModel")]
)
def test_without_a_task_the_whole_model_is_written(kind: str, task: str, tmp_path: Path) -> None:
    """And transformers alone reads one with zeros in the place of heads."""
    original = make_whole(kind, task, vocab_size=128)
    folder = save(original, tmp_path / "original")
    for how in ("pruned", "zeroed"):
        pruned = prune_heads(folder, tmp_path / how, order="random", keep=6, written_as=how)
    zero_heads(HeadSites(find_stack(original)), pruned.removed)
    read, report = type(original).from_pretrained(tmp_path / "zeroed", output_loading_info=True)
    assert not any(report[f"{how}_keys"] for how in ("missing", "unexpected"))
    for model in (read, load_model(tmp_path / "pruned")):
        assert_same_outputs(outputs(model), outputs(original))


# Fine-tuning.


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
    asked = options(labelled, update_examples=3, epochs=2.5)
    before, own = masked_losses(opened), weights_of_heads(opened.sites)
    found = fine_tune(opened, None, GONE, asked)
    assert [found[name] for name in ("examples", "updates", "update_examples")] == [8, 8, 3]
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
        rest = [head for head in opened.encoder.stack.heads if head in GONE]
        fine_tune(opened, None, rest, asked)
        losses.append(masked_losses(opened))
    assert losses[0] == near(losses[1])


@pytest.mark.parametrize(("model", "task"), [("masked_lm", "plain"), ("regressor", "numbered")])
def test_other_objectives(
    model: str, task: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    folder, file = request.getfixturevalue(model), request.getfixturevalue(task)
    asked = options(file, order="top", keep=8)
    facts = prune_heads(folder, tmp_path / "pruned", options=asked, test=file).facts
    assert facts["after"]["loss"] < facts["fine_tuning"]["masked"]["loss"]
    gated = gate_heads(folder, file, tmp_path / "gated", test=file, keep=4, seeds=1, updates=4)
    assert gated.facts["after"]["loss"] == near(gated.seeds["loss"][0])
    assert gated.facts["after"]["loss"] != gated.facts["before"]["loss"]


# The updates.

IDS, LABELS = torch.arange(8, 56).view(6, 8), torch.tensor([0, 1, 1, 0, 1, 0])


def loss_of(model: Any, rows: slice = slice(None)) -> Tensor:
    return cross_entropy(model(input_ids=IDS[rows]).logits, LABELS[rows])


def train(model: Any, n_groups: int = 3, **asked: object) -> None:
    """Train a model on groups of two examples."""

    def gradients_of(number: int, weights: Sequence[Tensor]) -> Sequence[Tensor]:
        return torch.autograd.grad(loss_of(model, slice(2 * number, 2 * number + 2)), weights)

    train_weights(model, n_groups, gradients_of, options("unread", **asked))
    assert not model.training


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


def test_heads_are_removed_by_name(classifier: Path, tmp_path: Path) -> None:
    translator = save(make_translator("marian"), tmp_path / "marian")
    named = prune_heads(classifier, tmp_path / "named", heads="2-1,0-3")
    assert named.removed == [(0, 3), (2, 1)]
    assert "2 of 12 heads removed (order: as named)" in str(named)
    for heads in (["decoder 1-0", "cross 0-1"], "decoder 1-0, cross 0-1"):
        frame = prune_heads(translator, tmp_path / "all", heads=heads, overwrite=True).frame
        gone = frame[frame["removed"]]
        found = list(zip(gone["attention"], gone["layer"], gone["head"], strict=True))
        assert found == [("decoder", 1, 0), ("cross", 0, 1)]
    across = prune_heads(translator, tmp_path / "across", heads="0-1", attention="cross")
    assert across.removed == [(0, 1)]
    refused = {
        "0-1": "'0-1' is of no kind of attention; name one of encoder, decoder, cross",
        "self 0-1": "is of no kind of attention",
        "cross 9-0": "the model has no head cross 9-0",
        "encoder 3-0": "the model has no head encoder 3-0",
    }
    every: Any = {"attention": "encoder,decoder,cross"}
    for name, message in refused.items():
        with pytest.raises(UsageError, match=message):
            prune_heads(translator, tmp_path / "refused", heads=[name], **every)
    with pytest.raises(UsageError, match="give the number of heads to keep, the share to remove"):
        PruneOptions(heads="0-1", keep=3)


def test_a_test_with_the_examples_of_the_choice_is_warned_of(
    classifier: Path, labelled: Path, tmp_path: Path
) -> None:
    others = tmp_path / "others.tsv"
    others.write_text(labelled.read_text("utf-8").rsplit("\n", 2)[0] + "\n", "utf-8")
    asked: Any = {"keep": 6, "order": "importance"}
    for test, is_warned in ((labelled, True), (others, False)):
        pruned = prune_heads(
            classifier, tmp_path / "out", task=labelled, test=test, overwrite=True, **asked
        )
        warned = "heads were chosen and measured in one file" in " ".join(pruned.record.warnings)
        assert warned == is_warned


# Heads that make up for others.


def test_nothing_gone_is_nothing_to_make_up_for(
    classifier: Path, labelled: Path, tmp_path: Path
) -> None:
    asked = options(labelled, keep=12, order="top", compensation=True)
    pruned = prune_heads(classifier, tmp_path / "out", options=asked, test=labelled)
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
        result = run_well("prune", classifier, *asked, *given, "--out", tmp_path / out)
    assert "Fine-tuned on 6 examples with the heads masked, 1 updates of 32" in result.stdout
    for row in ("before, fine-tuned", "after, not fine-tuned", "heads differ by"):
        assert row in result.stdout
    one, other = (load_model(tmp_path / out).state_dict() for out in ("with", "without"))
    assert all(torch.equal(one[name], own) for name, own in other.items())
    facts = record_in(tmp_path / "with")["facts"]
    assert len(facts["fine_tuning"]["compensation"]) == 7
    assert facts["after"] != facts["fine_tuning"]["masked"] != facts["before"]
