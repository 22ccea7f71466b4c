"""Pruning curves against models run without the same heads, and tests worked out another way."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from headroles import RoleTable
from headroles.errors import UsageError
from headroles.inference import adjust_p_values
from headroles.studies.pruning.orders import choose_heads
from headroles.studies.pruning.prune import PruneOptions
from headroles.studies.pruning.pruning_curves import (
    CurveOptions,
    PruningCurves,
    find_pruning_curves,
    make_table,
)
from headroles.studies.removals import without
from headroles.tasks.options import TaskOptions
from headroles.tasks.outcomes import METRICS, Derivatives, Outcomes
from headroles.tasks.running import TaskRun, open_run
from tests.commands import run
from tests.rounding import near
from tests.tasks.conftest import HEADS, SENTENCES, write_labelled

METRICS_OF_CLASSES = ("accuracy", "f1", "matthews")
ORDERS = "importance,importance:signed:l2,reestimated,ablation,middle,random_per_layer,random"


@pytest.fixture(scope="module")
def phrases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As many examples as five draws of eight take."""
    return write_labelled(tmp_path_factory.mktemp("task") / "phrases.tsv", SENTENCES * 5)


@pytest.fixture(scope="module")
def found(classifier: Path, labelled: Path, phrases: Path) -> PruningCurves:
    return find_pruning_curves(
        classifier, labelled, phrases, orders=ORDERS, shares="0.25,0.5", correction="holm", steps=2
    )


def points_of(found: PruningCurves, *orders: str) -> list[Any]:
    """The heads that each order, share and draw removes, of some ``orders`` or of all."""
    points = [SimpleNamespace(**point) for point in found.facts["points"]]
    return [one for one in points if one.order in orders or not orders]


def test_a_draw_removes_the_heads_of_prune(classifier: Path, labelled: Path) -> None:
    """Orders without examples, and those of few heads by the seed of the draw."""
    orders, asked = "random,middle,random_per_layer", {"shares": "0.25", "seed": 2}
    found = find_pruning_curves(classifier, labelled, orders=orders, **asked)
    for point in points_of(found):
        options = PruneOptions(keep=1, seed=point.seed)
        expected = choose_heads(point.order, 3, HEADS, options)
        assert [tuple(head) for head in point.removed] == expected
    assert {point.seed for point in points_of(found)} == set(range(2, 7))


def test_every_draw_finds_its_order_with_examples_of_its_own(
    classifier: Path, phrases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    derivatives, runs = TaskRun.derivatives, []

    def note(run: TaskRun, *args: object, **named: object) -> Derivatives:
        runs.append(run)
        return derivatives(run, *args, **named)

    monkeypatch.setattr(TaskRun, "derivatives", note)
    order = "importance:signed:l2"
    asked = {"orders": f"{order},random", "shares": "0.25", "seed": 1}
    found = find_pruning_curves(classifier, phrases, phrases, **asked, examples=7)
    assert [len(run.task) for run in runs] == [7] * 5
    assert len({line for run in runs for line in run.task.lines}) == 35
    assert all(set(run.task.labels) == {"good", "bad"} for run in runs)
    assert found.facts["found_with"]["examples"] == 7
    options = PruneOptions(keep=1, estimator="signed", normalisation="l2")
    points = points_of(found, order)
    for point, opened in zip(points, [*runs], strict=True):
        expected = choose_heads("importance", 3, HEADS, options, opened)
        assert [tuple(head) for head in point.removed] == expected
    # Other examples find another order, or the orders of these draws would be one.
    assert len({str(point.removed) for point in points}) > 1
    assert any("found and measured in one file" in one for one in found.warnings)


def test_fewer_examples_than_the_draws_need(
    classifier: Path, labelled: Path, phrases: Path
) -> None:
    asked = {"orders": "importance,random", "shares": "0.25"}
    few = find_pruning_curves(classifier, labelled, phrases, examples=9, **asked)
    assert any("8 examples for each of 5 draws, not 9" in one for one in few.warnings)
    with pytest.raises(UsageError, match="has 8 examples for 5 draws, each of which needs 2"):
        find_pruning_curves(classifier, labelled, labelled, **asked)


def test_one_order_is_one_sequence(found: PruningCurves) -> None:
    for order in ("reestimated", "ablation", "random"):
        small, large = (
            next(one.removed for one in points_of(found, order) if one.share == at)
            for at in (0.25, 0.5)
        )
        assert large[:3] == small


def test_losses_are_those_without_the_heads(
    found: PruningCurves, classifier: Path, labelled: Path
) -> None:
    opened = open_run(classifier, labelled, TaskOptions())
    for point in points_of(found)[::5]:
        gates = without([tuple(head) for head in point.removed], opened.shape)
        expected = opened.outcomes(gates[None]).losses[:, 0]
        assert found.outcomes.losses[:, point.setting] == near(expected)


def settings(found: PruningCurves, order: str, share: float) -> list[int]:
    return [one.setting for one in points_of(found, order) if one.share == share]


def test_differences_count_examples_and_draws(found: PruningCurves) -> None:
    frame = found.frame[found.frame["measure"] == "loss"].set_index(["order", "share"])
    row = frame.loc[("importance", 0.5)]
    losses = found.outcomes.losses
    draws = losses[:, settings(found, "random", 0.5)]
    differences = losses[:, settings(found, "importance", 0.5)] - draws
    by_example, by_draw = stats.sem(differences.mean(1)), stats.sem(differences.mean(0))
    error = np.hypot(by_example, by_draw)
    variances = by_example**2, by_draw**2
    df = error**4 / (variances[0] ** 2 / (len(losses) - 1) + variances[1] ** 2 / 4)
    assert row["difference"] == pytest.approx(differences.mean())
    assert row["p_value"] == pytest.approx(2 * stats.t.sf(abs(differences.mean()) / error, df))
    reach = stats.t.ppf(0.975, df) * error
    assert row["difference_high"] - row["difference"] == pytest.approx(reach)
    assert frame.loc[("random", 0.5), "value"] == pytest.approx(draws.mean())
    assert frame.loc[("random", 0.5), "sd_draws"] == pytest.approx(draws.mean(0).std(ddof=1))


def test_the_mean_over_shares(found: PruningCurves) -> None:
    rows = found.frame[
        (found.frame["measure"] == "accuracy") & (found.frame["order"] == "ablation")
    ]
    mean = rows[rows["share"].isna()].iloc[0]
    assert mean["value"] == pytest.approx(rows[rows["share"].notna()]["value"].mean())
    assert mean["n_removed"] == -1


def test_notes_say_that_nothing_varies() -> None:
    """An order without which no loss differs from that of the other has no p-value."""
    orders = ["middle", "random"]
    settings = np.ones((2, 5, 1), int)
    losses = np.random.default_rng(0).random((30, 2))
    options = CurveOptions(orders=orders, shares=[0.5], against="random")
    frame, _ = make_table(settings, [1], Outcomes(losses, losses, losses[:, 0]), [], options)
    assert frame["p_value"].isna().all()
    assert frame["note"].str.startswith("degenerate").tolist() == [True, False]


def test_corrected_over_orders_and_shares(found: PruningCurves) -> None:
    for _, own in found.frame.groupby("measure"):
        expected = adjust_p_values(own["p_value"].to_numpy(), "holm")
        assert own["p_adjusted"].to_numpy() == pytest.approx(expected, nan_ok=True)
        assert (own[own["order"] == "random"]["answer"] == "").all()


def test_units_of_metrics() -> None:
    rng = np.random.default_rng(5)
    targets = rng.integers(0, 2, 400).astype(float)
    flips = rng.random((400, 2)) < (0.1, 0.3)
    predictions = np.where(flips, 1 - targets[:, None], targets[:, None])
    outcomes = Outcomes(rng.random((400, 2)), predictions, targets)
    values, whole = outcomes.units(METRICS_OF_CLASSES), outcomes.measures(METRICS_OF_CLASSES)
    for name, own in values.items():
        assert own.mean(0) == pytest.approx(whole[name], abs=1 / 400)  # a jackknife's bias is 1 / n
    # The error by the jackknife is that by the bootstrap.
    places = rng.integers(0, 400, (2000, 400))
    resampled = [METRICS["matthews"](predictions[one, 1], targets[one]) for one in places]
    assert stats.sem(values["matthews"])[1] == pytest.approx(np.std(resampled), rel=0.2)


def test_role_orders(classifier: Path, labelled: Path, roles: Path) -> None:
    table = RoleTable.load(roles)
    role = next(one for one in table.roles if table.heads_with(one))
    having = table.heads_with(role)
    asked = {"orders": f"with_role:{role},random", "roles_from": roles}
    found = find_pruning_curves(classifier, labelled, **asked, shares=(0.25,))
    first = [one.removed for one in points_of(found, f"with_role:{role}")]
    assert len(first) == 5
    for removed in first:
        assert sum(tuple(head) in having for head in removed) == min(3, len(having))


def test_one_share_has_no_mean_and_is_tested_once(masked_lm: Path, plain: Path) -> None:
    found = find_pruning_curves(masked_lm, plain, orders="top,bottom,random", shares="0.5")
    assert found.frame["share"].tolist() == [0.5] * 3
    assert set(found.frame["measure"]) == {found.measure} == {"loss"}
    p_values = found.frame["p_value"].to_numpy()
    adjusted = found.frame["p_adjusted"].to_numpy()
    assert adjusted == pytest.approx(adjust_p_values(p_values, "fdr_bh"), nan_ok=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"orders": "luck"}, "order is 'luck'; it must be one of"),
        ({"orders": "random:l2"}, "'l2' is not known"),
        ({"orders": "random,random"}, "an order is named twice"),
        ({"orders": "top"}, "against is 'random'; it must be one of the orders: top"),
        ({"orders": "with_role:local,random"}, "needs role and roles_from, a folder"),
        ({"draws": "4"}, "draws is '4'; it must be a whole number from 5"),
        ({"shares": "0.5,1.2"}, "the share is 1.2; it must lie between 0 and 1"),
        ({"shares": "0.01", "orders": "random"}, "0.01 is 0 of 12 heads"),
        ({"correction": "max_t"}, "correction is .max_t.; it must be one of"),
        ({"orders": "random", "protect": "3-0"}, "3-0 is to be protected, .* no heads in that lay"),
        ({"orders": "random", "protect": "1-4"}, "the model has the heads 0, 1, 2, 3 there"),
        ({}, "the order importance needs a task"),
    ],
)
def test_what_cannot_be_meant(
    options: dict[str, str], message: str, classifier: Path, labelled: Path
) -> None:
    with pytest.raises(UsageError, match=message):
        find_pruning_curves(classifier, labelled, **options)


def test_skewed_draws_give_a_warning() -> None:
    """The losses of one draw in five are far from those of the others."""
    rng = np.random.default_rng(1)
    draws = np.array([0, 0.1, 0, 0.1, 2, 0, 0.1, 0.2, 0.3, 0.4])
    losses = rng.random((40, 1)) + draws
    options = CurveOptions(orders="top,random", shares="0.5")
    settings = np.arange(10).reshape(2, 5, 1)
    outcomes = Outcomes(losses, losses, losses[:, 0])
    _, warnings = make_table(settings, [1], outcomes, [], options)
    assert "Draws have skewed losses in top:" in warnings[0]


def test_command(classifier: Path, labelled: Path, phrases: Path, tmp_path: Path) -> None:
    asked = ["--shares", 0.5, "--test-examples", 6, "--examples", 4]
    asked += ["--test", labelled, "--out", tmp_path / "out"]
    result = run("pruning-curves", classifier, phrases, *asked)
    assert result.exit_code == 0, result.output
    assert "on 6 examples of" in result.stdout
    loaded = PruningCurves.load(tmp_path / "out")
    assert (loaded.facts["found_with"]["examples"], loaded.options.draws) == (4, 5)
    assert len(loaded.outcomes.losses) == 6
