"""Importance by several estimators, against numbers worked out by hand."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from msgspec import structs
from scipy import stats

from headroles.errors import StorageError
from headroles.models.heads.surgery import remove_heads
from headroles.report.pages import make_report
from headroles.storage import plain
from headroles.studies.importance.importance import (
    ESTIMATORS,
    Importance,
    find_importance,
    normalise,
    values_of,
)
from headroles.tasks.outcomes import Derivatives
from headroles.tasks.running import TaskRun
from tests.commands import run
from tests.tasks.conftest import HEADS, make_task_model, save

# Products of head outputs and their derivatives: sample, head, token.
PRODUCTS = np.array([[[0.3, -0.1, 0.2], [-0.2, 0.1, 0.1]], [[-0.4, 0.1, 0.0], [0.1, 0.1, 0.1]]])


def by_hand() -> Derivatives:
    """The products in an inner layer and in the last one."""
    by_gate, by_token = PRODUCTS.sum(-1), np.abs(PRODUCTS).sum(-1)
    return Derivatives(
        np.stack([by_gate, by_gate], axis=1).astype(np.float32),
        np.stack([by_token, by_token], axis=1).astype(np.float32),
        np.array([3, 3]),
        losses=np.zeros(2),
        predictions=np.zeros(2),
    )


@pytest.fixture(scope="module")
def found(classifier: Path, labelled: Path) -> Importance:
    return find_importance(classifier, labelled)


def test_published_and_released_estimators() -> None:
    absolute = values_of(by_hand(), "absolute").mean(0)
    assert absolute == pytest.approx([0.35, 0.15, 0.35, 0.15])
    token = values_of(by_hand(), "token").mean(0)
    # Inner layers are divided by the tokens, the last by the examples.
    assert token == pytest.approx([0.183333, 0.116667, 0.55, 0.35], abs=1e-6)
    assert values_of(by_hand(), "signed").mean(0)[:2] == pytest.approx([-0.05, -0.15])
    assert values_of(by_hand(), "taylor").mean(0)[:2] == pytest.approx([0.125, 0.045])


def test_normalisation_changes_the_order() -> None:
    raw = np.array([[0.6, 0.8, 0.0], [3, 4, 12]])
    normalised = normalise(raw, "l2")
    assert normalised[1] == pytest.approx([0.230769, 0.307692, 0.923077], abs=1e-6)
    order = [
        tuple(map(int, np.unravel_index(k, (2, 3)))) for k in np.argsort(normalised, axis=None)
    ]
    assert order == [(0, 2), (1, 0), (1, 1), (0, 0), (0, 1), (1, 2)]
    assert (normalise(np.zeros((1, 3)), "l2") == 0).all()


def test_every_head_by_every_estimator(found: Importance) -> None:
    assert len(found) == 4 * 12
    assert found.record.model.family == "BERT"
    assert found.record.model.read_through == "outputs of heads"
    values = values_of(found.derivatives, "signed")
    assert found.of("signed").ravel() == pytest.approx(values.mean(0))
    errors = values.std(0, ddof=1) / np.sqrt(8)
    assert found.of("signed", "standard_error").ravel() == pytest.approx(errors)
    ranks = found.of("absolute", "rank").ravel()
    assert sorted(ranks) == list(range(1, 13))
    assert found.of("absolute").ravel()[ranks.argmin()] == found.of("absolute").max()
    assert (found.of("token")[:-1] >= 0).all()


def test_reliability_follows_spearman_and_brown(found: Importance) -> None:
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
    scale: float,
    found: Importance,
    monkeypatch: pytest.MonkeyPatch,
    classifier: Path,
    labelled: Path,
) -> None:
    """A model that has learnt its examples well has losses and derivatives as small as these."""
    shrunk = dataclasses.replace(
        found.derivatives,
        by_gate=found.derivatives.by_gate.astype(np.float64) * scale,
        by_token=found.derivatives.by_token.astype(np.float64) * scale,
    )
    monkeypatch.setattr(TaskRun, "derivatives", lambda self: shrunk)
    small = find_importance(classifier, labelled)
    powers = {"taylor": 2}
    for name in ESTIMATORS:
        for column in ("importance", "standard_error", "ci_low", "ci_high"):
            expected = found.of(name, column) * scale ** powers.get(name, 1)
            assert small.of(name, column) == pytest.approx(expected, rel=1e-9, abs=0)
        assert (small.of(name, "rank") == found.of(name, "rank")).all()


def test_some_layers_are_saved_and_shown(found: Importance, tmp_path: Path) -> None:
    some = found.where(layer=[0, 2])
    some.save(tmp_path / "out")
    loaded = Importance.load(tmp_path / "out")
    assert loaded.frame.equals(some.frame)
    assert (loaded.record, repr(loaded)) == (some.record, repr(some))
    pd.testing.assert_frame_equal(loaded.reliability(), some.reliability())
    assert np.isnan(loaded.of("signed")[1]).all()
    np.testing.assert_array_equal(loaded.of("signed")[[0, 2]], found.of("signed")[[0, 2]])
    assert make_report(tmp_path / "out").to_html()
    dataclasses.replace(some, frame=some.frame.drop(index=3)).save(tmp_path / "less")
    with pytest.raises(StorageError, match="it has 31 rows for 32 combinations"):
        Importance.load(tmp_path / "less")


def test_one_head_has_no_order(labelled: Path, tmp_path: Path) -> None:
    model = make_task_model()
    remove_heads(model, HEADS[1:])
    shown = repr(find_importance(save(model, tmp_path / "pruned"), labelled))
    assert "nan" not in shown
    assert "Reliability is not validity: check the ranking with `headroles ablate`" in shown


def test_removed_heads_have_none(labelled: Path, tmp_path: Path) -> None:
    model = make_task_model()
    remove_heads(model, [(1, 2), *[(2, head) for head in range(4)]])
    found = find_importance(save(model, tmp_path / "pruned"), labelled)
    gone = np.isnan(found.of("absolute"))
    assert np.argwhere(gone).tolist() == [[1, 2], [2, 0], [2, 1], [2, 2], [2, 3]]
    assert np.nanmax(found.of("absolute", "rank")) == 7
    signed, token = (found.of(name)[~gone] for name in ("signed", "token"))
    expected = stats.spearmanr(signed, token).statistic
    assert found.correlations().loc["signed", "token"] == pytest.approx(expected)


def test_command(classifier: Path, labelled: Path, tmp_path: Path) -> None:
    arguments = ["importance", classifier, labelled, "--out", tmp_path / "out"]
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    assert "on 8 examples of" in result.stdout
    assert len(Importance.load(tmp_path / "out")) == 48
    again = run(*arguments)
    assert again.exit_code == 1
    assert "is not empty" in again.stderr


def test_masked_language_models(masked_lm: Path, plain: Path) -> None:
    found = find_importance(masked_lm, plain)
    assert (found.record.task.objective, found.record.task.metrics) == ("masked_lm", [])
    assert "loss" in repr(found)


def test_a_loss_that_is_no_number_is_shown_as_missing(found: Importance) -> None:
    measured = dict.fromkeys(found.facts["measured"], float("nan"))
    record = structs.replace(found.record, facts=plain({**found.facts, "measured": measured}))
    assert "loss - nats" in repr(dataclasses.replace(found, record=record))


@pytest.mark.parametrize(
    ("matthews", "is_warned"), [(-0.1, True), (0.0, True), (0.1, False), (float("nan"), False)]
)
def test_a_model_that_guesses_is_said_so_first(
    found: Importance, matthews: float, is_warned: bool
) -> None:
    measured = {**found.facts["measured"], "matthews": matthews}
    record = structs.replace(found.record, facts=plain({**found.facts, "measured": measured}))
    shown = repr(dataclasses.replace(found, record=record))
    assert shown.startswith("warning: matthews is ") == is_warned
