"""Whether heads with a role matter more: against losses of models without these heads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from headroles import RoleTable, classify_heads, read_conllu
from headroles.errors import UsageError
from headroles.models.heads.remaining import Head
from headroles.studies.importance import by_role
from headroles.studies.importance.by_role import (
    ByRoleOptions,
    ImportanceByRole,
    compare_removed,
    draw_like,
    importance_by_role,
    n_sets_like,
)
from headroles.studies.removals import without_each
from headroles.tasks.outcomes import Outcomes
from headroles.tasks.running import TaskRun
from tests.conftest import flat
from tests.tasks.conftest import HEADS as HEADS_OF_MODEL


@pytest.fixture(scope="module")
def found(classifier: Path, labelled: Path, roles: Path) -> ImportanceByRole:
    asked = {"roles_from": str(roles), "draws": 3, "permutations": 199}
    return importance_by_role(classifier, labelled, **asked)


def test_every_role_that_heads_have(found: ImportanceByRole, roles: Path) -> None:
    table = RoleTable.load(roles)
    having = {role: len(table.heads_with(role)) for role in table.roles}
    sizes = dict(zip(found.frame["role"], found.frame["heads"], strict=True))
    assert sizes == {role: size for role, size in having.items() if size}
    assert found.frame["p_importance"].dropna().between(1 / 200, 1).all()
    assert found.frame["overlap"].between(0, 1).all()


def test_ranks_the_loss_without_a_role_among_those_of_its_draws(
    found: ImportanceByRole, opened: TaskRun, roles: Path
) -> None:
    rng, table = np.random.default_rng(0), RoleTable.load(roles)
    orders = [[HEADS_OF_MODEL[place] for place in rng.permutation(12)] for _ in range(3)]
    for row in found.frame.itertuples():
        own = table.heads_with(row.role)
        if n_sets_like(own, HEADS_OF_MODEL) == 1:  # whole layers have the role
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
    found: ImportanceByRole, classifier: Path, labelled: Path, roles: Path
) -> None:
    asked = {"roles_from": str(roles), "draws": 1, "permutations": 99}
    some = importance_by_role(classifier, labelled, roles="delimiter*", **asked)
    expected = [role for role in found.frame["role"] if role.startswith("delimiter")]
    assert expected
    assert some.frame["role"].tolist() == expected
    own = found.frame.set_index("role").loc[expected, "importance_difference"]
    assert some.frame["importance_difference"].tolist() == pytest.approx(own.tolist())
    with pytest.raises(UsageError, match="there is no role 'delimitr'"):
        importance_by_role(classifier, labelled, roles="delimitr", **asked)


HEADS = [(layer, head) for layer in range(3) for head in range(6)]


def test_draws_are_of_all_heads_of_the_layers() -> None:
    own = [(0, 0), (0, 1), (2, 3)]
    assert n_sets_like(own, HEADS) == 15 * 6
    rng = np.random.default_rng(0)
    drawn = Counter(
        draw_like(own, [HEADS[place] for place in rng.permutation(18)]) for _ in range(9000)
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
    expected: list[float] = field(default_factory=list)

    def n_passes(self, gates: torch.Tensor) -> float:
        return float(len(gates))

    def expect(self, n_passes: float) -> None:
        self.expected.append(self.n_run + n_passes)

    def outcomes(self, gates: torch.Tensor) -> Outcomes:
        self.n_run += len(gates)
        losses = 1 + self.effects @ (1 - gates.reshape(len(gates), -1).double().numpy()).T
        return Outcomes(losses, np.full_like(losses, np.nan), losses[:, 0])


def removed(
    effects: np.ndarray, having: dict[str, list[Head]], draws: int
) -> tuple[dict[str, np.ndarray], AddedLosses]:
    added = AddedLosses(effects)
    options = ByRoleOptions(roles_from="-", draws=draws)
    return compare_removed(added, HEADS, having, options), added  # type: ignore[arg-type]


def random_roles(rng: np.random.Generator, sizes: Iterable[int]) -> dict[str, list[Head]]:
    return {
        str(at): [HEADS[place] for place in sorted(rng.permutation(18)[:size])]
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
    most, least = HEADS[9:12] + HEADS[15:], HEADS[6:9] + HEADS[12:15]
    found, _ = removed(effects, {"most": most, "least": least, "all": HEADS[:6]}, 399)
    assert (found["p_removed"][:2] <= 0.05).all()
    assert found["removed_difference"][0] > 0 > found["removed_difference"][1]
    assert (found["drawn_high"] < found["removed_loss"])[0]
    assert (found["drawn_low"] > found["removed_loss"])[1]
    assert found["draws"].tolist() == [399, 399, 0]
    assert np.isnan(found["p_removed"][2])


def test_says_how_many_draws_are_needed(
    found: ImportanceByRole, classifier: Path, labelled: Path, roles: Path
) -> None:
    assert "3 draws give no p-value below 0.5: nothing can be shown" in flat(found)
    n_roles = len(found)
    asked = {"roles_from": str(roles), "draws": 40, "permutations": 99}
    more = importance_by_role(classifier, labelled, **asked)
    assert f"one role alone among {n_roles}" in flat(more)
    assert f"take {40 * n_roles - 1}" in flat(more)


def test_without_any_role(classifier: Path, labelled: Path, sample: Path, tmp_path: Path) -> None:
    classify_heads(classifier, read_conllu(sample), threshold=500.0).save(tmp_path / "none")
    with pytest.raises(UsageError, match="no head has a role"):
        importance_by_role(classifier, labelled, roles_from=str(tmp_path / "none"))
