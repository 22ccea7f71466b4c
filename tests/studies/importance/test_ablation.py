"""Losses without heads, against models without them, and tests of SciPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from headroles import RoleTable, classify_heads, read_conllu
from headroles.errors import UsageError
from headroles.inference import adjust_p_values
from headroles.models.heads.surgery import remove_heads
from headroles.studies.importance.ablate import Ablations, ablate_heads
from tests.commands import run
from tests.conftest import make_bert
from tests.rounding import near
from tests.studies.conftest import losses_of
from tests.tasks.conftest import make_task_model, save


@pytest.fixture(scope="module")
def found(classifier: Path, labelled: Path) -> Ablations:
    return ablate_heads(classifier, labelled, sets="single,others,layers")


def test_losses_are_those_of_models_without_the_heads(
    found: Ablations, labelled: Path, tmp_path: Path
) -> None:
    assert found.frame["set"].value_counts().to_dict() == {"single": 12, "others": 12, "layers": 3}
    others = found.frame[found.frame["set"] == "others"]
    assert (others["n_removed"] == 3).all()
    assert others["removed"].tolist()[:2] == ["layer 0 but 0", "layer 0 but 1"]
    rows = found.frame.set_index("removed")
    for name, heads in {"1-2": [(1, 2)], "layer 2": [(2, head) for head in range(4)]}.items():
        model = make_task_model()
        remove_heads(model, heads)
        expected = losses_of(save(model, tmp_path / name), labelled).mean()
        assert rows.loc[name, "loss"] == near(expected)
    rises = found.rises()
    assert rises.shape == (3, 4)
    assert rises[1, 2] == rows.loc["1-2", "loss_change"]


def test_tests_are_paired(found: Ablations) -> None:
    losses = found.outcomes.losses
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
        assert found.frame[column].to_numpy() == pytest.approx(expected)
    for row in found.frame.itertuples():
        differs = row.p_adjusted <= 0.05
        expected = ("worse" if row.loss_change > 0 else "better") if differs else "undecided"
        assert row.answer == expected
        assert row.equivalent == (row.p_equivalence_adjusted <= 0.05)
        assert row.examples_needed >= 2


def test_by_role(
    classifier: Path, labelled: Path, roles: Path, sample: Path, tmp_path: Path
) -> None:
    found = ablate_heads(classifier, labelled, sets="roles", roles_from=roles)
    table = RoleTable.load(roles)
    having = {role: len(table.heads_with(role)) for role in table.roles}
    sizes = dict(zip(found.frame["removed"], found.frame["n_removed"], strict=True))
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
    given = ("--full", "--sets", "layers", "--ablation", "mean", "--out", tmp_path / "out")
    result = run("ablate", classifier, labelled, *given)
    assert result.exit_code == 0, result.output
    loaded = Ablations.load(tmp_path / "out")
    assert (len(loaded), loaded.options.ablation) == (3, "mean")
