"""Losses without heads, against models without them, and tests of SciPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from headroles import RoleTable, classify_heads, read_conllu
from headroles.errors import UsageError
from headroles.inference import adjust_p_values
from headroles.models.heads.surgery import remove_heads
from headroles.studies.importance.ablate import Ablations, ablate_heads
from headroles.tasks.options import TaskOptions
from headroles.tasks.running import open_run
from tests.commands import run
from tests.conftest import make_bert
from tests.rounding import near
from tests.tasks.conftest import make_task_model, save


@pytest.fixture(scope="module")
def found(classifier: Path, labelled: Path) -> Ablations:
    return ablate_heads(classifier, labelled, sets="single,others,layers")


def test_every_set_is_there(found: Ablations) -> None:
    assert found.frame["set"].value_counts().to_dict() == {"single": 12, "others": 12, "layers": 3}
    others = found.frame[found.frame["set"] == "others"]
    assert (others["n_removed"] == 3).all()
    assert others["removed"].tolist()[:2] == ["layer 0 but 0", "layer 0 but 1"]


def test_losses_are_those_of_models_without_the_heads(
    found: Ablations, labelled: Path, tmp_path: Path
) -> None:
    rows = found.frame.set_index("removed")
    for name, heads in {"1-2": [(1, 2)], "layer 2": [(2, head) for head in range(4)]}.items():
        model = make_task_model()
        remove_heads(model, heads)
        opened = open_run(save(model, tmp_path / name), labelled, TaskOptions())
        expected = opened.outcomes(torch.ones(1, 3, 4)).losses.mean()
        assert rows.loc[name, "loss"] == near(expected)


def test_tests_are_paired(found: Ablations) -> None:
    losses = found.outcomes.losses
    tested = stats.ttest_rel(losses[:, 1:], losses[:, :1])
    assert found.frame["p_value"].to_numpy() == pytest.approx(tested.pvalue)
    adjusted = adjust_p_values(tested.pvalue, "fdr_bh")
    assert found.frame["p_adjusted"].to_numpy() == pytest.approx(adjusted)
    interval = tested.confidence_interval()
    assert found.frame["ci_low"].to_numpy() == pytest.approx(interval.low)
    changes = losses[:, 1:] - losses[:, :1]
    ends = (
        stats.ttest_1samp(changes, -0.01, alternative="greater").pvalue,
        stats.ttest_1samp(changes, 0.01, alternative="less").pvalue,
    )
    assert found.frame["p_equivalence"].to_numpy() == pytest.approx(np.maximum(*ends))


def test_answers_follow_from_tests(found: Ablations) -> None:
    for row in found.frame.itertuples():
        differs = row.p_adjusted <= 0.05
        expected = ("worse" if row.loss_change > 0 else "better") if differs else "undecided"
        assert row.answer == expected
        assert row.equivalent == (row.p_equivalence_adjusted <= 0.05)
        assert row.examples_needed >= 2
    rises = found.rises()
    assert rises.shape == (3, 4)
    assert rises[1, 2] == found.frame.set_index("removed").loc["1-2", "loss_change"]


def test_by_role(
    classifier: Path, labelled: Path, roles: Path, sample: Path, tmp_path: Path
) -> None:
    found = ablate_heads(classifier, labelled, sets="roles", roles_from=roles)
    sizes = {row.removed: row.n_removed for row in found.frame.itertuples()}
    table = RoleTable.load(roles)
    having = {role: len(table.heads_with(role)) for role in table.roles}
    assert sizes == {role: n for role, n in having.items() if n}
    small = classify_heads(make_bert(layers=2), read_conllu(sample), tokenizer=str(classifier))
    small.save(tmp_path / "small")
    with pytest.raises(UsageError, match="of 2 layers x 4 heads, and the model has 3 x 4"):
        ablate_heads(classifier, labelled, sets="roles", roles_from=tmp_path / "small")


def test_masked_language_models_have_no_accuracy(masked_lm: Path, plain: Path) -> None:
    found = ablate_heads(masked_lm, plain, ablation="uniform", correction="holm", margin=50.0)
    assert found.frame["p_accuracy"].isna().all()
    assert found.frame["equivalent"].all()


def test_command(classifier: Path, labelled: Path, tmp_path: Path) -> None:
    arguments = ["ablate", classifier, labelled, "--out", tmp_path / "out"]
    result = run(*arguments, "--full", "--sets", "layers", "--ablation", "mean")
    assert result.exit_code == 0, result.output
    loaded = Ablations.load(tmp_path / "out")
    assert (len(loaded), loaded.options.ablation) == (3, "mean")
    result = run(*arguments, "--sets", "roles", "--overwrite")
    assert result.exit_code == 2
    assert "need roles" in " ".join(result.stderr.split())
