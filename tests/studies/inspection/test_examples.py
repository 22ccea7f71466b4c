"""The sentences behind a number: which, in which order, with which words marked."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from headroles import (
    HeadScores,
    assign_roles,
    find_examples,
    read_attention,
    read_conllu,
    score_heads,
)
from headroles.errors import CorpusError, UsageError
from headroles.report.pages import write_report
from headroles.results.stored import save_together
from tests.conftest import make_scores

ROLE = "syntactic:obj:to_governor"


@pytest.fixture
def scores(bert_folder: Path, treebank: Path) -> HeadScores:
    return score_heads(bert_folder, read_conllu(treebank), beyond_offset=False)


def test_largest_smallest_and_typical(scores: HeadScores) -> None:
    own = scores.column("local")[:, 5]  # layer 1, head 1 of 4
    ascending = np.sort(own)
    by_distance = sorted(own, key=lambda value: abs(value - np.median(own)))
    for which, expected in (
        ("largest", ascending[::-1]),
        ("smallest", ascending),
        ("median", by_distance),
    ):
        found = find_examples(scores, (1, 1), "local", n=2, which=which)
        assert which in repr(found)
        frame = found.frame
        np.testing.assert_array_equal(frame["score"].to_numpy(dtype=np.float32), expected[:2])
        assert frame["example"].tolist() == [
            scores.ids[np.flatnonzero(own == v)[0]] for v in expected[:2]
        ]
        assert not frame["words"].any()
        assert "[" not in frame["text"][0]


def test_arcs_are_marked(scores: HeadScores) -> None:
    frame = find_examples(scores, (0, 0), ROLE).frame
    assert set(frame["example"]) == {"a-1+a-2", "b-1+b-2"}
    texts = dict(
        zip(frame["example"], zip(frame["text"], frame["words"], strict=True), strict=True)
    )
    expected = ("Cats sleep . Old dogs [eat] bones", "bones -> eat")
    assert texts["a-1+a-2"] == expected
    back = find_examples(scores, (0, 0), "syntactic:obj:to_dependent").frame
    assert back["words"].tolist() == ["eat -> bones"] * 2
    assert find_examples(scores, (0, 0), "delimiter", n=1).frame["words"].tolist() == [""]


@pytest.mark.parametrize("strong", ["to_governor", "to_dependent"])
@pytest.mark.parametrize("named", ["obj", "syntactic:obj", "object"])
def test_a_relation_is_the_direction_in_which_this_head_is_stronger(
    scores: HeadScores, named: str, strong: str
) -> None:
    role = f"syntactic:obj:{strong}"
    scores.values[:, 1, 0, scores.role_ids.index(role)] += 9
    found = find_examples(scores, (1, 0), named, n=1, weights=False)
    assert role in repr(found).splitlines()[0]
    assert read_attention(scores, (1, 0), named, n=1)[0].role == role
    np.testing.assert_array_equal(scores.of_head((1, 0), named), scores.of_head((1, 0), role))


def test_keys_are_numbers_of_words(bert_folder: Path, treebank: Path) -> None:
    """A word in brackets in the treebank is not marked."""
    treebank.write_text(treebank.read_text().replace("Cats", "[Cats]"))
    scores = score_heads(bert_folder, read_conllu(treebank), beyond_offset=False)
    found = find_examples(scores, (0, 0), ROLE, example="a-1+a-2")
    assert found.frame[["text", "keys"]].to_numpy().tolist() == [
        ["[Cats] sleep . Old dogs [eat] bones", "5"]
    ]
    assert found.to_json()["rows"][0]["keys"] == "5"


def test_one_example_by_its_id(scores: HeadScores) -> None:
    found = find_examples(scores, (0, 0), "local", example="a-3")
    assert found.frame["example"].tolist() == ["a-3"]
    assert "Head 0-0, neighbouring words (local): a bias score." in repr(found)
    with pytest.raises(UsageError, match="no score of local in an example 'a-4'"):
        find_examples(scores, (0, 0), "local", example="a-4")


@pytest.mark.parametrize(
    ("head", "role", "message"),
    [
        ((3, 0), "local", "the layer is 3; it must be 0 to 2"),
        ((0, -1), "local", "the head is -1; it must be 0 to 3"),
        ((3.0, 0), "local", r"the head is \(3.0, 0\); give two whole numbers"),
        ((0,), "local", r"the head is \(0,\); give two whole numbers"),
        (3, "local", "the head is 3; give two whole numbers"),
        ((0, 0), "locl", "there is no role 'locl'; did you mean 'local'"),
    ],
)
def test_unknown_names_are_refused(scores: HeadScores, head: Any, role: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        find_examples(scores, head, role)


def test_a_removed_head_is_refused_by_name(scores: HeadScores) -> None:
    scores.values[:, 1, 0] = np.nan
    record = structs.replace(scores.record, removed_heads=[[1, 0]])
    with pytest.raises(UsageError, match="head 1-0 was removed from the model and has no scores"):
        find_examples(replace(scores, record=record), (1, 0), ROLE)


def test_a_treebank_that_has_changed(scores: HeadScores, treebank: Path) -> None:
    treebank.write_text(treebank.read_text().replace("Cats", "Dogs"))
    with pytest.raises(CorpusError, match=r"small\.conllu has other sentences than"):
        find_examples(scores, (0, 0), "local")


class TestRolesOfOnesOwn:
    """Scores may come from elsewhere: the module that they name is imported only if asked for."""

    @pytest.fixture
    def scored(
        self, bert_folder: Path, treebank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> HeadScores:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "sent_roles.py").write_text("def first(sentence):\n    return {0}\n")
        scores = score_heads(
            bert_folder, read_conllu(treebank), roles="local,sent_roles:first", beyond_offset=False
        )
        monkeypatch.delitem(sys.modules, "sent_roles")
        (tmp_path / "sent_roles.py").write_text("open('imported', 'w')\ndef first(s): return {0}\n")
        return scores

    def test_no_role_is_imported_unasked(self, scored: HeadScores, tmp_path: Path) -> None:
        find_examples(scored, (0, 0), "local")
        with pytest.raises(UsageError, match=r"imports none by itself; .* name it with roles"):
            find_examples(scored, (0, 0), "sent_roles:first")
        with pytest.raises(UsageError, match="imports none by itself"):
            read_attention(scored, (0, 0), "sent_roles:first")
        assert not (tmp_path / "imported").exists()

    def test_a_role_that_is_named_again_is_imported(self, scored: HeadScores) -> None:
        found = find_examples(scored, (0, 0), "sent_roles:first", roles="sent_roles:first", n=1)
        assert "[" in found.frame["text"][0]
        assert read_attention(scored, (0, 0), "sent_roles:first", roles="sent_roles:first", n=1)

    def test_other_roles_than_were_scored_are_refused(self, scored: HeadScores) -> None:
        with pytest.raises(UsageError, match=r"'os:getcwd' is no user's role that was"):
            find_examples(scored, (0, 0), "local", roles="os:getcwd")

    def test_pages_import_nothing_either(self, scored: HeadScores, tmp_path: Path) -> None:
        tests: Any = {"alpha": 0.4, "clusters": "none", "correction": "none"}
        table = assign_roles(scored, threshold=0.001, **tests)
        folder = save_together(tmp_path / "sent", [scored, table])
        page = write_report(folder).read_text()
        assert "Sentences of sent_roles:first are not shown" in page
        assert "name it with `roles`" in page
        assert page.count("<mark>") == 0
        assert not (tmp_path / "imported").exists()
        page = write_report(folder, roles=["sent_roles:first"]).read_text()
        assert "<mark>" in page
        assert "are not shown" not in page


def test_scores_made_by_hand_have_no_sentences() -> None:
    with pytest.raises(UsageError, match="come from the treebank that was scored"):
        find_examples(make_scores(np.ones((2, 1, 1, 1)), ["local"]), (0, 0), "local")


def test_a_treebank_that_is_elsewhere(scores: HeadScores, treebank: Path, tmp_path: Path) -> None:
    expected = find_examples(scores, (0, 0), ROLE)
    moved = treebank.rename(tmp_path / "moved.conllu")
    with pytest.raises(CorpusError, match=r"does not exist.*with corpus"):
        find_examples(scores, (0, 0), ROLE)
    for named in (moved, [moved], str(moved)):
        assert find_examples(scores, (0, 0), ROLE, corpus=named).frame.equals(expected.frame)
    moved.write_text(moved.read_text().replace("Cats", "Dogs"))
    with pytest.raises(CorpusError, match=r"moved\.conllu has other sentences than"):
        find_examples(scores, (0, 0), ROLE, corpus=moved)
