"""Role tables of scores made by hand: the tests, the views, and what the table says."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from headroles import HeadScores, RoleTable, assign_roles, classify_heads, read_conllu
from headroles.errors import StorageError, UsageError
from headroles.report.pages import make_report
from headroles.results.shown import WIDE, Grid
from headroles.roles import SCORES
from headroles.studies.classification.figures import draw_role, draw_roles
from headroles.testing.evidence import ROLE_ANSWERS
from tests.conftest import flat, make_scores, role_ids
from tests.report.conftest import parts_of
from tests.rounding import assert_same_sums

ARCS = "syntactic:any:to_governor"
ROLES = ("local", "block", ARCS)
SUBJECT = "syntactic:nsubj:to_governor"
BEYOND = f"{SUBJECT}:beyond_offset"


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


@pytest.fixture
def table(scores: HeadScores) -> RoleTable:
    return assign_roles(scores)


@pytest.fixture(scope="module")
def subjects() -> RoleTable:
    """Head 0-0 has the largest mean by its position alone; 0-3 goes farthest beyond position."""
    means = np.array([[[12.0, 0.0, 9.0], [5.0, 2.0, 1.0], [1.0, 0.5, 1.0], [9.0, 4.0, 1.0]]])
    rng = np.random.default_rng(0)
    values = rng.normal(means[None], 0.5, size=(60, *means.shape)).astype(np.float32)
    return assign_roles(make_scores(values, (SUBJECT, BEYOND, "local")))


def row(table: RoleTable, layer: int, head: int, role: str) -> Any:
    heads = table.frame.set_index(["layer", "head", "role"])
    return heads.loc[(layer, head, role)]


# The tests.


@pytest.mark.parametrize(
    ("options", "ddof"), [({"correction": "none"}, 1), ({"preset": "published"}, 0)]
)
def test_a_row_is_the_test_of_its_head(
    scores: HeadScores, options: dict[str, Any], ddof: int
) -> None:
    table = assign_roles(scores, **options)
    assert (tuple(table.frame.columns), len(table)) == (RoleTable.columns, 2 * 3 * 3)
    sample = scores.values[:10, 1, 1, 2].astype(float)
    effect = (sample.mean() - 3) / sample.std(ddof=ddof)
    p_value = stats.t.sf(effect * np.sqrt(10), 9)
    expected = [10, sample.mean(), effect, effect * np.sqrt(10), p_value, p_value]
    columns = ["n", "mean", "effect_size", "statistic", "p_value", "p_adjusted"]
    assert row(table, 1, 1, ARCS)[columns].tolist() == pytest.approx(expected)


def test_untestable_and_degenerate_tests_are_not_corrected_for(
    scores: HeadScores, table: RoleTable
) -> None:
    for role, note, is_assigned in (("block", "untestable", False), ("local", "degenerate", True)):
        found = row(table, 1, 2, role)
        assert (found.note.partition(":")[0], found.assigned) == (note, is_assigned)
        assert np.isnan([found.p_value, found.p_adjusted]).all()
    assert not row(assign_roles(scores, threshold=5.0), 1, 2, "local").assigned
    # 11 of 18 tests were made: block has one example, one local head is constant.
    found = row(assign_roles(scores, correction="bonferroni"), 1, 0, ARCS)
    assert found.p_adjusted == pytest.approx(min(1, 11 * found.p_value))


def test_permuting_heads_permutes_the_table(scores: HeadScores, table: RoleTable) -> None:
    order = [2, 0, 1]
    after = assign_roles(replace(scores, values=scores.values[:, :, order].copy()))
    expected = table.frame.assign(head=table.frame["head"].map({k: n for n, k in enumerate(order)}))
    key = ["role", "layer", "head"]
    sorted_rows = (one.set_index(key).sort_index() for one in (after.frame, expected))
    pd.testing.assert_frame_equal(*sorted_rows)


def test_both_tests_have_to_show_a_role() -> None:
    """One p-value, the larger of both; a note says which of the two is open."""
    means = np.array([[[9.0, 4.0], [9.0, 0.5], [3.0, 4.0], [3.0, 0.5], [1.0, 4.0], [9.0, 0.0]]])
    rng = np.random.default_rng(2)
    values = rng.normal(means[None], 1.0, size=(60, *means.shape)).astype(np.float32)
    scores = make_scores(values, (SUBJECT, BEYOND))
    frame = assign_roles(scores, distance_margin=0.5).frame
    assert frame["role"].tolist() == [SUBJECT] * 6
    answers = ["yes", "undecided", "undecided", "undecided", "no", "positional"]
    assert frame["answer"].tolist() == answers
    notes = ["", "open: contrast", "open: mean", "open: mean and contrast", "", ""]
    assert frame["note"].tolist() == notes
    own = values[:, 0].astype(float)
    assert frame[["mean", "beyond_distance"]].to_numpy() == pytest.approx(own.mean(axis=0))
    p_values = stats.ttest_1samp(own - [3, 0.5], 0, alternative="greater").pvalue
    assert frame["p_beyond"].to_numpy() == pytest.approx(p_values[:, 1])
    assert frame["p_value"].to_numpy() == pytest.approx(p_values.max(axis=1))
    assert set(assign_roles(scores, distance_margin=0.1).frame["answer"][1:2]) == {"yes"}


def test_clusters_are_counted_and_recorded(scores: HeadScores) -> None:
    clustered = replace(scores, documents=tuple(f"d{k // 2}" for k in range(30)))
    table = assign_roles(clustered)
    assert row(table, 0, 0, "local").n_clusters == 15
    assert (row(table, 0, 0, ARCS).n, row(table, 0, 0, ARCS).n_clusters) == (10, 5)
    assert (table.facts["clustered_by"], table.facts["n_clusters"]) == ("document", 15)
    apart = assign_roles(clustered, clusters="none")
    assert (row(apart, 0, 0, "local").n_clusters, apart.facts["clustered_by"]) == (30, "none")
    assert "2 of 3 roles come from fewer than 20 examples" in apart.warnings[0]
    assert f"These are block, {ARCS}." in apart.warnings[0]


def test_evenness_stands_beside_block() -> None:
    roles = role_ids([], score="excess")
    values = np.random.default_rng(0).normal(0.4, 0.1, (20, 2, 3, len(roles)))
    block, evenness = roles.index("block"), roles.index("block:evenness")
    values[3:9, ..., block] = values[3:9, ..., evenness] = np.nan
    table = assign_roles(make_scores(values, roles, score="excess"))
    assert "block:evenness" not in (*table.roles, *table.facts["left_out"])
    expected = np.delete(values[..., evenness], np.s_[3:9], axis=0).mean(axis=0)
    found = table.wide("evenness").set_index(["layer", "head"])
    assert_same_sums(found["block"].to_numpy().reshape(2, 3), expected)
    assert found.drop(columns="block").isna().all(axis=None)


@pytest.mark.parametrize("reach", [10, 11])
def test_layers_with_a_window_are_noted(reach: int) -> None:
    """Of 12 tokens the last is 11 positions from the first."""
    values = np.random.default_rng(0).normal(3, 1, (60, 2, 3, 2))
    values[:, 1, 2] = 5  # another note comes first
    scores = make_scores(values, ("local", ARCS), model={"reaches": [None, reach]})
    notes = assign_roles(scores).wide("note")
    of_layers = notes.drop(columns=["layer", "head"]).to_numpy().reshape(2, 3, 2)
    assert (of_layers[0] == "").all()
    assert [note.split(":")[0] for note in of_layers[1, 2]] == ["degenerate"] * 2
    seen = "attention of this layer reaches 10 positions: partly architecture" * (reach == 10)
    assert of_layers[1, :2].tolist() == [[seen, ""]] * 2


@pytest.fixture(scope="module")
def bounded() -> HeadScores:
    """Excess of four heads over 240 examples of 120 documents, between -0.5 and 1."""
    means = np.array([[0.02, 0.09], [0.3, 0.6]])
    values = np.random.default_rng(0).beta(20 * means, 20 * (1 - means), (240, 2, 2))
    documents = [f"d{k // 2}" for k in range(240)]
    scores = make_scores(values[..., None], ("local",), documents, "excess")
    low_high = np.broadcast_to(np.array([-0.5, 1], dtype=np.float32), (240, 1, 2))
    return replace(scores, bounds=low_high)


class TestCertified:
    def test_it_is_the_test_by_betting_if_there_are_bounds(self, bounded: HeadScores) -> None:
        certified = assign_roles(bounded).frame["certified"].tolist()
        by_betting = assign_roles(bounded, test="betting").frame["answer"].tolist()
        assert certified == by_betting == ["no", "undecided", "yes", "yes"]
        without = assign_roles(replace(bounded, bounds=None)).frame
        assert (without["certified"] == "").all()
        assert without["certified_mean"].isna().all()

    def test_documents_count_the_same_each(self, bounded: HeadScores) -> None:
        uneven = replace(bounded, documents=tuple("ab"[k > 9] + str(k // 60) for k in range(240)))
        of_head = pd.Series(bounded.values[:, 1, 1, 0].astype(float), uneven.documents)
        found = row(assign_roles(uneven), 1, 1, "local")
        assert found["certified_mean"] == pytest.approx(of_head.groupby(level=0).mean().mean())
        assert found["certified_mean"] != pytest.approx(found["mean"], rel=1e-4)

    @pytest.mark.parametrize(("far", "answers"), [(1000, ("yes", "no")), (12, ("yes", "yes"))])
    def test_a_note_says_that_the_other_mean_has_the_other_answer(
        self, far: float, answers: tuple[str, str]
    ) -> None:
        """Betting gives less weight to examples that could score far from the threshold."""
        values, bounds = np.ones((240, 1, 1, 1)), np.zeros((240, 1, 2), dtype=np.float32)
        values[::2], bounds[..., 1], bounds[::2, :, 1] = 10, 12, far
        found = assign_roles(replace(make_scores(values, ["local"]), bounds=bounds)).frame.iloc[0]
        assert (found["answer"], found["certified"]) == answers
        note = "the certified answer, for certified_mean, is no"
        assert (note in found["note"]) == (answers[0] != answers[1])


# The views, and what the table says.


def test_views_of_all_roles(scores: HeadScores, table: RoleTable) -> None:
    answers, together = table.answers(), table.colocation()
    assert (list(answers.index), tuple(answers.columns)) == (list(ROLES), ROLE_ANSWERS)
    assert answers["untestable"].tolist() == [0, 6, 0]
    assert (answers.sum(axis=1) == 6).all()
    both = {*table.heads_with("local")} & {*table.heads_with(ARCS)}
    assert together.loc["local", ARCS] == together.loc[ARCS, "local"] == len(both) > 0
    none = assign_roles(scores, threshold=1e6).where(only_assigned=True)
    assert all(none.view(name).empty for name in none.views)


def test_it_shows_its_tests_and_completes_names_for_people(table: RoleTable) -> None:
    tests = "t-tests of 30 independent examples, alpha 0.05, Benjamini-Hochberg over all"
    assert f"above 3 ({tests}" in flat(table)
    completed = set(dir(table))
    assert completed >= {"frame", "where", "heads_with", "save", "export", "warnings"}
    assert not completed & {"hint", "kind", "shown", "filename", "read_files"}


def test_full_text_has_the_tables_that_fit_a_page_the_long_one_last() -> None:
    roles = [f"position:{k}" for k in range(1, 41)]
    values = np.random.default_rng(0).normal(4, 1, (30, 1, 2, 40))
    table = assign_roles(make_scores(values, roles))
    lines = table.in_full().splitlines()
    assert max(map(len, lines)) <= WIDE
    assert "Wide: 42 columns; see headroles export DIR --view wide." in lines
    titles = [line.lower() for line in lines if line.lower() in table.views]
    assert titles[-1] == "long"
    sizes = [len(table.view(name)) for name in titles]
    assert sizes == sorted(sizes)
    assert "answers" in titles


def test_heads_of_arcs_are_ranked_beyond_position(subjects: RoleTable) -> None:
    assert [part.index.tolist() for part in subjects.strongest] == [[SUBJECT], ["local"]]
    strongest = pd.concat(subjects.strongest)
    assert strongest[["layer", "head"]].to_numpy().tolist() == [[0, 3], [0, 0]]
    assert strongest["heads"].tolist() == [[(0, 1), (0, 3)], [(0, 0)]]
    shown = flat(subjects)
    assert "grammatical partners 2 0 0-1 0-3 0-3 " in shown
    assert "subject -> its verb 0-3 " in shown


@pytest.mark.parametrize(
    ("means", "stronger"),
    [([7.0, 5.0], "object \u2192 its verb"), ([5.0, 7.0], "verb \u2192 its object")],
)
def test_a_relation_is_the_direction_in_which_the_table_is_stronger(
    means: list[float], stronger: str
) -> None:
    roles = ["syntactic:obj:to_governor", "syntactic:obj:to_dependent"]
    values = np.random.default_rng(0).normal(means, 0.5, size=(60, 1, 2, 2))
    table = assign_roles(make_scores(values, roles))
    assert stronger in draw_role(table, "obj").get_title()
    assert table.where("obj").roles == tuple(roles)


def test_a_relation_names_its_parts() -> None:
    """In every way of naming: by itself, by an id of the whole, in words, by a pattern."""
    roles = [f"syntactic:nsubj/{part}:to_governor" for part in ("content", "function")]
    values = np.random.default_rng(0).normal([5.0, 1.0], 0.5, size=(60, 1, 2, 2))
    table = assign_roles(make_scores(values, roles))
    for name in ("nsubj", SUBJECT, "subject", "subject -> its verb", "syntactic:nsubj:*"):
        assert table.where(name).roles == tuple(roles)
    assert table.where("noun subject").roles == tuple(roles[:1])
    assert table.heads_with("pronoun subject -> its verb") == []
    assert table.heads_with("nsubj") == table.heads_with("nsubj/content") == [(0, 0), (0, 1)]


def test_distance_that_was_not_controlled_is_named_and_so_is_the_lack_of_roles() -> None:
    values = np.full((60, 1, 4, 1), 9, dtype=np.float32) + np.arange(60).reshape(-1, 1, 1, 1) / 60
    assert "Score with beyond_offset" in flat(assign_roles(make_scores(values, (SUBJECT,))))
    values = np.random.default_rng(0).normal(1.0, 0.1, size=(20, 1, 3, 1))
    text = repr(assign_roles(make_scores(values, ["local"])))
    assert "No head passed the test for: neighbouring words." in text


@pytest.fixture(scope="module")
def open_roles() -> RoleTable:
    """Of four heads one attends to neighbours, one may; three may attend to special tokens."""
    means = np.array([[[5.0, 2.9], [2.9, 2.9], [1.0, 2.9], [1.0, 1.0]]])
    values = np.random.default_rng(1).normal(0, 1, size=(60, *means.shape))
    values += means - values.mean(axis=0)
    table = assign_roles(make_scores(values, ("local", "delimiter")))
    assert table.answers()["undecided"].tolist() == [1, 3]
    return table


def test_undecided_heads_stand_beside_every_count(open_roles: RoleTable) -> None:
    """On screens, in captions, figures, pages and JSON; 0 of them is no finding either."""
    named = {"local": ("1", "1", "0-0"), "delimiter": ("0", "3", "3 of 4 tests open")}
    (grid,) = (part for part in open_roles.shown if isinstance(part, Grid))
    for row_of, (role, cells) in zip(grid.rows, named.items(), strict=True):
        assert row_of[:4] == (open_roles.in_words(role), *cells)
    assert "Special tokens: none shown; 3 of 4 tests undecided: add documents." in flat(open_roles)
    captions = {
        "local": "neighbouring words. 1 of 4 heads have the role (1 undecided).",
        "delimiter": "special tokens. None shown; 3 of 4 tests undecided: add documents.",
    }
    for role, caption in captions.items():
        assert caption in open_roles.where(role).export("latex").decode()
        # heads with the role alone have undecided ones beside them too
        having = open_roles.where(role, only_assigned=True).export("latex", caption=None).decode()
        assert caption in having
    counts = {
        row["role"]: (row["heads"], row["undecided"]) for row in open_roles.to_json()["counts"]
    }
    assert counts == {"local": (1, 1), "delimiter": (0, 3)}
    heads = open_roles.where(only_assigned=True).export("json", "heads")
    assert json.loads(heads)["undecided"] == {
        "local": [[0, 1]],
        "delimiter": [[0, 0], [0, 1], [0, 2]],
    }
    ax = draw_role(open_roles, "delimiter")
    title = "special tokens\nnone shown; 3 of 4 tests undecided: add documents"
    assert " ".join(ax.get_title().split()) == " ".join(title.split())
    (legend,) = ax.figure.legends
    assert {text.get_text() for text in legend.get_texts()} == {"undecided (3)", "no (1)"}
    first, second, *_ = draw_roles(open_roles).axes
    assert "1 head, 1 undecided" in first.get_title()
    assert "none shown, 3 undecided" in second.get_title()


def test_a_part_of_a_table_says_nothing_about_the_rest(
    table: RoleTable, subjects: RoleTable, tmp_path: Path
) -> None:
    assert table.warnings
    assert table.where(role="*") is table
    part = table.where(role="neighbouring words", layer=1)
    assert (part.roles, part.warnings) == (("local",), ())
    page = make_report(part.save(tmp_path / "part"))
    assert parts_of(page, Grid)[0].columns[0] == "Target of the 6 heads"
    assert "Score with beyond_offset" not in flat(subjects.where(SUBJECT, layer=0))


@pytest.mark.parametrize("score", ["bias", "hit"])
def test_the_summary_of_all_roles_fits_a_screen(
    bert_folder: Path, sample: Path, score: str
) -> None:
    """Its size is checked as that of every summary of tests is."""
    table = classify_heads(bert_folder, read_conllu(sample), roles="all", score=score).roles
    assert len(table.roles) > 20
    assert re.search(r"No head passed the test for: [^.]+\.", flat(table))


def test_other_scores_and_a_table_of_another_version_are_refused(
    scores: HeadScores, table: RoleTable, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="these are excess scores; score again"):
        assign_roles(replace(scores, score=SCORES["excess"]), preset="published")
    other = RoleTable(table.frame.drop(columns="answer"), table.record)
    with pytest.raises(StorageError, match=r"the columns of this version; .*assign"):
        RoleTable.load(other.save(tmp_path / "roles"))
