"""Assignment of roles from scores made by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from headroles import HeadScores, RoleTable, assign_roles
from headroles.errors import StorageError, UsageError
from headroles.results.stored import put_into
from headroles.roles import SCORES
from headroles.testing.answers import ROLE_ANSWERS
from tests.commands import contents, names
from tests.conftest import in_full, make_scores, role_ids
from tests.rounding import assert_same_sums

ROLES = ("local", "block", "syntactic:any:to_governor")


@pytest.fixture
def scores() -> HeadScores:
    """2 layers x 3 heads over 30 examples; heads of layer 1 are strong, strongest last."""
    rng = np.random.default_rng(0)
    means = np.array([[2.0, 2.5, 2.9], [3.5, 4.0, 6.0]])
    values = rng.normal(means[None, :, :, None], 1.0, size=(30, 2, 3, 3)).astype(np.float32)
    values[1:, ..., 1] = np.nan  # block: one example only
    values[10:, ..., 2] = np.nan
    values[:, 1, 2, 0] = 5.0  # a constant head
    return make_scores(values, ROLES)


def row(table: RoleTable, layer: int, head: int, role: str) -> pd.Series:
    frame = table.frame
    chosen = frame[(frame.layer == layer) & (frame["head"] == head) & (frame.role == role)]
    assert len(chosen) == 1
    return chosen.iloc[0]


def test_a_row_is_the_test_of_its_head(scores: HeadScores) -> None:
    table = assign_roles(scores, correction="none")
    assert tuple(table.frame.columns) == RoleTable.columns
    assert len(table) == 2 * 3 * 3
    assert table.frame["evenness"].isna().all()
    sample = scores.values[:10, 1, 1, 2].astype(float)
    expected = stats.ttest_1samp(sample, 3, alternative="greater")
    found = row(table, 1, 1, "syntactic:any:to_governor")
    assert found.n == 10
    assert found["mean"] == pytest.approx(sample.mean())
    assert found.p_value == found.p_adjusted == pytest.approx(expected.pvalue)
    assert found.effect_size == pytest.approx((sample.mean() - 3) / sample.std(ddof=1))


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
    assert not row(assign_roles(scores, threshold=5.0), 1, 2, "local").assigned


def test_the_family_is_corrected_together(scores: HeadScores) -> None:
    together = assign_roles(scores, correction="bonferroni")
    p = row(together, 1, 0, "syntactic:any:to_governor").p_value
    # 11 of 18 tests were made: block has one example, one local head is constant
    assert row(together, 1, 0, "syntactic:any:to_governor").p_adjusted == pytest.approx(
        min(1, 11 * p)
    )


def test_published_preset(scores: HeadScores) -> None:
    table = assign_roles(scores, preset="published")
    sample = scores.values[:, 1, 0, 0].astype(float)
    statistic = (sample.mean() - 3) / (sample.std() / np.sqrt(len(sample)))
    found = row(table, 1, 0, "local")
    assert found.statistic == pytest.approx(statistic)
    assert found.p_adjusted == found.p_value


def test_published_tests_are_of_bias_scores(scores: HeadScores) -> None:
    excess = replace(scores, score=SCORES["excess"])
    with pytest.raises(UsageError, match="these are excess scores; score again"):
        assign_roles(excess, preset="published")


def test_permuting_heads_permutes_the_table(scores: HeadScores) -> None:
    order = [2, 0, 1]
    permuted = replace(scores, values=np.ascontiguousarray(scores.values[:, :, order]))
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
    both = set(table.heads_with("local")) & set(table.heads_with("syntactic:any:to_governor"))
    assert together.loc["local", "syntactic:any:to_governor"] == len(both)
    assert table.assigned["mean"].is_monotonic_decreasing


def test_views_of_no_assigned_roles_are_empty(scores: HeadScores) -> None:
    none = assign_roles(scores, threshold=1e6).where(only_assigned=True)
    assert all(none.view(name).empty for name in none.views)


def test_every_head_gets_one_answer_to_each_role(scores: HeadScores) -> None:
    table = assign_roles(scores)
    assert (table.frame["assigned"] == (table.frame["answer"] == "yes")).all()
    answers = table.answers()
    assert list(answers.index) == list(ROLES)
    assert tuple(answers.columns) == ROLE_ANSWERS
    assert (answers.sum(axis=1) == 6).all()
    assert answers.loc["block", "untestable"] == 6
    assert answers.loc["local", "no"] > 0
    for answer in ROLE_ANSWERS:
        rows = table.frame[table.frame["answer"] == answer]
        counts = table.counts(answer)
        assert counts["total"].to_dict() == answers[answer].to_dict()
        assert counts.loc["local", 0] == len(rows[(rows.role == "local") & (rows.layer == 0)])
    with pytest.raises(UsageError, match="the answer is 'maybe'; it must be one of yes, pos"):
        table.counts("maybe")


def test_clusters_are_counted_and_recorded(scores: HeadScores) -> None:
    documents = tuple(f"d{k // 2}" for k in range(30))
    clustered = replace(scores, documents=documents)
    table = assign_roles(clustered)
    assert row(table, 0, 0, "local").n_clusters == 15
    assert row(table, 0, 0, "syntactic:any:to_governor").n_clusters == 5
    assert row(table, 0, 0, "syntactic:any:to_governor").n == 10
    tests = table.record.tests
    assert (tests.clusters, tests.clustered_by, tests.n_clusters) == (
        "auto",
        "document",
        15,
    )
    assert table.warnings == tuple(tests.warnings)
    assert "all roles come from fewer than 20 documents" in table.warnings[0]
    apart = assign_roles(clustered, clusters="none")
    assert row(apart, 0, 0, "local").n_clusters == 30
    assert apart.record.tests.clustered_by == "none"
    assert (
        "2 of 3 roles (block, syntactic:any:to_governor) come from fewer than 20 examples"
        in apart.warnings[0]
    )


def test_evenness_stands_beside_block() -> None:
    roles = role_ids([], score="excess")
    values = np.random.default_rng(0).normal(0.4, 0.1, (20, 2, 3, len(roles)))
    block, evenness = roles.index("block"), roles.index("block:evenness")
    values[3:9, ..., block] = values[3:9, ..., evenness] = np.nan
    table = assign_roles(make_scores(values, roles, score="excess"))
    assert "block:evenness" not in (*table.roles, *table.record.tests.left_out)
    expected = np.delete(values[..., evenness], np.s_[3:9], axis=0).mean(axis=0)
    found = table.wide("evenness").set_index(["layer", "head"])
    assert_same_sums(found["block"].to_numpy().reshape(2, 3), expected)
    assert found.drop(columns="block").isna().all(axis=None)
    contrasts = table.frame["role"].str.endswith("beyond_offset")
    assert (table.frame.loc[~contrasts, "threshold"] == 0.1).all()


def test_the_same_twice(scores: HeadScores) -> None:
    one, other = (assign_roles(scores) for _ in range(2))
    pd.testing.assert_frame_equal(one.frame, other.frame, check_exact=True)
    assert one.record == other.record


def test_shows_itself(scores: HeadScores) -> None:
    shown = in_full(assign_roles(scores))
    for part in (
        "heads per layer with mean score > 3 (alpha 0.05, fdr_bh over all tests)",
        "t-tests of 30 independent examples",
        "yes no undecided untestable",
        "strongest heads: layer-head mean score",
        "6 pairs of head and role are untestable: fewer than two examples (6).",
    ):
        assert part in shown
    assert (
        "warning: the scores of 2 of 3 roles (block, syntactic:any:to_governor) come from fewer"
        in repr(assign_roles(scores))
    )
    assert "<table" in assign_roles(scores)._repr_html_()


def test_notebooks_escape_names() -> None:
    odd = make_scores(np.ones((3, 1, 1, 1)), ["<script>"])
    assert "<script>" not in assign_roles(odd)._repr_html_()


FILES = {"roles.csv", "roles.parquet", "run.json"}


class TestFiles:
    @pytest.fixture
    def folder(self, scores: HeadScores, tmp_path: Path) -> Path:
        return assign_roles(scores).save(tmp_path / "roles")

    def test_save_and_load(self, scores: HeadScores, folder: Path) -> None:
        table, loaded = assign_roles(scores), RoleTable.load(folder)
        pd.testing.assert_frame_equal(loaded.frame, table.frame, check_dtype=False)
        assert loaded.record == table.record
        assert names(folder) == FILES
        with pytest.raises(StorageError, match="not empty"):
            table.save(folder)

    @pytest.mark.parametrize("failure", [OSError, KeyboardInterrupt])
    @pytest.mark.parametrize("nth", [1, 2, 3])
    def test_nothing_is_replaced_unless_all_is_written(
        self,
        scores: HeadScores,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        nth: int,
        failure: type[BaseException],
    ) -> None:
        before = contents(folder)
        write, written = Path.write_bytes, []

        def fail(path: Path, content: bytes) -> int:
            written.append(path)
            if len(written) == nth:
                raise failure
            return write(path, content)

        monkeypatch.setattr(Path, "write_bytes", fail)
        with pytest.raises((StorageError, KeyboardInterrupt)):
            put_into(folder, assign_roles(scores, threshold=2))
        assert contents(folder) == before

    def test_a_changed_table_is_refused(self, folder: Path) -> None:
        (folder / "roles.csv").write_text((folder / "roles.csv").read_text().replace("no", "yes"))
        with pytest.raises(StorageError, match=r"roles\.csv was changed after headroles wrote it"):
            RoleTable.load(folder)

    def test_tables_with_other_columns(self, scores: HeadScores, tmp_path: Path) -> None:
        table = assign_roles(scores)
        other = RoleTable(table.frame.drop(columns="answer"), table.record)
        with pytest.raises(StorageError, match=r"the columns of this version; .*assign"):
            RoleTable.load(other.save(tmp_path / "out"))

    def test_put_beside_the_scores_it_was_made_from(
        self, scores: HeadScores, tmp_path: Path
    ) -> None:
        folder = scores.save(tmp_path / "scores")
        with pytest.raises(
            StorageError, match=r"holds no role table \(it holds: scores\); test scores with"
        ):
            RoleTable.load(folder)
        put_into(folder, assign_roles(scores))
        put_into(folder, assign_roles(HeadScores.load(folder), threshold=2))
        assert RoleTable.load(folder).tests.threshold == 2
        np.testing.assert_array_equal(HeadScores.load(folder).values, scores.values)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.5}, "alpha is 0.5"),
        ({"threshold": float("nan")}, "threshold"),
        ({"correction": "max_t"}, "correction is 'max_t'"),
        ({"clusters": "document"}, "one document"),
        ({"preset": "best"}, "preset is 'best'"),
        ({"preset": "published", "test": "betting"}, "leave test out"),
        ({"preset": "published", "correction": "holm"}, "leave correction out"),
    ],
)
def test_options_that_cannot_be_meant(
    scores: HeadScores, options: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        assign_roles(scores, **options)  # type: ignore[arg-type]


def test_a_role_that_no_example_has_is_left_out(scores: HeadScores) -> None:
    scores.values[..., 1] = np.nan
    scores.counts[:, 1] = 0
    table = assign_roles(scores)
    assert table.roles == ("local", "syntactic:any:to_governor")
    assert [*table.record.tests.left_out] == ["block"]


@pytest.mark.parametrize("reach", [10, 11])
def test_layers_with_a_window_are_noted(reach: int) -> None:
    """Of 12 tokens the last is 11 positions from the first."""
    roles = ("local", "syntactic:any:to_governor")
    values = np.random.default_rng(0).normal(3, 1, (60, 2, 3, 2))
    values[:, 1, 2] = 5  # another note comes first
    notes = assign_roles(make_scores(values, roles, reaches=[None, reach])).wide("note")
    of_layers = notes.drop(columns=["layer", "head"]).to_numpy().reshape(2, 3, 2)
    assert (of_layers[0] == "").all()
    assert [note.split(":")[0] for note in of_layers[1, 2]] == ["degenerate"] * 2
    expected = ["", ""]
    if reach == 10:
        expected[0] = "attention of this layer reaches 10 positions: partly architecture"
    assert of_layers[1, :2].tolist() == [expected] * 2


class TestCertified:
    """Excess of four heads over 240 examples of 120 documents, between -0.5 and 1."""

    @pytest.fixture
    def bounded(self) -> HeadScores:
        means = np.array([[0.02, 0.09], [0.3, 0.6]])
        values = np.random.default_rng(0).beta(20 * means, 20 * (1 - means), (240, 2, 2))
        documents = [f"d{k // 2}" for k in range(240)]
        scores = make_scores(values[..., None], ("local",), documents, "excess")
        low_high = np.broadcast_to(np.array([-0.5, 1], dtype=np.float32), (240, 1, 2))
        return replace(scores, bounds=low_high)

    def test_it_is_the_test_by_betting(self, bounded: HeadScores) -> None:
        table = assign_roles(bounded)
        by_betting = assign_roles(bounded, test="betting").frame
        assert table.frame["certified"].tolist() == by_betting["answer"].tolist()
        assert table.frame["certified"].tolist() == ["no", "undecided", "yes", "yes"]
        assert table.certified().loc["local"].to_dict() == {
            "yes": 2,
            "positional": 0,
            "no": 1,
            "undecided": 1,
            "untestable": 0,
        }
        assert "certified: by betting and e-BH" in in_full(table)
        assert table.to_json()["certified_per_role"]["local"]["yes"] == 2

    def test_documents_count_the_same_each(self, bounded: HeadScores) -> None:
        uneven = replace(bounded, documents=tuple("ab"[k > 9] + str(k // 60) for k in range(240)))
        frame = assign_roles(uneven).frame
        documents = np.array(uneven.documents)
        of_head = bounded.values[:, 1, 1, 0]
        means = [of_head[documents == name].mean() for name in np.unique(documents)]
        found = frame["certified_mean"].tolist()[3]
        assert found == pytest.approx(np.mean(means))
        assert found != pytest.approx(frame["mean"].tolist()[3], rel=1e-4)

    def test_scores_without_bounds_have_no_certified_answers(self, bounded: HeadScores) -> None:
        table = assign_roles(replace(bounded, bounds=None))
        assert (table.frame["certified"] == "").all()
        assert table.frame["certified_mean"].isna().all()
        assert "certified" not in in_full(table)
        with pytest.raises(UsageError, match="betting needs the bounds of scores"):
            assign_roles(replace(bounded, bounds=None), test="betting")

    def test_contradictions_are_named(self, bounded: HeadScores) -> None:
        frame = assign_roles(bounded).frame.assign(certified=["yes", "no", "yes", "yes"])
        table = replace(assign_roles(bounded), frame=frame)
        assert "1 against the answer given" in in_full(table)


def test_a_table_without_roles_says_so() -> None:
    values = np.random.default_rng(0).normal(1.0, 0.1, size=(20, 1, 3, 1))
    text = repr(assign_roles(make_scores(values, ["local"])))
    assert "No head was shown to have a role.\n" in text
    assert "No head attends to: neighbouring words." in text
