"""Drops in several tasks, against each task by itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from headroles.errors import UsageError
from headroles.studies.importance.ablate import Ablations, ablate_heads
from headroles.studies.importance.by_task import DropsByTask, drops_by_task, relative_drops
from tests.commands import run
from tests.conftest import changed
from tests.tasks.conftest import SENTENCES, make_task_model, save, write_labelled

NAMES = ("long", "short")


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("tasks") / "short.tsv"
    rows = [(" ".join(text.split()[:3]), str(label)) for text, label in SENTENCES]
    return write_labelled(file, rows)


@pytest.fixture(scope="module")
def ablations(classifier: Path, labelled: Path, short: Path) -> list[Ablations]:
    return [ablate_heads(classifier, one, sets="layers,thirds") for one in (labelled, short)]


@pytest.fixture(scope="module")
def found(ablations: list[Ablations]) -> DropsByTask:
    return drops_by_task(ablations, NAMES, correction="none")


def rows_of(found: DropsByTask, task: str, measure: str = "loss") -> pd.DataFrame:
    return found.frame.set_index(["task", "measure", "removed"]).sort_index().loc[task, measure]


def test_relative_drops(found: DropsByTask, ablations: list[Ablations]) -> None:
    for name, alone in zip(NAMES, ablations, strict=True):
        whole, rows = alone.facts["measured"], alone.frame.set_index("removed")
        own, accuracies = (rows_of(found, name, of).loc[rows.index] for of in ("loss", "accuracy"))
        drops = [(own, rows["loss_change"], whole["loss"])]
        drops += [(accuracies, -rows["accuracy_change"], whole["accuracy"])]
        for given, changes, of in drops:
            assert given["relative_drop"].to_numpy() == pytest.approx(changes.to_numpy() / of)
        assert own["p_value"].to_numpy() == pytest.approx(rows["p_value"].to_numpy())
        assert own["note"].equals(rows["note"])


def test_errors_of_ratios_are_those_of_the_bootstrap() -> None:
    rng = np.random.default_rng(6)
    whole = rng.gamma(2, 1, 500)
    losses = np.stack([whole, whole * 1.1 + rng.normal(0, 0.5, 500)], axis=1)
    values = relative_drops(losses, losses.mean(0), "loss")
    places = rng.integers(0, 500, (2000, 500))
    means = losses[places].mean(1)
    assert values.mean() == pytest.approx(losses[:, 1].mean() / losses[:, 0].mean() - 1)
    assert stats.sem(values)[0] == pytest.approx((means[:, 1] / means[:, 0]).std(), rel=0.05)
    better = relative_drops(losses, losses.mean(0), "accuracy")
    assert better.mean() == pytest.approx(-values.mean())


def test_deviations_are_welch_tests_of_profiles(
    found: DropsByTask, ablations: list[Ablations]
) -> None:
    profiles = []
    for one in ablations:
        layers = [0, *(1 + one.frame.index[one.frame["set"] == "layers"])]
        losses = one.outcomes.losses[:, layers]
        drops = relative_drops(losses, losses.mean(0), "loss")
        profiles.append(drops - drops.mean(1, keepdims=True))
    tested = stats.ttest_ind(*profiles, equal_var=False)
    layers = [f"layer {number}" for number in range(3)]
    own, other = (rows_of(found, name).loc[layers] for name in NAMES)
    assert own["deviation"].to_numpy() == pytest.approx(profiles[0].mean(0) - profiles[1].mean(0))
    assert own["p_deviation"].to_numpy() == pytest.approx(tested.pvalue)
    assert other["deviation"].to_numpy() == pytest.approx(-own["deviation"].to_numpy())


def test_what_does_not_vary(ablations: list[Ablations]) -> None:
    """Without a change of any loss there is no p-value; that all accuracy is lost is shown."""
    made = []
    for alone in ablations:
        outcomes = alone.outcomes
        losses, predictions, targets = map(
            np.copy, (outcomes.losses, outcomes.predictions, outcomes.targets)
        )
        losses[:, 1] = losses[:, 0]
        predictions[:, 0] = np.where(np.arange(8) < 2, 1 - targets, targets)
        predictions[:, 1] = 1 - targets
        facts = {"measured": dict.fromkeys(alone.facts["measured"], 0.5)}
        outcomes = replace(outcomes, losses=losses, predictions=predictions)
        made.append(changed(replace(alone, outcomes=outcomes), facts=facts))
    found = drops_by_task(made, NAMES, correction="none")
    own = rows_of(found, "long", "accuracy").loc["layer 0"]
    assert (own["whole"], own["without"], own["relative_drop"]) == (0.75, 0, 1)
    assert np.isnan([own["ci_low"], own["ci_high"]]).all()
    expected = stats.ttest_1samp([0, 0, 1, 1, 1, 1, 1, 1], 0).pvalue
    assert own["p_value"] == pytest.approx(expected)
    assert own["answer"] == "worse"
    rows = found.frame[found.frame["measure"] == "loss"]
    is_first = rows["removed"] == "layer 0"
    assert rows["p_value"].isna().equals(is_first)
    assert rows["note"].str.startswith("degenerate").equals(is_first)


def test_models_of_other_sizes_are_compared_by_thirds(
    ablations: list[Ablations], labelled: Path, tmp_path: Path
) -> None:
    small = save(make_task_model(num_attention_heads=2), tmp_path / "small")
    other = ablate_heads(small, labelled, sets="layers,thirds")
    found = drops_by_task([ablations[0], other], NAMES)
    assert set(found.frame["set"]) == {"thirds"}
    assert any("share their examples" in one for one in found.warnings)
    layers = ablate_heads(small, labelled, sets="layers")
    with pytest.raises(UsageError, match="only thirds of their layers can be compared"):
        drops_by_task([ablations[0], layers], NAMES)


def test_what_cannot_be_compared(
    ablations: list[Ablations], classifier: Path, labelled: Path
) -> None:
    uniform = ablate_heads(classifier, labelled, sets="layers", ablation="uniform")
    single = ablate_heads(classifier, labelled)
    for given, names, message in (
        (ablations[:1], NAMES[:1], "1 task is given"),
        (ablations, ["a", "a"], "are called a, a; give each a different name"),
        ([ablations[0], uniform], NAMES, "zero in long, uniform in short"),
        ([ablations[0], single], NAMES, "no removal is in all of long, short"),
    ):
        with pytest.raises(UsageError, match=message):
            drops_by_task(given, names)


def test_a_metric_that_no_model_reaches_is_left_out(found: DropsByTask) -> None:
    for name in ("f1", "matthews"):
        reached = [one.facts["measured"][name] for one in found.record.sources.values()]
        assert (name in found.measures) == (min(reached) > 0)
        if min(reached) <= 0:
            assert any(warning.startswith(f"{name} is skipped") for warning in found.warnings)


def test_command(ablations: list[Ablations], tmp_path: Path) -> None:
    pairs = zip(ablations, NAMES, strict=True)
    folders = [ablation.save(tmp_path / name) for ablation, name in pairs]
    arguments = ["by-task", *folders, "--out", tmp_path / "out"]
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    assert "lost without" in result.stdout
    assert run(*arguments, "--overwrite", "--names", "one,other").exit_code == 0
    assert set(DropsByTask.load(tmp_path / "out").frame["task"]) == {"one", "other"}
