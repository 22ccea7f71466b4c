"""Assignment of roles from scores made by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from headroles.errors import StorageError, UsageError
from headroles.roles import COLUMNS, RoleTable, assign_roles
from headroles.scores import HeadScores

ROLES = ("local", "block", "syntactic")


@pytest.fixture
def scores() -> HeadScores:
    """2 layers x 3 heads over 30 examples; heads of layer 1 are strong, strongest last."""
    rng = np.random.default_rng(0)
    means = np.array([[2.0, 2.5, 2.9], [3.5, 4.0, 6.0]])
    values = rng.normal(means[None, :, :, None], 1.0, size=(30, 2, 3, 3)).astype(np.float32)
    values[1:, ..., 1] = np.nan  # block: one example only
    values[10:, ..., 2] = np.nan
    values[:, 1, 2, 0] = 5.0  # a constant head
    counts = np.full((30, 3), 9)
    counts[1:, 1] = counts[10:, 2] = 0
    return HeadScores(
        ids=tuple(f"e{k}" for k in range(30)),
        documents=("d",) * 30,
        lengths=np.full(30, 12),
        roles=ROLES,
        values=values,
        counts=counts,
        provenance={"schema": 1, "model": {}},
    )


def row(table: RoleTable, layer: int, head: int, role: str) -> pd.Series:
    frame = table.frame
    chosen = frame[(frame.layer == layer) & (frame["head"] == head) & (frame.role == role)]
    assert len(chosen) == 1
    return chosen.iloc[0]


def test_columns_and_rows(scores: HeadScores) -> None:
    table = assign_roles(scores)
    assert tuple(table.frame.columns) == COLUMNS
    assert len(table) == 2 * 3 * 3
    assert table.roles == ROLES


def test_a_row_is_the_test_of_its_head(scores: HeadScores) -> None:
    table = assign_roles(scores, correction="none")
    sample = scores.values[:10, 1, 1, 2].astype(float)
    expected = stats.ttest_1samp(sample, 3, alternative="greater")
    found = row(table, 1, 1, "syntactic")
    assert found.n == 10
    assert found["mean"] == pytest.approx(sample.mean())
    assert found.p_value == found.p_adjusted == pytest.approx(expected.pvalue)
    assert found.effect_size == pytest.approx((sample.mean() - 3) / sample.std(ddof=1))


def test_strong_heads_get_the_role(scores: HeadScores) -> None:
    table = assign_roles(scores, correction="holm")
    assert (1, 1) in table.heads_with("local")
    assert not [head for head in table.heads_with("local") if head[0] == 0]


def test_untestable_and_degenerate(scores: HeadScores) -> None:
    table = assign_roles(scores)
    untestable = row(table, 1, 2, "block")
    assert untestable.note.startswith("untestable")
    assert np.isnan(untestable.p_adjusted)
    assert not untestable.assigned
    constant = row(table, 1, 2, "local")
    assert constant.note.startswith("degenerate")
    assert np.isnan(constant.p_value)
    assert constant.assigned


def test_a_constant_head_at_the_threshold_has_no_role(scores: HeadScores) -> None:
    assert not row(assign_roles(scores, threshold=5.0), 1, 2, "local").assigned


def test_the_family_decides_what_is_corrected_together(scores: HeadScores) -> None:
    together = assign_roles(scores, correction="bonferroni")
    apart = assign_roles(scores, correction="bonferroni", family="role")
    p = row(together, 1, 0, "syntactic").p_value
    # 11 of 18 tests were made: block has one example, one local head is constant
    assert row(together, 1, 0, "syntactic").p_adjusted == pytest.approx(min(1, 11 * p))
    assert row(apart, 1, 0, "syntactic").p_adjusted == pytest.approx(min(1, 6 * p))


def test_published_preset(scores: HeadScores) -> None:
    table = assign_roles(scores, preset="published")
    sample = scores.values[:, 1, 0, 0].astype(float)
    statistic = (sample.mean() - 3) / (sample.std() / np.sqrt(len(sample)))
    found = row(table, 1, 0, "local")
    assert found.statistic == pytest.approx(statistic)
    assert found.p_adjusted == found.p_value


def test_permuting_heads_permutes_the_table(scores: HeadScores) -> None:
    order = [2, 0, 1]
    permuted = HeadScores(
        **{**vars(scores), "values": np.ascontiguousarray(scores.values[:, :, order])}
    )
    before, after = assign_roles(scores), assign_roles(permuted)
    for new, old in enumerate(order):
        for role in ROLES:
            left, right = row(after, 1, new, role), row(before, 1, old, role)
            pd.testing.assert_series_equal(left.drop("head"), right.drop("head"), check_names=False)


def test_views(scores: HeadScores) -> None:
    table = assign_roles(scores)
    counts = table.counts()
    assert counts.loc["local", "total"] == len(table.heads_with("local"))
    assert list(counts.columns) == [0, 1, "total"]
    wide = table.wide()
    assert list(wide.columns) == ["layer", "head", *ROLES]
    assert int(wide["local"].sum()) == counts.loc["local", "total"]
    together = table.colocation()
    assert together.loc["local", "local"] == counts.loc["local", "total"]
    both = set(table.heads_with("local")) & set(table.heads_with("syntactic"))
    assert together.loc["local", "syntactic"] == len(both)
    assert table.assigned["mean"].is_monotonic_decreasing


def test_shows_itself(scores: HeadScores) -> None:
    table = assign_roles(scores)
    assert "18 tests" in repr(table)
    assert "<table" in table._repr_html_()


def test_save_and_load(scores: HeadScores, tmp_path: object) -> None:
    table = assign_roles(scores)
    folder = table.save(f"{tmp_path}/roles")
    loaded = RoleTable.load(folder)
    pd.testing.assert_frame_equal(loaded.frame, table.frame, check_dtype=False)
    assert loaded.provenance["tests"]["correction"] == "fdr_bh"
    with pytest.raises(StorageError, match="not empty"):
        table.save(folder)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.0}, "alpha is 0.0"),
        ({"alpha": 1.5}, "alpha is 1.5"),
        ({"threshold": float("nan")}, "threshold"),
        ({"correction": "sidak"}, "correction is 'sidak'"),
        ({"family": "layer"}, "family is 'layer'"),
        ({"preset": "best"}, "preset is 'best'"),
    ],
)
def test_options_outside_their_range(
    scores: HeadScores, options: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        assign_roles(scores, **options)  # type: ignore[arg-type]


def test_a_role_that_no_example_has_is_left_out(scores: HeadScores) -> None:
    scores.values[..., 1] = np.nan
    scores.counts[:, 1] = 0
    table = assign_roles(scores)
    assert table.roles == ("local", "syntactic")
    assert table.provenance["tests"]["left_out"] == ["block"]


def test_local_in_a_layer_with_a_window_is_noted(scores: HeadScores) -> None:
    scores.provenance["reaches"] = [None, 64]
    table = assign_roles(scores)
    assert row(table, 1, 0, "local").note == (
        "attention of this layer reaches 64 positions: partly architecture"
    )
    assert row(table, 0, 0, "local").note == row(table, 1, 0, "syntactic").note == ""
