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
from headroles.studies.removal.by_role import draw_others
from headroles.tasks import TaskOptions, open_run


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
    gates = torch.ones(4, 3, 4)
    for place, removed in enumerate([own, *(draw_others(own, heads, rng) for _ in range(3))]):
        for head in removed:
            gates[place][head] = 0
    losses = run.outcomes(gates).losses
    assert row["removed_loss"] == pytest.approx(losses[:, 0].mean())
    difference = losses[:, 0] - losses[:, 1:].mean(1)
    assert row["removed_difference"] == pytest.approx(difference.mean())
    assert row["p_removed"] == pytest.approx(stats.ttest_1samp(difference, 0).pvalue)


def test_others_are_of_the_same_layers() -> None:
    heads = [(layer, head) for layer in range(3) for head in range(4)]
    own = [(0, 0), (0, 1), (0, 2), (2, 3)]
    drawn = draw_others(own, heads, np.random.default_rng(1))
    assert sorted(layer for layer, _ in drawn) == [0, 2]  # layer 0 has one other head only
    assert not set(drawn) & set(own)


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
