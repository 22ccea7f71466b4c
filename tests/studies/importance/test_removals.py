"""Losses without heads, by role and by task: against models without them, and tests of SciPy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from headroles import RoleTable, classify_heads, read_conllu
from headroles.errors import StorageError, UsageError
from headroles.inference import adjust_p_values
from headroles.models.heads.remaining import Head
from headroles.models.heads.surgery import remove_heads
from headroles.studies.importance import by_role
from headroles.studies.importance.ablate import Ablations, ablate_heads
from headroles.studies.importance.by_role import (
    ByRoleOptions,
    ImportanceByRole,
    compare_removed,
    draw_like,
    importance_by_role,
    n_sets_like,
)
from headroles.studies.importance.by_task import DropsByTask, drops_by_task, relative_drops
from headroles.studies.importance.importance import find_importance
from headroles.studies.removals import without_each
from headroles.tasks.outcomes import Outcomes
from headroles.tasks.running import TaskRun
from tests.commands import run_well
from tests.conftest import changed, flat, make_bert
from tests.rounding import near
from tests.studies.conftest import losses_of
from tests.tasks.conftest import HEADS, SENTENCES, make_task_model, save, write_labelled


@pytest.fixture(scope="module")
def ablated(classifier: Path, labelled: Path) -> Ablations:
    return ablate_heads(classifier, labelled, sets="single,others,layers")


def test_losses_are_those_of_models_without_the_heads(
    ablated: Ablations, labelled: Path, tmp_path: Path
) -> None:
    counts = ablated.frame["set"].value_counts().to_dict()
    assert counts == {"single": 12, "others": 12, "layers": 3}
    others = ablated.frame.loc[ablated.frame["set"] == "others", ["removed", "n_removed"]]
    assert others.to_numpy().tolist() == [[f"layer {at} but {head}", 3] for at, head in HEADS]
    rows = ablated.frame.set_index("removed")
    for name, heads in {"1-2": [(1, 2)], "layer 2": [(2, head) for head in range(4)]}.items():
        model = make_task_model()
        remove_heads(model, heads)
        expected = losses_of(save(model, tmp_path / name), labelled).mean()
        assert rows.loc[name, "loss"] == near(expected)
    changes = ablated.frame.loc[ablated.frame["set"] == "single", "loss_change"].to_numpy()
    assert ablated.rises().tolist() == changes.reshape(3, 4).tolist()


def test_a_table_without_a_head_of_a_layer_is_refused(ablated: Ablations, tmp_path: Path) -> None:
    of_layer = ablated.where(layer=1)
    assert Ablations.load(of_layer.save(tmp_path / "layer")) == of_layer
    for row, name in ((1, "single"), (13, "others")):
        assert ablated.frame["set"][row] == name
        lacking = replace(ablated, frame=ablated.frame.drop(index=row))
        with pytest.raises(StorageError, match=r"parquet: it has 3 of the 4 heads of layer 0;"):
            Ablations.load(lacking.save(tmp_path / name))


def test_tests_are_paired(ablated: Ablations) -> None:
    losses = ablated.outcomes.losses
    tested = stats.ttest_rel(losses[:, 1:], losses[:, :1])
    changes = losses[:, 1:] - losses[:, :1]
    ends = (
        stats.ttest_1samp(changes, -0.01, alternative="greater").pvalue,
        stats.ttest_1samp(changes, 0.01, alternative="less").pvalue,
    )
    for column, expected in (
        ("p_value", tested.pvalue),
        ("p_adjusted", adjust_p_values(tested.pvalue, "fdr_bh")),
        ("ci_low", tested.confidence_interval().low),
        ("p_equivalence", np.maximum(*ends)),
    ):
        assert ablated.frame[column].to_numpy() == pytest.approx(expected)
    for row in ablated.frame.itertuples():
        differs = row.p_adjusted <= 0.05
        expected = ("worse" if row.loss_change > 0 else "better") if differs else "undecided"
        assert row.answer == expected
        assert row.equivalent == (row.p_equivalence_adjusted <= 0.05)
        assert row.examples_needed >= 2


def sizes_of(roles: Path) -> dict[str, int]:
    """How many heads have each role that any head has."""
    table = RoleTable.load(roles)
    return {role: len(heads) for role in table.roles if (heads := table.heads_with(role))}


def test_sets_of_heads_by_role(classifier: Path, labelled: Path, roles: Path) -> None:
    frame = ablate_heads(classifier, labelled, sets="roles", roles_from=roles).frame
    assert frame.set_index("removed")["n_removed"].to_dict() == sizes_of(roles)


def test_masked_language_models_have_no_accuracy(masked_lm: Path, plain: Path) -> None:
    task = find_importance(masked_lm, plain).record.task
    assert (task.objective, task.metrics, task.examples) == ("masked_lm", [], 8)
    ablated = ablate_heads(masked_lm, plain, ablation="uniform", correction="holm", margin=50.0)
    assert ablated.frame["p_accuracy"].isna().all()
    assert ablated.frame["equivalent"].all()


# Heads with a role.


@pytest.fixture(scope="module")
def by_roles(classifier: Path, labelled: Path, roles: Path) -> ImportanceByRole:
    asked = {"roles_from": str(roles), "draws": 3, "permutations": 199}
    return importance_by_role(classifier, labelled, **asked)


def test_ranks_the_loss_without_a_role_among_those_of_its_draws(
    by_roles: ImportanceByRole, opened: TaskRun, roles: Path
) -> None:
    assert by_roles.frame.set_index("role")["heads"].to_dict() == sizes_of(roles)
    assert by_roles.frame["p_importance"].dropna().between(1 / 200, 1).all()
    assert by_roles.frame["overlap"].between(0, 1).all()
    rng, table = np.random.default_rng(0), RoleTable.load(roles)
    orders = [[HEADS[place] for place in rng.permutation(12)] for _ in range(3)]
    for row in by_roles.frame.itertuples():
        own = table.heads_with(row.role)
        if n_sets_like(own, HEADS) == 1:  # whole layers have the role
            assert row.draws == 0
            assert np.isnan(row.p_removed)
            continue
        sets = [own, *(draw_like(own, order) for order in orders)]
        observed, *drawn = opened.outcomes(without_each(sets, (3, 4))).losses.mean(0)
        assert row.removed_loss == pytest.approx(observed)
        assert row.drawn_loss == pytest.approx(np.mean(drawn))
        assert row.removed_difference == pytest.approx(observed - np.mean(drawn))
        reach = 1e-5 * observed  # what is closer ties
        above, below = (sum(side * (one - observed) >= -reach for one in drawn) for side in (1, -1))
        assert row.p_removed == pytest.approx(min(1, 2 * (1 + min(above, below)) / 4))


def test_some_of_the_roles(
    by_roles: ImportanceByRole, classifier: Path, labelled: Path, roles: Path
) -> None:
    asked = {"roles_from": str(roles), "draws": 40, "permutations": 99}
    some = importance_by_role(classifier, labelled, roles="delimiter*", **asked)
    own = by_roles.frame[by_roles.frame["role"].str.startswith("delimiter")]
    assert len(own) > 1
    assert some.frame["role"].tolist() == own["role"].tolist()
    differences = [frame["importance_difference"].tolist() for frame in (some.frame, own)]
    assert differences[0] == pytest.approx(differences[1])
    # How many draws are needed.
    assert "3 draws give no p-value below 0.5: nothing can be shown" in flat(by_roles)
    assert f"one role alone among {len(own)}" in flat(some)
    assert f"take {40 * len(own) - 1}" in flat(some)


def test_a_first_answer_takes_fewer_draws_and_examples(
    by_roles: ImportanceByRole, classifier: Path, labelled: Path, roles: Path
) -> None:
    asked = {"roles_from": str(roles), "roles": "delimiter*", "permutations": 99}
    first = importance_by_role(classifier, labelled, quick=True, **asked)
    enough_for_one = 40 * len(first.frame) - 1
    assert (first.options.draws, first.options.examples) == (max(99, enough_for_one), 64)
    assert first.frame["draws"].max() <= first.options.draws
    assert "cannot show one role" not in flat(first)
    fewer = ByRoleOptions(quick=True, draws=9, examples=50).at_speed
    assert (fewer.draws, fewer.examples) == (9, 50)
    assert ByRoleOptions(draws=200).at_speed.draws == 200


SIX_HEADS = [(layer, head) for layer in range(3) for head in range(6)]


def test_draws_are_of_all_heads_of_the_layers() -> None:
    own = [(0, 0), (0, 1), (2, 3)]
    assert n_sets_like(own, SIX_HEADS) == 15 * 6
    rng = np.random.default_rng(0)
    drawn = Counter(
        draw_like(own, [SIX_HEADS[place] for place in rng.permutation(18)]) for _ in range(9000)
    )
    assert len(drawn) == 90  # the role's own heads among them
    assert all([layer for layer, _ in one] == [0, 0, 2] for one in drawn)
    assert stats.chisquare(list(drawn.values())).pvalue > 0.001


@dataclass
class AddedLosses:
    """Stand-in for a run whose losses are sums over removed heads; counts sets of heads."""

    effects: np.ndarray
    shape: tuple[int, int] = (3, 6)
    n_run: int = 0

    def n_passes(self, gates: torch.Tensor) -> float:
        return float(len(gates))

    def expect(self, n_passes: float) -> None:
        """Progress, which nobody is shown."""

    def outcomes(self, gates: torch.Tensor) -> Outcomes:
        self.n_run += len(gates)
        losses = 1 + self.effects @ (1 - gates.reshape(len(gates), -1).double().numpy()).T
        return Outcomes(losses, np.full_like(losses, np.nan), losses[:, 0])


def removed(
    effects: np.ndarray, having: dict[str, list[Head]], draws: int
) -> tuple[dict[str, np.ndarray], AddedLosses]:
    added = AddedLosses(effects)
    options = ByRoleOptions(roles_from="-", draws=draws)
    return compare_removed(added, SIX_HEADS, having, options), added  # type: ignore[arg-type]


def random_roles(rng: np.random.Generator, sizes: Iterable[int]) -> dict[str, list[Head]]:
    return {
        str(at): [SIX_HEADS[place] for place in sorted(rng.permutation(18)[:size])]
        for at, size in enumerate(sizes)
    }


def test_random_roles_are_shown_as_often_as_said() -> None:
    """Draws of the other heads alone would show two in three of them."""
    rng = np.random.default_rng(1)
    effects = rng.exponential(size=18) ** 2 + 0.1 * rng.normal(size=(50, 18))
    found, added = removed(effects, random_roles(rng, rng.integers(2, 9, 400)), 199)
    assert (found["p_removed"] <= 0.05).mean() < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
    assert (found["p_removed"] <= 0.2).mean() == pytest.approx(0.2, abs=0.07)
    assert (found["draws"] == 199).sum() < 100  # most are decided before
    assert added.n_run < 40 * 400


def test_draws_that_cannot_change_an_answer_are_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    effects = rng.exponential(size=18) ** 3 + 0.1 * rng.normal(size=(50, 18))
    having = random_roles(rng, [4] * 100)
    some, few = removed(effects, having, 99)
    monkeypatch.setattr(by_role, "enough_draws", lambda options: 100)
    whole, all_of_them = removed(effects, having, 99)
    assert (whole["draws"] == 99).all()
    shown = whole["p_removed"] <= 0.05
    assert 0 < shown.sum() < 100
    assert ((some["p_removed"] <= 0.05) == shown).all()
    assert (some["p_removed"] >= 0.05 - 1e-9)[some["draws"] < 99].all()
    assert some["draws"].sum() < whole["draws"].sum() / 3
    assert few.n_run < all_of_them.n_run


def test_heads_that_matter_are_shown() -> None:
    effects = np.tile(np.arange(18) % 6, (20, 1)) * np.linspace(0.5, 1, 20)[:, None]
    most, least = SIX_HEADS[9:12] + SIX_HEADS[15:], SIX_HEADS[6:9] + SIX_HEADS[12:15]
    found, _ = removed(effects, {"most": most, "least": least, "all": SIX_HEADS[:6]}, 399)
    assert (found["p_removed"][:2] <= 0.05).all()
    assert found["removed_difference"][0] > 0 > found["removed_difference"][1]
    assert (found["drawn_high"] < found["removed_loss"])[0]
    assert (found["drawn_low"] > found["removed_loss"])[1]
    assert found["draws"].tolist() == [399, 399, 0]
    assert np.isnan(found["p_removed"][2])


def test_roles_that_do_not_fit(
    classifier: Path, labelled: Path, roles: Path, sample: Path, tmp_path: Path
) -> None:
    small = classify_heads(make_bert(layers=2), read_conllu(sample), tokenizer=str(classifier))
    none = classify_heads(classifier, read_conllu(sample), threshold=500.0)
    folders = [one.save(tmp_path / name) for name, one in (("small", small), ("none", none))]
    for study, asked, message in (
        (ablate_heads, {"sets": "roles", "roles_from": folders[0]}, "of 2 layers x 4 heads, and"),
        (importance_by_role, {"roles_from": folders[0]}, "of 2 layers x 4 heads, and"),
        (importance_by_role, {"roles_from": folders[1]}, "no head has a role"),
        (importance_by_role, {"roles_from": roles, "roles": "delimitr"}, "no role 'delimitr'"),
    ):
        with pytest.raises(UsageError, match=message):
            study(classifier, labelled, **asked)


# Several tasks.


TASKS = ("long", "short")


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("tasks") / "short.tsv"
    rows = [(" ".join(text.split()[:3]), str(label)) for text, label in SENTENCES]
    return write_labelled(file, rows)


@pytest.fixture(scope="module")
def ablations(classifier: Path, labelled: Path, short: Path) -> list[Ablations]:
    return [ablate_heads(classifier, one, sets="layers,thirds") for one in (labelled, short)]


@pytest.fixture(scope="module")
def drops(ablations: list[Ablations]) -> DropsByTask:
    return drops_by_task(ablations, TASKS, correction="none")


def rows_of(drops: DropsByTask, task: str, measure: str = "loss") -> pd.DataFrame:
    return drops.frame.set_index(["task", "measure", "removed"]).sort_index().loc[task, measure]


def test_relative_drops(drops: DropsByTask, ablations: list[Ablations]) -> None:
    for name, alone in zip(TASKS, ablations, strict=True):
        whole, rows = alone.facts["measured"], alone.frame.set_index("removed")
        for measure, sign in (("accuracy", -1), ("loss", 1)):
            own = rows_of(drops, name, measure).loc[rows.index]
            expected = sign * rows[f"{measure}_change"].to_numpy() / whole[measure]
            assert own["relative_drop"].to_numpy() == pytest.approx(expected)
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
    drops: DropsByTask, ablations: list[Ablations]
) -> None:
    profiles = []
    for one in ablations:
        layers = [0, *(1 + one.frame.index[one.frame["set"] == "layers"])]
        losses = one.outcomes.losses[:, layers]
        relative = relative_drops(losses, losses.mean(0), "loss")
        profiles.append(relative - relative.mean(1, keepdims=True))
    tested = stats.ttest_ind(*profiles, equal_var=False)
    layers = [f"layer {number}" for number in range(3)]
    own, other = (rows_of(drops, name).loc[layers] for name in TASKS)
    assert own["deviation"].to_numpy() == pytest.approx(profiles[0].mean(0) - profiles[1].mean(0))
    assert own["p_deviation"].to_numpy() == pytest.approx(tested.pvalue)
    assert other["deviation"].to_numpy() == pytest.approx(-own["deviation"].to_numpy())


def test_what_does_not_vary(ablations: list[Ablations]) -> None:
    """Without a change of any loss there is no p-value; that all accuracy is lost is shown."""
    made = []
    for alone in ablations:
        outcomes = alone.outcomes
        losses, predictions = outcomes.losses.copy(), outcomes.predictions.copy()
        losses[:, 1] = losses[:, 0]
        predictions[:, 0] = np.where(np.arange(8) < 2, 1 - outcomes.targets, outcomes.targets)
        predictions[:, 1] = 1 - outcomes.targets
        facts = {"measured": dict.fromkeys(alone.facts["measured"], 0.5)}
        outcomes = replace(outcomes, losses=losses, predictions=predictions)
        made.append(changed(replace(alone, outcomes=outcomes), facts=facts))
    found = drops_by_task(made, TASKS, correction="none")
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


def test_what_can_be_compared(
    ablations: list[Ablations], classifier: Path, labelled: Path, tmp_path: Path
) -> None:
    """Models of other sizes by thirds."""
    small = save(make_task_model(num_attention_heads=2), tmp_path / "small")
    first, other = ablations[0], ablate_heads(small, labelled, sets="layers,thirds")
    found = drops_by_task([first, other], TASKS)
    assert set(found.frame["set"]) == {"thirds"}
    assert any("share their examples" in one for one in found.warnings)
    layers = ablate_heads(small, labelled, sets="layers")
    uniform = ablate_heads(classifier, labelled, sets="layers", ablation="uniform")
    single = ablate_heads(classifier, labelled)
    for given, names, message in (
        ([first], TASKS[:1], "1 task is given"),
        (ablations, ["a", "a"], "are called a, a; give each a different name"),
        ([first, layers], TASKS, "only thirds of their layers can be compared"),
        ([first, uniform], TASKS, "zero in long, uniform in short"),
        ([first, single], TASKS, "no removal is in all of long, short"),
    ):
        with pytest.raises(UsageError, match=message):
            drops_by_task(given, names)


def test_a_metric_that_no_model_reaches_is_left_out(drops: DropsByTask) -> None:
    for name in ("f1", "matthews"):
        reached = [one.facts["measured"][name] for one in drops.record.sources.values()]
        is_skipped = any(one.startswith(f"{name} is skipped") for one in drops.warnings)
        assert (name in drops.measures, is_skipped) == (min(reached) > 0, min(reached) <= 0)


def test_command_of_several_tasks(ablations: list[Ablations], tmp_path: Path) -> None:
    folders = [made.save(tmp_path / name) for name, made in zip(TASKS, ablations, strict=True)]
    for given, names in ([], TASKS), (["--names", "one,other"], ("one", "other")):
        out = tmp_path / f"drops in {names[0]}"
        run_well("by-task", *folders, *given, "--out", out)
        assert DropsByTask.load(out).frame["task"].unique().tolist() == [*names]
