"""Every kind of corpus: options that contradict the paths are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from headroles.corpus import CorpusOptions, as_corpus, open_corpus, prepared
from headroles.errors import UsageError


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        ("x.conllu", {"text_columns": [0]}, "text must be parsed; name a spaCy pipeline"),
        ("x.txt", {}, "text must be parsed; name a spaCy pipeline with parser"),
        ("x.TSV", {}, "text must be parsed; name a spaCy pipeline with parser"),
        ("x.csv", {}, "text must be parsed; name a spaCy pipeline with parser"),
        ("x.conllu", {"parser": "p"}, "a treebank is parsed already; omit parser"),
        ("x.conll", {"parser": "p"}, "a treebank is parsed already; omit parser"),
        ("x.tsv", {"parser": "p"}, "no text columns were given"),
        ("x.tsv", {"parser": "p", "text_columns": [0, 1, 2]}, "3 text columns were given"),
        ("x.tsv", {"parser": "p", "text_columns": []}, "0 text columns were given"),
        ("x.conllu", {"on_bad_sentence": "drop"}, "on_bad_sentence is 'drop'"),
        ("x.txt.gz", {}, "text must be parsed; name a spaCy pipeline with parser"),
        ("x.cupt.xz", {"parser": "p"}, "a treebank is parsed already; omit parser"),
        ("x.conllu", {"header": True}, "header applies to tables"),
        ("x.conllu", {"header": False}, "header applies to tables"),
        ("x.conllu", {"lines": True}, "lines applies to plain text"),
        ("x.tsv", {"parser": "p", "text_columns": [0], "lines": True}, "lines applies to plain"),
        ("x.txt", {"parser": "p", "documents": "sent_id"}, "documents applies"),
        ("x.txt", {"parser": "p", "ids": "place"}, "ids applies"),
        ("x.txt", {"parser": "p", "on_bad_sentence": "skip"}, "on_bad_sentence applies"),
        ("x.conllu", {"keep_parses": "x"}, "keep_parses applies to text that is parsed"),
        ("x.conllu", {"parser_processes": 2}, "parser_processes applies to text that is parsed"),
    ],
)
def test_contradictions_are_refused(path: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        open_corpus(["fine", path], CorpusOptions(**options))  # type: ignore[arg-type]


# What is given where a corpus is wanted


def test_paths_of_treebanks_are_read(treebank: Path) -> None:
    for given in (treebank, str(treebank), [treebank], (str(treebank),), str(treebank.parent)):
        assert len(list(as_corpus(given))) == 5


def test_sentences_are_a_corpus(treebank: Path) -> None:
    sentences = list(as_corpus(treebank))
    with prepared(as_corpus(sentences)) as corpus:
        assert list(corpus) == sentences
        assert corpus.record.format == "sentences"
    with prepared(as_corpus(treebank)) as same:
        assert same.record.digest == corpus.record.digest


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("Dogs sleep.", "the corpus is the text 'Dogs sleep.', and no file has that name; give"),
        ("Dogs sleep. " * 1000, "the corpus is the text 'Dogs sl.* sleep. '"),
        (["Dogs sleep.", "Cats eat."], r"the text 'Dogs sleep.'.* read_text\(FILE, parser="),
        ([], "the corpus is an empty list; it must come from read_conllu"),
        ([1, 2.0], "the corpus is a list of float, int; it must"),
        (None, "the corpus is a NoneType; it must"),
        (b"x", "the corpus is a bytes; it must"),
        ({"a": 1}, "the corpus is a dict; it must"),
    ],
)
def test_what_is_no_corpus_is_named(given: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        as_corpus(given)
