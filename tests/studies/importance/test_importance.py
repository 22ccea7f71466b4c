"""Importance by several estimators, by hand and of T5 and BART with a task on top."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from headroles import ablate_heads, prune_heads
from headroles.errors import StorageError
from headroles.models.heads.surgery import remove_heads
from headroles.studies.importance.importance import (
    ESTIMATORS,
    Importance,
    find_importance,
    normalise,
    values_of,
)
from headroles.tasks.outcomes import Derivatives
from headroles.tasks.running import TaskRun
from tests.conftest import changed, make_tokenizer
from tests.models import families
from tests.rounding import near
from tests.tasks.conftest import HEADS, make_task_model, save

# Products of head outputs and their derivatives: sample, head, token.
PRODUCTS = np.array([[[0.3, -0.1, 0.2], [-0.2, 0.1, 0.1]], [[-0.4, 0.1, 0.0], [0.1, 0.1, 0.1]]])


def by_hand(estimator: str) -> np.ndarray:
    """The importance of the products in an inner layer and in the last one."""
    by_gate, by_token = (
        np.stack([values, values], axis=1).astype(np.float32)
        for values in (PRODUCTS.sum(-1), np.abs(PRODUCTS).sum(-1))
    )
    derivatives = Derivatives(by_gate, by_token, np.array([3, 3]), np.zeros(2), np.zeros(2))
    return values_of(derivatives, estimator).mean(0)


@pytest.fixture(scope="module")
def found(classifier: Path, labelled: Path) -> Importance:
    return find_importance(classifier, labelled)


def test_published_and_released_estimators() -> None:
    assert by_hand("absolute") == pytest.approx([0.35, 0.15, 0.35, 0.15])
    # Inner layers are divided by the tokens, the last by the examples.
    assert by_hand("token") == pytest.approx([0.183333, 0.116667, 0.55, 0.35], abs=1e-6)
    assert by_hand("signed")[:2] == pytest.approx([-0.05, -0.15])
    assert by_hand("taylor")[:2] == pytest.approx([0.125, 0.045])


def test_normalisation_changes_the_order() -> None:
    raw = np.array([[0.6, 0.8, 0.0], [3, 4, 12]])
    normalised = normalise(raw, "l2")
    assert normalised[1] == pytest.approx([0.230769, 0.307692, 0.923077], abs=1e-6)
    order = [divmod(int(place), 3) for place in np.argsort(normalised, axis=None)]
    assert order == [(0, 2), (1, 0), (1, 1), (0, 0), (0, 1), (1, 2)]
    assert (normalise(np.zeros((1, 3)), "l2") == 0).all()


def test_every_head_by_every_estimator(found: Importance) -> None:
    assert len(found) == 4 * 12
    values = values_of(found.derivatives, "signed")
    assert found.of("signed").ravel() == pytest.approx(values.mean(0))
    errors = values.std(0, ddof=1) / np.sqrt(8)
    assert found.of("signed", "standard_error").ravel() == pytest.approx(errors)
    # Spearman and Brown.
    for _, row in found.reliability().iterrows():
        half, full = row["split_half"], row["full"]
        assert full == pytest.approx(2 * half / (1 + half))
        needed = np.ceil(8 * 0.9 * (1 - full) / (full * 0.1)) if full > 0 else np.inf
        assert row["examples_needed"] == needed


@pytest.mark.parametrize("how", ["none", "l2"])
def test_ranks_and_reliability_are_of_the_order_asked_for(
    how: str, classifier: Path, labelled: Path
) -> None:
    found = find_importance(classifier, labelled, normalisation=how)
    column = "normalised" if how == "l2" else "importance"
    order = np.argsort(-found.of("absolute", column).ravel(), kind="stable")
    assert (found.of("absolute", "rank").ravel()[order] == np.arange(1, 13)).all()
    values = values_of(found.derivatives, "absolute")
    rng, agreed = np.random.default_rng(0), []
    for _ in range(50):
        halves = np.array_split(rng.permutation(8), 2)
        orders = [normalise(values[half].mean(0).reshape(3, 4), how).ravel() for half in halves]
        agreed.append(stats.spearmanr(*orders).statistic)
    assert found.reliability().loc["absolute", "split_half"] == pytest.approx(np.mean(agreed))


@pytest.mark.parametrize("scale", [1e-4, 1e-8])
def test_small_derivatives_are_no_rounding(
    scale: float, found: Importance, classifier: Path, labelled: Path
) -> None:
    """A model that has learnt its examples well has losses and derivatives as small as these."""
    of_gates, of_tokens = (
        values.astype(np.float64) * scale
        for values in (found.derivatives.by_gate, found.derivatives.by_token)
    )
    shrunk = replace(found.derivatives, by_gate=of_gates, by_token=of_tokens)
    with mock.patch.object(TaskRun, "derivatives", return_value=shrunk):
        small = find_importance(classifier, labelled)
    for name in ESTIMATORS:
        for column in ("importance", "standard_error", "ci_low", "ci_high"):
            expected = found.of(name, column) * scale ** (2 if name == "taylor" else 1)
            assert small.of(name, column) == pytest.approx(expected, rel=1e-9, abs=0)
        assert (small.of(name, "rank") == found.of(name, "rank")).all()


def test_some_layers_are_saved_and_lost_rows_are_found(found: Importance, tmp_path: Path) -> None:
    some = found.where(layer=[0, 2])
    loaded = Importance.load(some.save(tmp_path / "out"))
    pd.testing.assert_frame_equal(loaded.reliability(), some.reliability())
    expected = np.where([[True], [False], [True]], found.of("signed"), np.nan)
    np.testing.assert_array_equal(loaded.of("signed"), expected)
    replace(some, frame=some.frame.drop(index=3)).save(tmp_path / "less")
    with pytest.raises(StorageError, match="it has 31 rows for 32 combinations"):
        Importance.load(tmp_path / "less")


def test_removed_heads_have_none(labelled: Path, tmp_path: Path) -> None:
    removed = [(1, 2), *[(2, head) for head in range(4)]]
    few, only = (make_task_model() for _ in range(2))
    remove_heads(few, removed)
    remove_heads(only, HEADS[1:])
    found = find_importance(save(few, tmp_path / "few"), labelled)
    gone = np.isnan(found.of("absolute"))
    assert [tuple(head) for head in np.argwhere(gone)] == removed
    assert np.nanmax(found.of("absolute", "rank")) == 7
    signed, token = (found.of(name)[~gone] for name in ("signed", "token"))
    expected = stats.spearmanr(signed, token).statistic
    assert found.correlations().loc["signed", "token"] == pytest.approx(expected)
    # A single head has no order.
    shown = repr(find_importance(save(only, tmp_path / "only"), labelled))
    assert "nan" not in shown
    assert "Reliability is not validity: check the ranking with `headroles ablate`" in shown


@pytest.mark.parametrize(
    ("matthews", "is_warned"), [(-0.1, True), (0.0, True), (0.1, False), (float("nan"), False)]
)
def test_a_model_that_guesses_is_said_so_first(
    found: Importance, matthews: float, is_warned: bool
) -> None:
    """And a loss that is no number is shown as missing."""
    measured = {**found.facts["measured"], "matthews": matthews, "loss": float("nan")}
    shown = repr(changed(found, facts={"measured": measured}))
    assert shown.startswith("warning: matthews is ") == is_warned
    assert "loss - nats" in shown


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_importance_and_losses_are_of_the_heads_of_the_encoder(
    kind: str, labelled: Path, tmp_path: Path
) -> None:
    """T5 and BART with a task on top; tests/models compares derivatives of all families."""
    folder, tokenizer = tmp_path / "model", make_tokenizer()
    tokenizer.eos_token = tokenizer.sep_token  # which ends texts, as it must
    sizes = {"vocab_size": len(tokenizer), "eos_token_id": tokenizer.eos_token_id}
    sizes |= {"id2label": {0: "bad", 1: "good"}, "label2id": {"bad": 0, "good": 1}}
    sizes["decoder_start_token_id"] = 0
    families.make_whole(kind, "ForSequenceClassification", **sizes).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    found, shape = find_importance(folder, labelled), (families.LAYERS, families.HEADS)
    assert (found.of("absolute").shape, found.of("absolute").min() > 0) == (shape, True)
    assert found.record.model.read_through == "outputs of heads"
    frame = ablate_heads(folder, labelled).frame
    least = frame.loc[frame["loss"].idxmin()]
    asked = {"task": labelled, "test": labelled, "order": "ablation"}
    pruned = prune_heads(folder, tmp_path / "out", **asked, keep=shape[0] * shape[1] - 1)
    assert pruned.removed == [(least["layer"], least["head"])]
    assert pruned.facts["after"]["loss"] == near(least["loss"])
