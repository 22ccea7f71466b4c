"""The sentences behind a number: which, in which order, with which words marked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headroles import Examples, HeadScores, find_examples, read_conllu, score_heads
from headroles.errors import CorpusError, UsageError
from headroles.studies.stored import load_table
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


def test_marks_are_numbers_of_words(scores: HeadScores) -> None:
    found = find_examples(scores, (0, 0), ROLE, example="a-1+a-2")
    (marked,) = found.marked
    assert (marked.keys, marked.pairs) == ((5,), ((6, 5),))
    assert marked.parts == ((False, "Cats sleep . Old dogs"), (True, "eat"), (False, "bones"))
    assert found.facts()["examples"][0]["marked"]["keys"] == (5,)


def test_a_word_in_brackets_is_not_marked(bert_folder: Path, treebank: Path) -> None:
    treebank.write_text(treebank.read_text().replace("Cats", "[Cats]"))
    scores = score_heads(bert_folder, read_conllu(treebank), beyond_offset=False)
    (marked,) = find_examples(scores, (0, 0), ROLE, example="a-1+a-2").marked
    assert marked.parts[0] == (False, "[Cats] sleep . Old dogs")


def test_one_example_by_its_id(scores: HeadScores) -> None:
    found = find_examples(scores, (0, 0), "local", example="a-3")
    assert found.frame["example"].tolist() == ["a-3"]
    assert "head 0-0, local: a bias score" in repr(found)
    with pytest.raises(UsageError, match="no score of local in an example 'a-4'"):
        find_examples(scores, (0, 0), "local", example="a-4")


def test_are_stored_and_shown(scores: HeadScores, tmp_path: Path) -> None:
    found = find_examples(scores, (0, 0), ROLE, n=1)
    found.save(tmp_path / "out")
    loaded = load_table(tmp_path / "out")
    assert isinstance(loaded, Examples)
    assert loaded == found
    assert loaded.marked == found.marked
    assert "head 0-0, syntactic:obj:to_governor: the largest bias scores" in repr(found)
    assert found.facts()["of"]["role"] == ROLE


@pytest.mark.parametrize(
    ("head", "role", "message"),
    [
        ((3, 0), "local", "the layer is 3; it must be 0 to 2"),
        ((0, -1), "local", "the head is -1; it must be 0 to 3"),
        ((0, 0), "locl", "there is no role 'locl'; did you mean 'local'"),
    ],
)
def test_what_there_is_not(scores: HeadScores, head: Any, role: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        find_examples(scores, head, role)


def test_a_treebank_that_has_changed(scores: HeadScores, treebank: Path) -> None:
    treebank.write_text(treebank.read_text().replace("Cats", "Dogs"))
    with pytest.raises(CorpusError, match=r"small\.conllu is not what was scored"):
        find_examples(scores, (0, 0), "local")


def test_scores_made_by_hand_have_no_sentences() -> None:
    with pytest.raises(UsageError, match="read again from the treebank"):
        find_examples(make_scores(np.ones((2, 1, 1, 1)), ["local"]), (0, 0), "local")


def test_a_treebank_that_is_elsewhere(scores: HeadScores, treebank: Path, tmp_path: Path) -> None:
    expected = find_examples(scores, (0, 0), ROLE)
    moved = treebank.rename(tmp_path / "moved.conllu")
    with pytest.raises(CorpusError, match=r"does not exist.*--corpus FILE of headroles examples"):
        find_examples(scores, (0, 0), ROLE)
    for named in (moved, [moved], str(moved)):
        assert find_examples(scores, (0, 0), ROLE, corpus=named) == expected
    moved.write_text(moved.read_text().replace("Cats", "Dogs"))
    with pytest.raises(CorpusError, match=r"moved\.conllu is not what was scored"):
        find_examples(scores, (0, 0), ROLE, corpus=moved)
