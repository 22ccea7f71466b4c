"""Corpora read through: counts, digest, spool, schemes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from headroles.corpus import ROOT, Corpus, Sentence, prepared, read_conllu
from headroles.corpus.sentence import CLEAR, OTHER, UD, recognise_scheme
from headroles.errors import CorpusError
from headroles.record import RecordedCorpus
from tests.conftest import CAT, DOG, conllu_sentence


def corpus_of(*sentences: Sentence, **source: object) -> Corpus:
    return Corpus(source={"format": "test", **source}, read=lambda skipped: iter(sentences))


def sentence(name: str, *relations: str, document: str = "d", word: str = "w") -> Sentence:
    """A root with one dependent per relation."""
    governors = (ROOT, *(0 for _ in relations))
    words = (word,) * len(governors)
    return Sentence(name, document, 0, words, governors, ("root", *relations))


def digest(corpus: Corpus) -> str:
    with prepared(corpus) as read_through:
        return read_through.record.digest


def test_counts(treebank: Path) -> None:
    with prepared(read_conllu(treebank)) as corpus:
        assert corpus.relations == Counter(nsubj=5, punct=3, amod=2, obj=2)
        assert corpus.skipped == {}
        assert corpus.record == RecordedCorpus(
            format="conllu",
            files=[str(treebank)],
            documents_by="newdoc",
            ids_by="given",
            scheme="ud",
            digest=corpus.record.digest,
            sentences=5,
            words=17,
            documents=2,
        )


@pytest.mark.parametrize("word", ["ни", "a\u2028b", "a\u0085b", "\r", "\n", '"', "\\", "😀", ""])
def test_spool_keeps_every_character(word: str) -> None:
    given = sentence("s", "obj", word=word)
    with prepared(corpus_of(given, given)) as corpus:
        assert list(corpus) == [given, given]


@pytest.mark.parametrize(
    "text",
    [
        conllu_sentence([("Rats", 2, "nsubj"), *CAT[1:]], "a") + conllu_sentence(DOG, "b"),
        conllu_sentence([("Cats", 2, "obj"), *CAT[1:]], "a") + conllu_sentence(DOG, "b"),
        conllu_sentence([*CAT[:2], (".", 1, "punct")], "a") + conllu_sentence(DOG, "b"),
        conllu_sentence(CAT, "x") + conllu_sentence(DOG, "b"),
        conllu_sentence(CAT, "a") + conllu_sentence(DOG, "b", newdoc="new"),
        conllu_sentence(DOG, "b") + conllu_sentence(CAT, "a"),
        conllu_sentence(CAT, "a"),
    ],
    ids=["word", "relation", "governor", "id", "document", "order", "length"],
)
def test_content_and_not_the_file_makes_the_digest(tmp_path: Path, text: str) -> None:
    same = conllu_sentence(CAT, "a") + conllu_sentence(DOG, "b")
    files = [tmp_path / f"{k}.conllu" for k in range(3)]
    for file, content in zip(files, (same, same, text), strict=True):
        file.write_text(content, encoding="utf-8")
    first, again, other = map(digest, map(read_conllu, files))
    assert first == again != other
    assert len(first) == 64


def test_corpora_without_sentences(tmp_path: Path) -> None:
    file = tmp_path / "t.conllu"
    file.write_text("# only comments\n", encoding="utf-8")
    for corpus, message in (
        (
            corpus_of(files=["a", "b", "c", "d"]),
            r"no sentences in a, b, c, \.\.\.; check the paths",
        ),
        (read_conllu(file, on_bad_sentence="skip"), r"in .*t\.conllu; 1 defective sentences"),
    ):
        with pytest.raises(CorpusError, match=message), prepared(corpus):
            pass


@pytest.mark.parametrize(
    ("labels", "scheme"),
    [
        (["nsubj", "obj", "root"], UD),
        (["nsubj:pass", "obl:tmod"], UD),
        (["nsubj", "amod"], UD),
        (["nsubj", "ROOT"], UD),
        ([], UD),
        (["nsubj", "dobj"], CLEAR),
        (["nsubj", "amod", "pobj", "ROOT"], CLEAR),
        (["SB", "OA", "NK"], OTHER),
        (["nsubj", "no_such_label"], OTHER),
    ],
)
def test_scheme_is_recognised(labels: list[str], scheme: str) -> None:
    assert recognise_scheme(labels) == scheme


def test_two_schemes_are_refused_with_the_sentences_that_show_them() -> None:
    mixed = [sentence("first", "nsubj"), sentence("second", "obj"), sentence("third", "dobj")]
    pattern = (
        r"two label schemes in one corpus: 'obj' \(sentence 'second'\) and "
        r"'dobj' \(sentence 'third'\).*separate runs"
    )
    with pytest.raises(CorpusError, match=pattern), prepared(corpus_of(*mixed)):
        pass
