"""CoNLL-U: what is read, which documents, what every defect is called, and parses saved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import conllu
import pytest

from headroles import sample_treebank
from headroles.corpus import (
    ROOT,
    Corpus,
    Sentence,
    make_corpus,
    make_examples,
    prepared,
    read_conllu,
)
from headroles.corpus.treebanks import save_parses, to_conllu
from headroles.errors import CorpusError, UsageError
from tests.conftest import CAT, DOG, conllu_sentence


def row(number: str, form: str, head: str = "_", relation: str = "_") -> str:
    return "\t".join([number, form, "_", "X", "_", "_", head, relation, "_", "_"])


def block(*rows: str) -> str:
    return "\n".join(rows) + "\n\n"


def write(folder: Path, *texts: str | bytes, name: str = "t.conllu") -> Path:
    file = folder / name
    file.write_bytes(b"".join(t if isinstance(t, bytes) else t.encode() for t in texts))
    return file


def read(folder: Path, *texts: str | bytes, **options: Any) -> list[Sentence]:
    return list(read_conllu(write(folder, *texts), **options))


def ids(corpus: Corpus | list[Sentence]) -> list[str]:
    return [sentence.id for sentence in corpus]


GOOD = conllu_sentence(CAT, "good")
BAD = block("# sent_id = bad", row("1", "x", "1", "dep"))


def test_sentences_are_those_of_the_conllu_library() -> None:
    file = Path(sample_treebank())
    expected = conllu.parse(file.read_text("utf-8"))
    for sentence, tokens in zip(read_conllu(file), expected, strict=True):
        words = [token for token in tokens if isinstance(token["id"], int)]
        assert sentence.id == tokens.metadata["sent_id"]
        assert sentence.words == tuple(token["form"] for token in words)
        assert sentence.governors == tuple(token["head"] - 1 for token in words)
        assert sentence.relations == tuple(token["deprel"] for token in words)
        assert sentence.lemmas == tuple(token["lemma"] for token in words)
        assert sentence.feats == tuple(token["feats"] or {} for token in words)
        assert sentence.n_multiword == sum(
            "-" in token["id"] for token in tokens if token not in words
        )


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + GOOD.encode(),
        GOOD.replace("\n", "\r\n").encode(),
        GOOD.rstrip("\n").encode(),
        GOOD.rstrip("\n").encode() + b"\n",
        b"\n\n \n" + GOOD.encode() + b"\n\n",
        b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").rstrip().encode(),
    ],
    ids=["bom", "crlf", "no line end", "no blank line", "many blank lines", "bom and crlf"],
)
def test_bytes_around_the_sentences_do_not_matter(tmp_path: Path, content: bytes) -> None:
    assert [(s.id, s.words) for s in read(tmp_path, content)] == [("good", ("Cats", "sleep", "."))]


@pytest.mark.parametrize(
    "form", ["10 000", "a\u2028b", "a\u0085b", "ни", "# x", "\u200b", "_", "=", '"']
)
def test_forms_are_kept_as_written(tmp_path: Path, form: str) -> None:
    sentences = read(tmp_path, block(row("1", form, "0", "root"), row("2", "x", "1", "dep")))
    assert [sentence.words for sentence in sentences] == [(form, "x")]


def of_forms(*forms: str) -> str:
    """A sentence whose first word is the root."""
    rows = (row(str(k), form, str(min(k - 1, 1)), "dep") for k, form in enumerate(forms, start=1))
    return block(*rows)


def test_a_file_without_its_text_is_refused(tmp_path: Path) -> None:
    few = write(tmp_path, of_forms("snake", "_", "case", "_", "name"), of_forms("_"), name="few")
    withheld = write(tmp_path, *[of_forms("_", "_", "_")] * 3, of_forms("x"), name="masked.conllu")
    assert [len(sentence.words) for sentence in read_conllu(few)] == [5, 1]
    message = r"masked.conllu: 9 of 10 words are _, .* withholds .*; get the text as the README"
    for on_bad_sentence in ("error", "skip"):
        with pytest.raises(CorpusError, match=message):
            list(read_conllu([few, withheld], on_bad_sentence=on_bad_sentence))
    with pytest.raises(CorpusError, match="the corpus: 2 of 2 words are _"):
        make_corpus([(["_", "_"], [-1, 0], ["root", "dep"])])


def test_ranges_and_empty_nodes_are_not_words(tmp_path: Path) -> None:
    nodes = [row("0.1", "gone"), row("1-2", "don't"), row("3.1", "went")]
    words = [row("1", "do", "3", "aux"), row("2", "n't", "3", "x"), row("3", "go", "0", "root")]
    (sentence,) = read(tmp_path, block(*nodes[:2], *words, nodes[2]))
    assert sentence.words == ("do", "n't", "go")
    assert sentence.governors == (2, 2, ROOT)
    assert sentence.n_multiword == 1


@pytest.mark.parametrize(
    ("rows", "line", "message"),
    [
        (["1\tx\t_"], 6, "has 3 tab-separated columns instead of 10"),
        ([row("1", "x", "0", "root") + "\t_"], 6, "has 11 tab-separated columns instead of 10"),
        (
            [row("1", "x", "0", "root"), "2 y _ X _ _ 1 dep _ _"],
            7,
            "has 1 .* instead of 10, and spaces between them, which must be tabs",
        ),
        (["Plain text."], 6, "has 1 .*; a file of plain text must be called .txt"),
        ([row("1", "x", "0", "root"), row("3-2", "xy", "_", "_")], 7, "has the range 3-2 of words"),
        ([row("1", "10  000", "0", "root")], 6, "has two spaces in a row inside a column"),
        ([row("1", "x", "4", "dep")], 5, "word 1 has head 4, but the sentence has 1 words"),
        ([row("1", "x", "1", "dep")], 5, "has a cycle through word 1"),
        (
            [row(str(k), "x", h, "dep") for k, h in enumerate("0117114", start=1)],
            5,
            "has a cycle through words 4, 7",
        ),
        (
            [row("1", "x", "0", "root"), row("2", "y", "0", "root")],
            5,
            r"has 2 roots \(words 1, 2\) instead of one",
        ),
        *(
            ([row("1", "x", head, "dep")], 6, f"has the head '{head[:9]}.*' for word 1")
            for head in ("_", "", "-1", "zero", "1.5", "9" * 5000)
        ),
        *(
            ([row("1", "x", "0", relation)], 6, f"has the relation {relation!r} for word 1")
            for relation in ("_", "", "a\x1b[31m")
        ),
        *(
            ([row(number, "x", "0", "root")], 6, f"numbers its word 1 as '{number[:9]}")
            for number in ("2", "0", "01", "_", "one", " #", "9" * 5000)
        ),
        ([row("1", "x", "0", "root"), row("1", "y", "1", "dep")], 7, "numbers its word 2 as '1'"),
        ([], 5, "has no words"),
        ([row("1-2", "xy")], 5, "has no words"),
    ],
)
def test_defects_name_file_line_sentence_and_cure(
    tmp_path: Path, rows: list[str], line: int, message: str
) -> None:
    message = message.replace("\\x1b[", r"\\x1b\[")
    pattern = (
        rf"t\.conllu, line {line}: sentence 'bad' {message}.*; "
        r'correct it or pass on_bad_sentence="skip"'
    )
    with pytest.raises(CorpusError, match=pattern) as caught:
        read(tmp_path, conllu_sentence(CAT), block("# sent_id = bad", *rows))
    assert len(str(caught.value)) < 400 + len(str(tmp_path))


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    bad = row("1", "caf").encode().replace(b"caf", b"caf\xe9")
    for on_bad in ("error", "skip"):
        with pytest.raises(CorpusError, match=r"t\.conllu, line 6: byte 0xe9 at column 6 is not"):
            read(tmp_path, GOOD, bad, on_bad_sentence=on_bad)


def test_defective_sentences_are_skipped_counted_and_part_their_neighbours(tmp_path: Path) -> None:
    one, two, three = (conllu_sentence(CAT, name) for name in ("1", "2", ""))
    file = write(tmp_path, one, BAD, one, block("# c"), two, three)
    corpus = read_conllu(file, on_bad_sentence="skip")
    assert [(s.id, s.position) for s in corpus] == [("1", 0), ("2", 4), ("t-6", 5)]
    assert [example.id for example in make_examples(corpus, "adjacent")] == ["1", "2+t-6"]
    with prepared(corpus) as ready:
        assert ready.skipped == {"defective sentences": 3}
        assert ready.record.sentences == 3


def test_columns_of_conllu_plus_are_of_one_file(tmp_path: Path) -> None:
    plus = "# global.columns = ID FORM HEAD DEPREL MY:OWN\n"
    rows = block("# sent_id = p", "1\tCats\t2\tnsubj\t*", "2\tsleep\t0\troot\t_")
    plain = write(tmp_path, GOOD, name="z.conllu")
    for name in ("t.conllup", "t.cupt", "t.conllu"):
        first, second = read_conllu([write(tmp_path, plus, rows, name=name), plain])
        assert (first.words, first.governors) == (("Cats", "sleep"), (1, ROOT))
        assert (first.relations, first.upos) == (("nsubj", "root"), ("_", "_"))
        assert second.id == "good"
    with pytest.raises(CorpusError, match="has 10 tab-separated columns instead of 5"):
        read(tmp_path, plus, GOOD)
    for columns, named in (("ID FORM UPOS", "HEAD, DEPREL"), ("ID FORM HEAD HEAD DEPREL", "HEAD")):
        with pytest.raises(CorpusError, match=f"its global.columns must name {named} once"):
            read(tmp_path, f"# global.columns = {columns}\n", GOOD)


def test_ids_are_kept_or_made_from_file_and_place(tmp_path: Path) -> None:
    texts = [conllu_sentence(CAT), GOOD, conllu_sentence(DOG), "# sent_id =\n" + GOOD[17:]]
    assert ids(read(tmp_path, *texts)) == ["t-1", "good", "t-3", "t-4"]
    comments = "# text = a = b\n#sent_id=x\n# sent_id_old = y\n# global.columns\n"
    assert ids(read(tmp_path, comments + conllu_sentence(CAT))) == ["x"]


def test_ids_repeat_unless_made_from_the_place_alone(tmp_path: Path) -> None:
    message = r't\.conllu, line 6: .* has the id of .*, line 1; correct it, .* with ids="place", or'
    with pytest.raises(CorpusError, match=message):
        read(tmp_path, GOOD, GOOD)
    files = [write(tmp_path, GOOD, GOOD, name=f"{name}.conllu") for name in "ab"]
    assert ids(read_conllu(files, ids="place")) == ["a-1", "a-2", "b-1", "b-2"]
    files = [write(tmp_path, GOOD, name=f"{name}.conllu") for name in "ab"]
    with pytest.raises(CorpusError, match=r"b\.conllu, line 1: .* sentence at .*a\.conllu, line 1"):
        list(read_conllu(files))


@pytest.mark.parametrize(
    ("rule", "sentences", "expected"),
    [
        ("newdoc", "a;b", "0 1"),
        ("newdoc", "newdoc,a;newdoc,b;c", "1#0 2#0 2#1"),
        # repeated at every sentence, which changes nothing
        ("newdoc", "newdoc id=x,a;newdoc id=x,b;newdoc id=y,c;d", "x#0 x#1 y#0 y#1"),
        # a document that comes back is the same, and its parts are not adjacent
        ("newdoc", "newdoc id=x,a;newdoc id=y,b;newdoc id=x,c;d", "x#0 y#0 x#2 x#3"),
        ("sent_id", "a-1;a-2;b-1;a-3", "a#0 a#1 b#0 a#3"),
        ("sent_id:^.{6}", "n01001011;n01001013;w01002001", "n01001#0 n01001#1 w01002#0"),
        (r"sent_id:^([nw]\d{3})\d+$", "n010011;n010013;w010020", "n010#0 n010#1 w010#0"),
        # a comment holds until there is another
        ("comment:source", "a;source=x,b;c;source=y,d", "0 x#0 x#1 y#0"),
    ],
)
def test_documents(tmp_path: Path, rule: str, sentences: str, expected: str) -> None:
    """Documents and positions, with a comment before the name of a sentence, if it has any."""
    given = (one.rpartition(",") for one in sentences.split(";"))
    texts = (f"# {note}\n" * bool(note) + conllu_sentence(CAT, name) for note, _, name in given)
    found = read(tmp_path, *texts, documents=rule)
    places = [f"{s.document}#{s.position}".removeprefix("t#") for s in found]
    assert places == expected.split()


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        *(
            (rule, "sentence 'n01001011' names no document: it lacks")
            for rule in ("sent_id", r"sent_id:-\d+-", "sent_id:(x)?$")
        ),
        ("comment:source", "no sentence has a comment 'source' .*; use one of: genre, speaker"),
        ("genre", "documents is 'genre'; pass newdoc, sent_id, sent_id:PATTERN or comment:"),
        *((rule, "pass newdoc") for rule in ("comment:", "sent_id:", "newdoc:x", 3)),
        ("sent_id:(", r"the pattern '\(', which is not a regular expression"),
    ],
)
def test_rules_for_documents_that_are_refused(tmp_path: Path, rule: Any, message: str) -> None:
    texts = ["# genre = news\n# speaker = s\n", conllu_sentence(CAT, "n01001011"), "# text = x\n"]
    with pytest.raises((CorpusError, UsageError), match=message):
        read(tmp_path, *texts, GOOD, documents=rule)


@pytest.mark.parametrize(
    ("sentences", "undivided", "by_id"),
    [
        ([("", "a-1"), ("", "b-1")], 2, 2),
        ([("", "a-1"), ("", "a-2")], 2, 1),
        ([("", "a-1"), ("", "b")], 2, 0),
        ([("", "a-1"), ("# newdoc id = d\n", "b-1")], 1, 1),
        ([("# newdoc\n", "a-1"), ("", "b-1")], 0, 0),
    ],
)
def test_sentences_without_a_named_document_are_counted(
    tmp_path: Path, sentences: list[tuple[str, str]], undivided: int, by_id: int
) -> None:
    texts = [comments + conllu_sentence(CAT, name) for comments, name in sentences]
    with prepared(read_conllu(write(tmp_path, *texts))) as corpus:
        assert (corpus.record.undivided, corpus.record.documents_by_id) == (undivided, by_id)


ANNOTATIONS = {"lemma": ("cat", "_"), "upos": ("NOUN", "VERB"), "feats": ("Number=Plur", "_")}
CATS = Sentence("t-1", "t.txt", 0, ("cats", "sleep"), (1, -1), ("nsubj", "root"), ANNOTATIONS)
TWO_TREES = Sentence("t-2", "t.txt", 1, ("Yes", "no"), (-1, -1), ("ROOT", "ROOT"))
OTHER = Sentence("u-1", "u.txt", 0, ("\u00a0x|y=z", "#"), (-1, 0), ("root", "punct"))


@pytest.mark.parametrize("scheme", ["clear", ""])
def test_saved_sentences_are_read_back(tmp_path: Path, scheme: str) -> None:
    """The labels alone would pass for UD."""
    file = tmp_path / "saved.conllu"
    given = Corpus({"scheme": scheme} if scheme else {}, lambda _: iter([CATS, TWO_TREES, OTHER]))
    with prepared(save_parses(given, file)) as first, prepared(read_conllu(file)) as again:
        assert again.record.digest == first.record.digest
        assert again.record.scheme == first.record.scheme == (scheme or "ud")
        found = list(again)
    assert [one.words for one in found] == [CATS.words, TWO_TREES.words, OTHER.words]
    assert (found[0].lemmas, found[0].feats[0]) == (("cat", "_"), {"Number": "Plur"})
    assert list(tmp_path.iterdir()) == [file]


def test_a_scheme_is_that_of_all_files(tmp_path: Path) -> None:
    files = {}
    for name, scheme in {"a": "clear", "b": "clear", "c": "", "d": "ud"}.items():
        text = to_conllu(replace(CATS, id=name), {"headroles.scheme": scheme} if scheme else {})
        files[name] = write(tmp_path, text, name=f"{name}.conllu")
    for chosen, scheme in (("ab", "clear"), ("abc", "ud")):
        with prepared(read_conllu([files[name] for name in chosen])) as ready:
            assert ready.record.scheme == scheme
    with pytest.raises(CorpusError, match="the label schemes clear and ud stand in one corpus"):
        list(read_conllu([files["a"], files["d"]]))


def test_no_file_appears_for_a_corpus_that_was_not_read_to_its_end(tmp_path: Path) -> None:
    def fail(skipped: object) -> Iterator[Sentence]:
        yield CATS
        raise CorpusError("defective")

    with pytest.raises(CorpusError):
        list(save_parses(Corpus({}, fail), tmp_path / "saved.conllu"))
    assert not list(tmp_path.iterdir())


def test_an_existing_file_is_not_replaced(tmp_path: Path) -> None:
    file = write(tmp_path, "mine")
    for _ in range(2):
        with pytest.raises(UsageError, match="already exists; give it as the corpus"):
            save_parses(make_corpus([CATS]), file)
        assert file.is_symlink() or file.read_text() == "mine"
        file.unlink()
        file.symlink_to("/dev/null")  # which root could replace


def test_comments_of_headroles_with_other_values_are_ignored(tmp_path: Path) -> None:
    saved = to_conllu(CATS, {"headroles.scheme": "x"})
    with prepared(read_conllu(write(tmp_path, saved))) as ready:
        assert ready.record.scheme == "ud"
    with pytest.raises(CorpusError, match="has 2 roots"):
        read(tmp_path, to_conllu(TWO_TREES, {}).replace("trees = 2", "trees = x"))
    many = to_conllu(CATS, {"headroles.empty_cells": 10**17})
    with prepared(read_conllu(write(tmp_path, many))) as ready:
        assert not ready.skipped
