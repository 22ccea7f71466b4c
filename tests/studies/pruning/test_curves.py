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
from headroles.tasks.outcomes import METRICS, Derivatives, Outcomes
from headroles.tasks.running import TaskRun
from tests.rounding import near
from tests.tasks.conftest import HEADS, SENTENCES, write_labelled

METRICS_OF_CLASSES = ("accuracy", "f1", "matthews")
ORDERS = "importance,importance:signed:l2,reestimated,ablation,middle,random_per_layer,random"


@pytest.fixture(scope="module")
def phrases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As many examples as five draws of eight take."""
    return write_labelled(tmp_path_factory.mktemp("task") / "phrases.tsv", SENTENCES * 5)


@pytest.fixture(scope="module")
def found(classifier: Path, labelled: Path, phrases: Path, roles: Path) -> PruningCurves:
    table = RoleTable.load(roles)
    role = next(one for one in table.roles if 0 < len(table.heads_with(one)) <= 6)
    options: dict[str, Any] = {"shares": "0.25,0.5", "seed": 2, "correction": "holm", "steps": 2}
    options |= {"orders": f"{ORDERS},with_role:{role},without_role:{role}", "roles_from": roles}
    return find_pruning_curves(classifier, labelled, phrases, **options)


def points_of(found: PruningCurves, order: str = "", share: float = 0) -> list[Any]:
    """What each order, share and draw removes, of an ``order`` and ``share`` or of all."""
    points = [SimpleNamespace(**point) for point in found.facts["points"]]
    for point in points:
        point.removed = [tuple(head) for head in point.removed]
    return [one for one in points if order in ("", one.order) and share in (0, one.share)]


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
    assert len(found.outcomes.losses) == 40  # the test is taken whole
    options = PruneOptions(keep=1, estimator="signed", normalisation="l2")
    points = points_of(found, order)
    for point, opened in zip(points, [*runs], strict=True):
        assert point.removed == choose_heads("importance", 3, HEADS, options, opened)
    # Other examples find another order, or the orders of these draws would be one.
    assert len({str(point.removed) for point in points}) > 1
    assert any("chosen and measured in one file" in one for one in found.warnings)


def test_fewer_examples_than_the_draws_need(
    classifier: Path, labelled: Path, phrases: Path
) -> None:
    asked = {"orders": "importance,random", "shares": "0.25"}
    few = find_pruning_curves(classifier, labelled, phrases, **asked, examples=9)
    assert len(few.outcomes.losses) == 8
    assert few.facts["found_with"]["examples"] == 8
    assert any(
        "has 8 examples for each of 5 draws, not 9: give more" in text for text in few.warnings
    )
    with pytest.raises(UsageError, match="has 8 examples for 5 draws, each of which needs 2"):
        find_pruning_curves(classifier, labelled, labelled, **asked)


def test_every_order_is_one_sequence_those_without_examples_of_the_heads_of_prune(
    found: PruningCurves, roles: Path
) -> None:
    table = RoleTable.load(roles)
    for order in dict.fromkeys(one.order for one in points_of(found)):
        name, _, role = order.partition(":")
        small, large = (points_of(found, order, share) for share in (0.25, 0.5))
        assert {few.seed for few in small} == set(range(2, 7))
        for few, more in zip(small, large, strict=True):
            assert (few.seed, few.removed) == (more.seed, more.removed[:3])
            if order in ("random", "middle", "random_per_layer"):
                options = PruneOptions(keep=1, seed=few.seed)
                assert few.removed == choose_heads(order, 3, HEADS, options)
            if name == "with_role":
                having = table.heads_with(role)
                assert {*more.removed[: len(having)]} == {*having}
            elif name == "without_role":  # half of all heads, and no more than half have the role
                assert not {*more.removed} & {*table.heads_with(role)}


def test_losses_are_those_without_the_heads(found: PruningCurves, opened: TaskRun) -> None:
    for point in points_of(found)[::5]:
        expected = opened.outcomes(without(point.removed, opened.shape)[None]).losses[:, 0]
        assert found.outcomes.losses[:, point.setting] == near(expected)


def test_differences_count_examples_and_draws(found: PruningCurves) -> None:
    frame = found.frame[found.frame["measure"] == "loss"].set_index(["order", "share"])
    row = frame.loc[("importance", 0.5)]
    losses = found.outcomes.losses
    draws, own = (
        losses[:, [point.setting for point in points_of(found, order, 0.5)]]
        for order in ("random", "importance")
    )
    differences = own - draws
    by_example, by_draw = stats.sem(differences.mean(1)), stats.sem(differences.mean(0))
    error = np.hypot(by_example, by_draw)
    df = error**4 / (by_example**4 / (len(losses) - 1) + by_draw**4 / 4)
    assert row["difference"] == pytest.approx(differences.mean())
    assert row["p_value"] == pytest.approx(2 * stats.t.sf(abs(differences.mean()) / error, df))
    reach = stats.t.ppf(0.975, df) * error
    assert row["difference_high"] - row["difference"] == pytest.approx(reach)
    assert frame.loc[("random", 0.5), "value"] == pytest.approx(draws.mean())
    assert frame.loc[("random", 0.5), "sd_draws"] == pytest.approx(draws.mean(0).std(ddof=1))


def test_means_over_shares_and_corrections_over_orders_and_shares(found: PruningCurves) -> None:
    for _, own in found.frame.groupby("measure"):
        expected = adjust_p_values(own["p_value"].to_numpy(), "holm")
        assert own["p_adjusted"].to_numpy() == pytest.approx(expected, nan_ok=True)
        assert (own[own["order"] == "random"]["answer"] == "").all()
        rows = own[own["order"] == "ablation"]
        mean = rows[rows["share"].isna()].iloc[0]
        assert mean["value"] == pytest.approx(rows[rows["share"].notna()]["value"].mean())
        assert mean["n_removed"] == -1


def test_one_share_has_no_mean_and_is_tested_once(masked_lm: Path, plain: Path) -> None:
    found = find_pruning_curves(masked_lm, plain, orders="top,bottom,random", shares="0.5")
    assert found.frame["share"].tolist() == [0.5] * 3
    assert set(found.frame["measure"]) == {found.measure} == {"loss"}
    expected = adjust_p_values(found.frame["p_value"].to_numpy(), "fdr_bh")
    assert found.frame["p_adjusted"].to_numpy() == pytest.approx(expected, nan_ok=True)


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


def test_draws_far_from_the_others_give_a_warning() -> None:
    apart = np.array([0, 0.1, 0, 0.1, 2, 0, 0.1, 0.2, 0.3, 0.4])
    losses = np.random.default_rng(0).random((40, 1)) + apart
    outcomes = Outcomes(losses, losses, losses[:, 0])
    options = CurveOptions(orders="top,random", shares="0.5")
    _, warnings = make_table(np.arange(10).reshape(2, 5, 1), [1], outcomes, [], options)
    assert "Draws have skewed losses in top:" in warnings[0]
