"""Every kind of corpus: options that contradict the paths are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from headroles.corpus import CorpusOptions, open_corpus
from headroles.errors import CorpusError, UsageError


def test_paths_without_a_parser_are_treebanks(treebank: Path) -> None:
    assert [s.id for s in open_corpus([treebank], CorpusOptions())] == [
        "a-1",
        "a-2",
        "a-3",
        "b-1",
        "b-2",
    ]
    assert [s.id for s in open_corpus([str(treebank.parent)], CorpusOptions())][:1] == ["a-1"]


def test_policy_for_bad_sentences_is_passed_on(treebank: Path) -> None:
    treebank.write_text("# only a comment\n\n" + treebank.read_text("utf-8"), "utf-8")
    assert len(list(open_corpus([treebank], CorpusOptions(on_bad_sentence="skip")))) == 5
    with pytest.raises(CorpusError, match="has no words"):
        list(open_corpus([treebank], CorpusOptions()))


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        ("x.conllu", {"text_columns": [0]}, "text columns must be parsed: name a spaCy pipeline"),
        ("x.txt", {}, "text must be parsed: name a spaCy pipeline with --parser"),
        ("x.TSV", {}, "text must be parsed: name a spaCy pipeline with --parser"),
        ("x.csv", {}, "text must be parsed: name a spaCy pipeline with --parser"),
        ("x.conllu", {"parser": "p"}, "a treebank is parsed already: leave --parser out"),
        ("x.conll", {"parser": "p"}, "a treebank is parsed already: leave --parser out"),
        ("x.tsv", {"parser": "p"}, "name the columns that hold the text with --text-columns"),
        ("x.tsv", {"parser": "p", "text_columns": [0, 1, 2]}, "3 text columns were named"),
        ("x.tsv", {"parser": "p", "text_columns": []}, "0 text columns were named"),
        ("x.conllu", {"on_bad_sentence": "drop"}, "on_bad_sentence is 'drop'"),
    ],
)
def test_contradictions_are_refused(path: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        open_corpus(["fine", path], CorpusOptions(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{}, {"text_columns": ["a"]}])
def test_missing_text_is_found_before_the_parser_is_loaded(
    tmp_path: Path, options: dict[str, list[str]]
) -> None:
    with pytest.raises(CorpusError, match="does not exist"):
        open_corpus([tmp_path / "none"], CorpusOptions(parser="no_such_pipeline", **options))
