"""Orders by hand, and models that were pruned by the command."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from scipy import stats
from transformers import (
    AlbertForSequenceClassification,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    T5EncoderModel,
)

from headroles import RoleTable, ablate_heads, find_pruning_curves, load_model, prune_heads
from headroles.errors import UsageError
from headroles.models.heads.remaining import removed_heads
from headroles.models.heads.surgery import remove_heads
from headroles.studies.pruning.orders import choose_heads, choose_layers
from headroles.studies.pruning.prune import PruneOptions
from headroles.studies.removals import rises_of, without
from headroles.tasks.options import TaskOptions
from headroles.tasks.running import TaskRun, open_run
from tests.commands import run
from tests.conftest import make_tokenizer
from tests.models.families import make_whole
from tests.models.test_saved_models import outputs
from tests.rounding import assert_same_outputs, near
from tests.studies.conftest import losses_of
from tests.tasks.conftest import HEADS, make_task_model, save

SIX_LAYERS = [(layer, head) for layer in range(6) for head in range(4)]


def chosen(order: str, n_removed: int, **options: object) -> list[tuple[int, int]]:
    return choose_heads(order, n_removed, SIX_LAYERS, PruneOptions(keep=1, **options))


@pytest.mark.parametrize(
    ("order", "n_chosen", "layers"),
    [
        ("bottom", 4, {0, 1, 2, 3}),
        ("top", 4, {8, 9, 10, 11}),
        ("middle", 4, {4, 5, 6, 7}),
        ("middle", 2, {5, 6}),
        ("middle", 6, {3, 4, 5, 6, 7, 8}),
        ("both_ends", 4, {0, 1, 10, 11}),
        ("both_ends", 2, {0, 11}),
        ("both_ends", 6, {0, 1, 2, 9, 10, 11}),
        ("alternate", 4, {1, 3, 5, 7}),
    ],
)
def test_layers(order: str, n_chosen: int, layers: set[int]) -> None:
    assert set(choose_layers(order, 12, n_chosen)) == layers


@pytest.mark.parametrize(
    ("order", "last"), [("bottom", 2), ("top", 3), ("middle", 1), ("both_ends", 1)]
)
def test_the_last_layer_of_a_group_goes_in_part(order: str, last: int) -> None:
    counts = Counter(layer for layer, _ in chosen(order, 10))
    assert sorted(counts.values()) == [2, 4, 4]
    assert counts[last] == 2


def test_at_random() -> None:
    assert chosen("random", 9) == chosen("random", 9) != chosen("random", 9, seed=1)
    assert chosen("random", 5) == chosen("random", 9)[:5]
    per_layer = Counter(layer for layer, _ in chosen("random_per_layer", 13))
    assert sorted(per_layer.values()) == [2, 2, 2, 2, 2, 3]


def test_what_stays() -> None:
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


def test_by_role(roles: Path) -> None:
    table = RoleTable.load(roles)
    having = {role: set(table.heads_with(role)) for role in table.roles}
    role, own = next((role, own) for role, own in having.items() if 0 < len(own) < 12)
    options = PruneOptions(keep=1, order="with_role", role=role, roles_from=roles)
    assert set(choose_heads("with_role", len(own), HEADS, options)) == own
    assert not own & set(choose_heads("without_role", 12 - len(own), HEADS, options))
    with pytest.raises(UsageError, match="there is no role 'x'"):
        choose_heads("with_role", 2, HEADS, replace(options, role="x"))


def test_what_is_left_does_what_the_masked_model_does(
    classifier: Path, labelled: Path, opened: TaskRun, tmp_path: Path
) -> None:
    out, again = tmp_path / "small", tmp_path / "smaller"
    asked = ("--keep", 7, "--test", labelled, "--json")
    result = run("prune", classifier, labelled, *asked, "--out", out)
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)["facts"]
    assert len(facts["removed"]) == 5
    assert [list(head) for head in removed_heads(load_model(out).config)] == facts["removed"]
    masked = opened.outcomes(without(map(tuple, facts["removed"]), (3, 4))[None]).losses
    assert losses_of(out, labelled) == near(masked)
    assert facts["after"]["loss"] == near(masked.mean())
    tested = stats.ttest_rel(masked[:, 0], opened.outcomes_unmasked().losses[:, 0])
    interval = tested.confidence_interval()
    change = facts["loss_change"]
    assert change["loss_change"] == near(facts["after"]["loss"] - facts["before"]["loss"])
    assert change["p_value"] == pytest.approx(tested.pvalue, rel=1e-3)
    assert (change["ci_low"], change["ci_high"]) == pytest.approx(tuple(interval), rel=1e-3)
    # It is a model like any other: it can be pruned again, by the old numbers.
    result = run("prune", out, "--order", "bottom", "--keep", 4, "--out", again)
    assert result.exit_code == 0, result.output
    assert "3 of 7 heads removed (order: bottom)" in result.stdout
    assert len(removed_heads(load_model(again).config)) == 8


def test_zeroed(classifier: Path, labelled: Path, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"test": labelled, "order": "random", "share": 0.5}
    one, other = (
        prune_heads(classifier, tmp_path / form, written_as=form, **asked).facts
        for form in ("pruned", "zeroed")
    )
    assert one["after"]["loss"] == near(other["after"]["loss"])
    assert one["loss_change"]["loss_change"] == near(other["loss_change"]["loss_change"])
    assert one["before"]["loss"] == other["before"]["loss"] != one["after"]["loss"]
    inputs = {"input_ids": torch.arange(8, 20)[None]}
    with torch.no_grad():
        zeroed = AutoModelForSequenceClassification.from_pretrained(tmp_path / "zeroed")
        expected = load_model(tmp_path / "pruned")(**inputs).logits
        assert_same_outputs(zeroed(**inputs).logits, expected)


def test_the_test_has_examples_of_its_own(classifier: Path, labelled: Path, tmp_path: Path) -> None:
    """--examples is about TASK, --test-examples about the test."""
    sizes = []

    def measure(found: TaskRun, outcomes: Any) -> dict[str, float]:
        sizes.append(len(outcomes.losses))
        return {"loss": 0.0}

    with mock.patch.object(TaskRun, "measure", measure):
        for given in ({}, {"test_examples": 5}):
            options = {"task": labelled, "test": labelled, "keep": 3, "examples": 3, **given}
            prune_heads(classifier, tmp_path / f"{len(given)}", **options)
    assert sizes == [8, 8, 5, 5]


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


@pytest.fixture(scope="module")
def albert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose layers share a module."""
    model = make_task_model(AlbertForSequenceClassification, embedding_size=16)
    return save(model, tmp_path_factory.mktemp("albert") / "model")


@pytest.mark.parametrize("order", ["reestimated", "ablation", "random_per_layer", "top"])
def test_a_head_is_removed_from_all_layers_that_share_it(
    order: str, albert: Path, labelled: Path, tmp_path: Path
) -> None:
    options = {"order": order, "keep": 6, "protect": "2-1"}
    pruned = prune_heads(albert, tmp_path / "out", task=labelled, **options)
    assert Counter(layer for layer, _ in pruned.removed) == {0: 2, 1: 2, 2: 2}
    heads = {number for _, number in pruned.removed}
    assert len(heads) == 2
    assert 1 not in heads
    assert [*removed_heads(load_model(tmp_path / "out").config)] == pruned.removed


def test_the_least_head_is_the_least_of_all_layers_that_share_it(
    albert: Path, labelled: Path, tmp_path: Path
) -> None:
    opened = open_run(albert, labelled, TaskOptions())
    losses = opened.outcomes(1 - torch.eye(4)[:, None].expand(4, 3, 4)).losses.mean(0)
    derivatives = np.abs(opened.derivatives().by_gate.sum(1)).mean(0)
    for order, values in (("ablation", losses), ("importance", derivatives)):
        pruned = prune_heads(albert, tmp_path / order, task=labelled, order=order, keep=9)
        assert {number for _, number in pruned.removed} == {int(values.argmin())}


def test_numbers_are_of_heads_of_all_layers_that_share_them(albert: Path, tmp_path: Path) -> None:
    assert len(prune_heads(albert, tmp_path / "share", order="random", share=0.3).removed) == 3
    with pytest.raises(UsageError, match=r"from 3 layers at once; 5 of 12 .* keep=6 or keep=9"):
        prune_heads(albert, tmp_path / "out", order="random", keep=7)


@pytest.mark.parametrize(
    ("kind", "task", "auto"),
    [
        ("marian", "MTModel", AutoModelForSeq2SeqLM),
        ("t5", "EncoderModel", T5EncoderModel),
        ("xlm", "WithLMHeadModel", AutoModelForMaskedLM),
    ],
)
def test_without_a_task_the_whole_model_is_written(
    kind: str, task: str, auto: Any, tmp_path: Path
) -> None:
    original = make_whole(kind, task, vocab_size=128)
    original.save_pretrained(tmp_path / "original")
    make_tokenizer().save_pretrained(tmp_path / "original")
    asked: dict[str, Any] = {"order": "random", "written_as": "zeroed"}
    for keep in (12, 6):
        prune_heads(tmp_path / "original", tmp_path / f"{keep}", keep=keep, **asked)
    prune_heads(tmp_path / "original", tmp_path / "removed", order="random", keep=6)
    whole, zeroed = (
        auto.from_pretrained(tmp_path / name, output_loading_info=True) for name in ("12", "6")
    )
    for _, report in (whole, zeroed):
        assert not report["missing_keys"]
        assert not report["unexpected_keys"]
    assert_same_outputs(outputs(whole[0]), outputs(original))
    assert_same_outputs(outputs(load_model(tmp_path / "removed")), outputs(zeroed[0]))
