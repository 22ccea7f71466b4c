"""Documents of treebanks: by newdoc, by the ids of sentences, by any comment."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headroles.corpus import make_examples, prepared, read_conllu
from headroles.errors import CorpusError, UsageError
from tests.conftest import CAT, conllu_sentence


def write(folder: Path, *sentences: tuple[str, str]) -> Path:
    """A treebank of sentences by (comments, sent_id)."""
    file = folder / "t.conllu"
    text = "".join(
        (f"{comments}\n" if comments else "") + conllu_sentence(CAT, name or None)
        for comments, name in sentences
    )
    file.write_text(text)
    return file


def places(file: Path, documents: str = "newdoc") -> list[tuple[str, int]]:
    corpus = read_conllu(file, documents=documents)
    return [(s.document.removeprefix("t").lstrip("#"), s.position) for s in corpus]


def pairs(file: Path, documents: str = "newdoc") -> list[str]:
    return [one.id for one in make_examples(read_conllu(file, documents=documents), "adjacent")]


def test_newdoc_repeated_at_every_sentence_changes_nothing(tmp_path: Path) -> None:
    names = [("d1", "a"), ("d1", "b"), ("d2", "c"), ("d2", "d"), ("d2", "e")]
    each = write(tmp_path, *[(f"# newdoc id = {d}", name) for d, name in names])
    repeated = places(each), pairs(each)
    starts = {"a": "d1", "c": "d2"}
    once = write(
        tmp_path,
        *[(f"# newdoc id = {starts[n]}" if n in starts else "", n) for _, n in names],
    )
    assert repeated == (places(once), pairs(once))
    assert repeated[1] == ["a+b", "c+d", "e"]


def test_newdoc_without_id_starts_a_document_each_time(tmp_path: Path) -> None:
    file = write(tmp_path, ("# newdoc", "a"), ("# newdoc", "b"), ("", "c"))
    assert places(file) == [("1", 0), ("2", 0), ("2", 1)]


def test_a_document_that_comes_back_is_one_cluster_and_no_neighbour(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        ("# newdoc id = x", "a"),
        ("# newdoc id = y", "b"),
        ("# newdoc id = x", "c"),
        ("# newdoc id = x", "d"),
    )
    assert places(file) == [("x", 0), ("y", 0), ("x", 2), ("x", 3)]
    assert pairs(file) == ["a", "b", "c+d"]
    with prepared(read_conllu(file)) as corpus:
        assert corpus.documents == 2


def test_documents_by_the_ids_of_sentences(tmp_path: Path) -> None:
    file = write(tmp_path, ("", "a-1"), ("", "a-2"), ("", "b-1"), ("", "a-3"))
    assert places(file, "sent_id") == [("a", 0), ("a", 1), ("b", 0), ("a", 3)]
    assert pairs(file, "sent_id") == ["a-1+a-2", "b-1", "a-3"]


@pytest.mark.parametrize("pattern", ["^.{6}", r"^([nw]\d{5})\d+$"])
def test_documents_by_a_pattern_in_the_ids(tmp_path: Path, pattern: str) -> None:
    file = write(tmp_path, ("", "n01001011"), ("", "n01001013"), ("", "w01002001"))
    assert places(file, f"sent_id:{pattern}") == [("n01001", 0), ("n01001", 1), ("w01002", 0)]


@pytest.mark.parametrize("rule", ["sent_id", r"sent_id:-\d+-", "sent_id:(x)?$"])
def test_ids_that_name_no_document(tmp_path: Path, rule: str) -> None:
    file = write(tmp_path, ("", "n01001011"))
    with pytest.raises(
        CorpusError, match=re.escape("sentence 'n01001011' names no document: it lacks")
    ):
        places(file, rule)


def test_a_comment_holds_until_there_is_another(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        ("", "a"),
        ("# source = x", "b"),
        ("# source = x", "c"),
        ("", "d"),
        ("# source = y", "e"),
    )
    assert places(file, "comment:source") == [("", 0), ("x", 0), ("x", 1), ("x", 2), ("y", 0)]


def test_a_comment_that_is_nowhere(tmp_path: Path) -> None:
    file = write(tmp_path, ("# genre = news\n# speaker = s", "a"), ("# text = x", "b"))
    with pytest.raises(
        CorpusError, match=r"no sentence has a comment 'source' .*; use one of: genre, speaker"
    ):
        places(file, "comment:source")


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("genre", "documents is 'genre'; pass newdoc, sent_id, sent_id:PATTERN or comment:"),
        ("comment:", "pass newdoc"),
        ("sent_id:", "pass newdoc"),
        ("newdoc:x", "pass newdoc"),
        ("sent_id:(", r"the pattern '\(', which is not a regular expression"),
        (3, "pass a text"),
    ],
)
def test_rules_that_there_are_not(tmp_path: Path, rule: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_conllu(write(tmp_path, ("", "a")), documents=rule)


@pytest.mark.parametrize(
    ("sentences", "undivided", "by_id"),
    [
        ([("", "a-1"), ("", "b-1")], 2, 2),
        ([("", "a-1"), ("", "a-2")], 2, 1),
        ([("", "a-1"), ("", "b")], 2, 0),
        ([("", "a-1"), ("# newdoc id = d", "b-1")], 1, 1),
        ([("# newdoc", "a-1"), ("", "b-1")], 0, 0),
    ],
)
def test_sentences_that_no_document_is_named_for_are_counted(
    tmp_path: Path, sentences: list[tuple[str, str]], undivided: int, by_id: int
) -> None:
    with prepared(read_conllu(write(tmp_path, *sentences))) as corpus:
        assert (corpus.undivided, corpus.documents_by_id) == (undivided, by_id)
