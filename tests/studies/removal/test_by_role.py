"""Whether heads with a role matter more: against losses of models without these heads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from typer.testing import CliRunner

from headroles import RoleTable, classify_heads, read_conllu
from headroles.cli import app
from headroles.errors import UsageError
from headroles.studies.removal import RoleImportance, compare_roles_in_task
from headroles.studies.removal.role_removals import draw_pair
from headroles.tasks import TaskOptions, open_run
from tests.inference.conftest import crossed_t


@pytest.fixture(scope="module")
def found(classifier: Path, labelled: Path, roles: Path) -> RoleImportance:
    return compare_roles_in_task(
        classifier, labelled, roles_from=str(roles), draws=3, permutations=199
    )


def test_every_role_that_heads_have(found: RoleImportance, roles: Path) -> None:
    table = RoleTable.load(roles)
    sizes = {role: len(table.heads_with(role)) for role in table.roles}
    assert dict(zip(found.frame["role"], found.frame["heads"], strict=True)) == {
        role: size for role, size in sizes.items() if size
    }
    assert found.frame["p_importance"].dropna().between(1 / 200, 1).all()
    assert found.frame["overlap"].between(0, 1).all()


def test_losses_without_a_role(
    found: RoleImportance, classifier: Path, labelled: Path, roles: Path
) -> None:
    row = found.frame.iloc[0]
    run = open_run(classifier, labelled, TaskOptions())
    heads = [(layer, head) for layer in range(3) for head in range(4)]
    own = RoleTable.load(roles).heads_with(row["role"])
    rng = np.random.default_rng(0)
    pairs = [draw_pair(own, heads, rng) for _ in range(3)]
    gates = torch.ones(3, 2, 3, 4)
    for draw, pair in enumerate(pairs):
        for side, removed in enumerate(pair):
            for head in removed:
                gates[draw, side][head] = 0
    losses = run.outcomes(gates.flatten(0, 1)).losses.reshape(-1, 3, 2)
    assert row["drawn_heads"] == len(pairs[0][0]) == len(pairs[0][1])
    assert row["removed_loss"] == pytest.approx(losses[..., 0].mean())
    assert row["drawn_loss"] == pytest.approx(losses[..., 1].mean())
    difference = losses[..., 0] - losses[..., 1]
    assert row["removed_difference"] == pytest.approx(difference.mean())
    by_example = stats.ttest_1samp(difference.mean(1), 0)
    crossed = crossed_t(difference[:, :, None])
    assert row["p_removed"] == pytest.approx(crossed.p_value[0])
    assert row["p_removed"] > by_example.pvalue  # draws are random, too


def test_some_of_the_roles(
    found: RoleImportance, classifier: Path, labelled: Path, roles: Path
) -> None:
    asked = {"roles_from": str(roles), "draws": 1, "permutations": 99}
    some = compare_roles_in_task(classifier, labelled, roles="delimiter*", **asked)
    expected = [role for role in found.frame["role"] if role.startswith("delimiter")]
    assert expected
    assert some.frame["role"].tolist() == expected
    own = found.frame.set_index("role").loc[expected, "importance_difference"]
    assert some.frame["importance_difference"].tolist() == pytest.approx(own.tolist())
    with pytest.raises(UsageError, match="there is no role 'delimitr'"):
        compare_roles_in_task(classifier, labelled, roles="delimitr", **asked)


def test_as_many_with_the_role_as_without_it() -> None:
    heads = [(layer, head) for layer in range(3) for head in range(4)]
    own = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (1, 3), (2, 3)]
    chosen = set()
    for seed in range(9):
        having, others = draw_pair(own, heads, np.random.default_rng(seed))
        # Layer 0 has one other head only, and layer 1 none.
        assert [layer for layer, _ in having] == [layer for layer, _ in others] == [0, 2]
        assert set(having) <= set(own)
        assert not set(others) & set(own)
        chosen.add(having[0])
    assert len(chosen) > 1


def test_saves_loads_and_shows(found: RoleImportance, tmp_path: Path) -> None:
    found.save(tmp_path / "out")
    assert RoleImportance.load(tmp_path / "out").frame.equals(found.frame)
    assert "heads with a role less others of their layers" in repr(found)


def test_command(classifier: Path, labelled: Path, roles: Path, tmp_path: Path) -> None:
    arguments = ["by-role", str(classifier), str(labelled), "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "name the folder of roles" in result.stderr
    few = ["--roles-from", str(roles), "--draws", "2", "--permutations", "99"]
    result = CliRunner().invoke(app, [*arguments, *few])
    assert result.exit_code == 0, result.output


def test_without_any_role(classifier: Path, labelled: Path, sample: Path, tmp_path: Path) -> None:
    classify_heads(classifier, read_conllu(sample), threshold=500.0).save(tmp_path / "none")
    with pytest.raises(UsageError, match="no head has a role"):
        compare_roles_in_task(classifier, labelled, roles_from=str(tmp_path / "none"))
