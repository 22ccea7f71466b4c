"""CoNLL-U files: what is read, what is passed over, and what every defect is called."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headroles.corpus import ROOT, Corpus, Sentence, make_examples, prepared, read_conllu
from headroles.errors import CorpusError
from tests.conftest import CAT, DOG, conllu_sentence


def row(number: str, form: str, head: str = "_", relation: str = "_") -> str:
    return "\t".join([number, form, "_", "X", "_", "_", head, relation, "_", "_"])


def block(*rows: str) -> str:
    return "\n".join(rows) + "\n\n"


def write(folder: Path, *texts: str | bytes, name: str = "t.conllu") -> Path:
    file = folder / name
    file.write_bytes(b"".join(t if isinstance(t, bytes) else t.encode() for t in texts))
    return file


def read(folder: Path, *texts: str | bytes) -> list[Sentence]:
    return list(read_conllu(write(folder, *texts)))


def ids(corpus: Corpus) -> list[str]:
    return [sentence.id for sentence in corpus]


GOOD = conllu_sentence(CAT, "good")
BAD = block("# sent_id = bad", row("1", "x", "1", "dep"))


# Files and folders


def test_a_sentence_is_read_whole(treebank: Path) -> None:
    assert list(read_conllu(treebank))[1] == Sentence(
        id="a-2",
        document="small#a",
        position=1,
        words=("Old", "dogs", "eat", "bones"),
        governors=(1, 2, ROOT, 2),
        relations=("amod", "nsubj", "root", "obj"),
    )


def test_a_folder_stands_for_its_treebanks_in_sorted_order(tmp_path: Path) -> None:
    write(tmp_path, conllu_sentence(CAT, "late"), name="b.conllu")
    write(tmp_path, conllu_sentence(CAT, "early"), name="a.conllu")
    write(tmp_path, "no treebank", name="README.md")
    (tmp_path / "folder.conllu").mkdir()
    assert ids(read_conllu(tmp_path)) == ["early", "late"]


def test_folder_without_treebank(tmp_path: Path) -> None:
    write(tmp_path, "x", name="x.txt")
    with pytest.raises(CorpusError, match=re.escape(f"folder {tmp_path} holds no .conllu file")):
        read_conllu(tmp_path)
    write(tmp_path, "{}", name="config.json")
    with pytest.raises(CorpusError, match="it holds a model; give the model first"):
        read_conllu(tmp_path)


def test_missing_path(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"nothing\.conllu does not exist; give a file"):
        read_conllu(tmp_path / "nothing.conllu")


def test_no_path() -> None:
    with pytest.raises(CorpusError, match="no corpus was given; give at least one"):
        read_conllu([])


@pytest.mark.parametrize("other", ["{file}", "{folder}", "{folder}/../{folder.name}/t.conllu"])
def test_same_file_twice(tmp_path: Path, other: str) -> None:
    file = write(tmp_path, GOOD)
    with pytest.raises(CorpusError, match=r"t\.conllu was given twice; give every file once"):
        read_conllu([file, other.format(file=file, folder=tmp_path)])


def test_empty_file(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"t\.conllu is empty"):
        read(tmp_path, "")


def test_file_that_cannot_be_opened(tmp_path: Path) -> None:
    file = write(tmp_path, GOOD)
    corpus = read_conllu(file)
    file.unlink()
    with pytest.raises(CorpusError, match=r"t\.conllu cannot be read: No such file"):
        list(corpus)


# Bytes and line ends


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    bad = row("1", "caf").encode().replace(b"caf", b"caf\xe9")
    with pytest.raises(CorpusError, match=r"t\.conllu, line 6: byte 0xe9 at column 6 is not UTF-8"):
        read(tmp_path, GOOD, bad)


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


# Defective sentences


@pytest.mark.parametrize(
    ("rows", "line", "message"),
    [
        (["1\tx\t_"], 6, "has 3 tab-separated columns instead of 10"),
        ([row("1", "x", "0", "root") + "\t_"], 6, "has 11 tab-separated columns instead of 10"),
        ([row("1", "x", "0", "root"), "2 y _ X _ _ 1 dep _ _"], 7, "has 1 tab-separated columns"),
        ([row("1", "x", "4", "dep")], 5, "word 1 has head 4, but the sentence has 1 words"),
        ([row("1", "x", "-1", "dep")], 5, "word 1 has head -1, but"),
        ([row("1", "x", "1", "dep")], 5, "has a cycle through word 1"),
        (
            [row("1", "x", "2", "dep"), row("2", "y", "1", "dep")],
            5,
            "has a cycle through words 1 and 2",
        ),
        (
            [row(str(k), "x", h, "dep") for k, h in enumerate("0117114", start=1)],
            5,
            "has a cycle through words 4 and 7",
        ),
        (
            [row("1", "x", "0", "root"), row("2", "y", "0", "root")],
            5,
            r"has 2 roots \(words 1, 2\) instead of one",
        ),
        ([row("1", "x", "_", "dep")], 6, "has no head or no relation for word 1"),
        ([row("1", "x", "0", "_")], 6, "has no head or no relation for word 1"),
        ([row("1", "x", "0", "")], 6, "has no head or no relation for word 1"),
        ([row("1", "x", "zero", "root")], 6, "cannot be parsed: .*'head'.*'zero'"),
        ([row("one", "x", "0", "root")], 6, "cannot be parsed: .*'id'.*'one'"),
        ([row("2", "x", "0", "root")], 6, "numbers its word 1 as 2"),
        ([row("1", "x", "0", "root"), row("1", "y", "1", "dep")], 7, "numbers its word 2 as 1"),
        ([row("0", "x", "0", "root")], 6, "numbers its word 1 as 0"),
        ([row("1", "x", "0", "root"), row("_", "y", "1", "dep")], 7, "does not number its word 2"),
        ([row("1", "x", "9" * 5000, "root")], 6, "cannot be parsed: .* the number .* is too large"),
        ([row("9" * 5000, "x", "0", "root")], 6, "cannot be parsed: .* the number .* is too large"),
        ([row("1-" + "9" * 5000, "x")], 6, "cannot be parsed: .* the number .* is too large"),
        ([row("1", "x", "y" * 5000, "root")], 6, "cannot be parsed: .{20,120}"),
        ([" #" + "\t_" * 9], 6, "cannot be parsed: .*' #' is not a valid ID"),
        ([row("1", "10  000", "0", "root")], 6, "has two spaces in a row inside a column"),
        ([row("1", "x", "0", "a\x1b[31m")], 6, "has control characters in the relation of word 1"),
        ([], 5, "has no words"),
        ([row("1-2", "xy")], 5, "has no words"),
        ([row("0.1", "x")], 5, "has no words"),
    ],
)
def test_defects_name_file_line_sentence_and_cure(
    tmp_path: Path, rows: list[str], line: int, message: str
) -> None:
    pattern = (
        rf"t\.conllu, line {line}: sentence 'bad' {message}.*; "
        r'correct it or pass on_bad_sentence="skip"'
    )
    with pytest.raises(CorpusError, match=pattern):
        read(tmp_path, conllu_sentence(CAT), block("# sent_id = bad", *rows))


# What is not a word


def test_ranges_and_empty_nodes_are_passed_over(tmp_path: Path) -> None:
    (sentence,) = read(
        tmp_path,
        block(
            row("0.1", "gone"),
            row("1-2", "don't"),
            row("1", "do", "3", "aux"),
            row("2", "n't", "3", "advmod"),
            row("3", "go", "0", "root"),
            row("3.1", "went"),
        ),
    )
    assert sentence.words == ("do", "n't", "go")
    assert sentence.governors == (2, 2, ROOT)
    assert sentence.n_multiword == 1


# CoNLL-U Plus


PLUS = "# global.columns = ID FORM HEAD DEPREL MY:OWN\n"


def test_columns_of_conllu_plus(tmp_path: Path) -> None:
    rows = ["# sent_id = p", "1\tCats\t2\tnsubj\t*", "2\tsleep\t0\troot\t_"]
    for name in ("t.conllup", "t.cupt", "t.conllu"):
        (sentence,) = read_conllu(write(tmp_path, PLUS, block(*rows), name=name))
        assert sentence.words == ("Cats", "sleep")
        assert sentence.governors == (1, ROOT)
        assert sentence.relations == ("nsubj", "root")


def test_columns_of_conllu_plus_are_of_one_file(tmp_path: Path) -> None:
    plus = write(tmp_path, PLUS, block("1\tCats\t0\troot\t_"), name="a.conllup")
    plain = write(tmp_path, GOOD, name="b.conllu")
    assert ids(read_conllu([plus, plain])) == ["a-1", "good"]
    with pytest.raises(CorpusError, match="has 10 tab-separated columns instead of 5"):
        read(tmp_path, PLUS, GOOD)


@pytest.mark.parametrize(
    ("columns", "named"),
    [("ID FORM UPOS", "HEAD, DEPREL once"), ("ID FORM HEAD HEAD DEPREL", "HEAD once")],
)
def test_columns_that_make_no_tree(tmp_path: Path, columns: str, named: str) -> None:
    with pytest.raises(CorpusError, match=f"its global.columns must name {named}"):
        read(tmp_path, f"# global.columns = {columns}\n", GOOD)


# Documents and ids


def test_file_without_newdoc_is_one_document(tmp_path: Path) -> None:
    cat = conllu_sentence(CAT)
    files = [write(tmp_path, cat, cat, name=f"{name}.conllu") for name in "ab"]
    sentences = list(read_conllu(files))
    assert [s.document for s in sentences] == [files[0].stem] * 2 + [files[1].stem] * 2
    assert [s.position for s in sentences] == [0, 1, 0, 1]


def test_ids_are_kept_or_made_from_file_and_place(tmp_path: Path) -> None:
    texts = [conllu_sentence(CAT), GOOD, conllu_sentence(DOG), "# sent_id =\n" + GOOD[17:]]
    assert [s.id for s in read(tmp_path, *texts)] == ["t-1", "good", "t-3", "t-4"]


def test_ids_repeat_unless_made_from_the_place_alone(tmp_path: Path) -> None:
    message = r't\.conllu, line 6: .* has the id of .*, line 1; correct it, .* with ids="place", or'
    with pytest.raises(CorpusError, match=message):
        read(tmp_path, GOOD, GOOD)
    with pytest.raises(CorpusError, match=r"b\.conllu, line 1: .* sentence at .*a\.conllu, line 1"):
        list(read_conllu([write(tmp_path, GOOD, name=f"{name}.conllu") for name in "ab"]))
    files = [write(tmp_path, GOOD, GOOD, name=f"{name}.conllu") for name in "ab"]
    assert ids(read_conllu(files, ids="place")) == ["a-1", "a-2", "b-1", "b-2"]


def test_comments_around_the_id_do_not_matter(tmp_path: Path) -> None:
    text = "# text = a = b\n#sent_id=x\n# sent_id_old = y\n# global.columns\n" + conllu_sentence(
        CAT
    )
    assert [s.id for s in read(tmp_path, text)] == ["x"]


# Policies


def test_defective_sentences_are_skipped_and_counted(tmp_path: Path) -> None:
    file = write(tmp_path, GOOD, BAD, GOOD, block("# c"), conllu_sentence(CAT))
    corpus = read_conllu(file, on_bad_sentence="skip")
    assert ids(corpus) == ["good", "t-5"]
    with prepared(corpus) as read_through:
        assert read_through.skipped == {"defective sentences": 3}
        assert read_through.n_sentences == 2


def test_sentences_around_a_skipped_one_are_not_paired(tmp_path: Path) -> None:
    one, two, three = (conllu_sentence(CAT, name) for name in ("1", "2", "3"))
    corpus = read_conllu(write(tmp_path, one, BAD, two, three), on_bad_sentence="skip")
    assert [s.position for s in corpus] == [0, 2, 3]
    assert [example.id for example in make_examples(corpus, "adjacent")] == ["1", "2+3"]


def test_files_that_are_not_utf8_are_never_skipped(tmp_path: Path) -> None:
    corpus = read_conllu(write(tmp_path, GOOD, b"1\t\xff"), on_bad_sentence="skip")
    with pytest.raises(CorpusError, match="is not UTF-8"):
        list(corpus)


# Laziness
