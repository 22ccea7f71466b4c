"""Files of corpora: compressed, from standard input, in folders; tables of every format."""

from __future__ import annotations

import bz2
import gc
import gzip
import io
import lzma
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headroles.corpus import read_conllu
from headroles.corpus.files import CorpusFile, find_files
from headroles.corpus.tables import read_columns
from headroles.errors import CorpusError, UsageError
from headroles.roles.catalogue import read_frequencies
from headroles.tasks.options import TaskOptions
from headroles.tasks.reading import read_task
from tests.conftest import CAT, DOG, conllu_sentence

TEXT = (conllu_sentence(CAT, "one") + conllu_sentence(DOG)).encode()
PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}


def ids(*paths: Path | str) -> list[str]:
    return [sentence.id for sentence in read_conllu(paths)]


@pytest.mark.parametrize("ending", PACK)
@pytest.mark.parametrize("by_name", [True, False])
def test_compressed_files_are_read_whatever_they_are_called(
    tmp_path: Path, ending: str, by_name: bool
) -> None:
    file = tmp_path / f"t.conllu{ending if by_name else ''}"
    file.write_bytes(PACK[ending](TEXT))
    assert ids(file) == ["one", "t-2"]
    assert ids(tmp_path) == ["one", "t-2"]


@pytest.mark.parametrize("ending", PACK)
@pytest.mark.parametrize("damage", ["cut", "changed", "empty"])
def test_damaged_files_are_named(tmp_path: Path, ending: str, damage: str) -> None:
    packed = PACK[ending](b"" if damage == "empty" else os.urandom(3000).hex().encode())
    middle = len(packed) // 2
    other = bytes([packed[middle] ^ 255])
    bad = {"cut": b"", "changed": other + packed[middle + 1 :], "empty": packed[middle:]}[damage]
    file = tmp_path / f"t.conllu{ending}"
    file.write_bytes(packed[:middle] + bad)
    kinds = "is empty" if damage == "empty" else "(damaged .*; get it again|UTF-8)"
    with pytest.raises(CorpusError, match=rf"t\.conllu{ending}.*{kinds}"):
        ids(file)


def test_text_may_begin_like_a_compressed_file(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("BZh9\tlabel\na\tb\n", encoding="utf-8")
    assert rows_of(tmp_path / "t.tsv") == [["a", "b"]]


@pytest.mark.parametrize("name", ["t.jsonl", "t.txt"])
def test_a_file_of_empty_lines_has_no_examples(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("\n\n", encoding="utf-8")
    objective = "classification" if name == "t.jsonl" else "masked_lm"
    with pytest.raises(CorpusError, match=rf"{name} holds 0 examples; two are the least"):
        read_task(tmp_path / name, TaskOptions(), objective)


@pytest.mark.parametrize("pack", [bytes, *PACK.values()], ids=["plain", *PACK])
def test_standard_input_is_read_as_often_as_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    """What is kept of it goes with the corpus."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(pack(TEXT))))
    corpus = read_conllu("-")
    assert corpus.source["files"] == ["standard input"]
    for _ in range(2):
        assert [(s.id, s.document) for s in corpus] == [("one", "stdin"), ("stdin-2", "stdin")]
    assert len(list(tmp_path.iterdir())) == 1
    del corpus
    gc.collect()
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"1\tx\n")))
    with pytest.raises(CorpusError, match=r"standard input, line 1: .* 2 tab-separated columns"):
        list(read_conllu("-"))


def test_a_folder_says_what_it_left(tmp_path: Path) -> None:
    for name in ("b.conllu", "a.conllu.xz", "README.md", "LICENSE.txt", ".hidden", "c.conllup"):
        (tmp_path / name).write_bytes(TEXT)
    (tmp_path / "deeper").mkdir()
    files, source = find_files(tmp_path, ".conllu", ".conllup")
    assert [file.path.name for file in files] == ["a.conllu.xz", "b.conllu", "c.conllup"]
    left = ["LICENSE.txt", "README.md", "deeper/"]
    assert source["folders"] == [{"folder": str(tmp_path), "taken": 3, "left": left, "n_left": 3}]


def test_a_folder_without_treebanks(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"holds no \.conllu file; name the files themselves"):
        read_conllu(tmp_path)
    for name in ("UD_A", "UD_B", "empty"):
        (tmp_path / name).mkdir()
    (tmp_path / "UD_B" / "b.conllu.gz").write_bytes(TEXT)
    with pytest.raises(CorpusError, match=r"no \.conllu file; its folders do: .*UD_B$"):
        read_conllu(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CorpusError, match="it holds a model; give the model first"):
        read_conllu(tmp_path)


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ([], "no corpus was given; give at least one"),
        (["no.conllu"], r"no\.conllu does not exist; give a file or a folder of .conllu files"),
        (["nsubj"], "nsubj does not exist; separate relations with commas"),
        (["{}/t.conllu", "{}"], r"t\.conllu was given twice; give every file once"),
        (["{0}/t.conllu", "{0}/../{0.name}/t.conllu"], "was given twice; give every file once"),
        (["-", "-"], "- was given twice"),
        *((["x" * n], "xxx.* cannot be read: File name too long") for n in (300, 5000)),
        (["\ud800.conllu"], "cannot be read: .*surrogates not allowed"),
    ],
)
def test_paths_that_are_refused(tmp_path: Path, paths: list[str], message: str) -> None:
    (tmp_path / "t.conllu").write_bytes(TEXT)
    with pytest.raises(CorpusError, match=message):
        read_conllu([path.format(tmp_path) for path in paths])


READERS: dict[str, Callable[[Path], object]] = {
    "corpus": lambda file: list(read_conllu(file)),
    "task": lambda file: read_task(file, TaskOptions()),
    "text to mask": lambda file: read_task(file, TaskOptions(), "masked_lm"),
    "frequencies": read_frequencies,
}


@pytest.mark.parametrize("kind", READERS)
def test_only_regular_files_are_read(tmp_path: Path, kind: str) -> None:
    """A pipe would block, a device would end at once or never."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for file in (tmp_path / "pipe", tmp_path / "link", Path("/dev/null")):
        with pytest.raises(CorpusError, match=f"{file} is a pipe or a device.*; copy it to a file"):
            READERS[kind](file)


def test_files_of_one_name_give_their_sentences_different_ids(tmp_path: Path) -> None:
    files = [tmp_path / place / "t.conllu" for place in ("a/x", "b/x", "c")]
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_text(conllu_sentence(CAT) + conllu_sentence(DOG))
    assert ids(*files[1:]) == ["x/t-1", "x/t-2", "c/t-1", "c/t-2"]
    assert ids(*files)[::2] == ["a/x/t-1", "b/x/t-1", "c/t-1"]
    assert ids(files[0]) == ["t-1", "t-2"]


@pytest.mark.skipif(sys.platform == "darwin", reason="its names are UTF-8")
def test_names_that_are_not_utf8_can_be_written_down(tmp_path: Path) -> None:
    file = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9\x1b.conllu"))
    file.write_bytes(conllu_sentence(CAT).encode())
    (sentence,) = corpus = read_conllu(file)
    assert sentence.id == r"caf\udce9\x1b-1"
    for text in (sentence.id, sentence.document, *corpus.source["files"]):
        assert text.encode()
    file = file.rename(tmp_path / "a\x1b[1m.conllu")
    corpus = read_conllu(file)  # recorded as it is called, so that it is found again
    assert corpus.source["files"] == [str(file)]
    assert next(iter(read_conllu(corpus.source["files"]))).id == r"a\x1b[1m-1"


def test_files_may_change_before_they_are_read(tmp_path: Path) -> None:
    file = tmp_path / "t.conllu"
    file.write_bytes(TEXT)
    corpus = read_conllu(file)
    file.unlink()
    with pytest.raises(CorpusError, match=r"t\.conllu cannot be read: No such file"):
        list(corpus)
    os.mkfifo(file)
    with pytest.raises(CorpusError, match=r"t\.conllu is a pipe"):
        list(corpus)


TABLE = pd.DataFrame(
    {"id": [1, 2], "text": ['He said, "go".', "Two\nlines; here"], "label": ["good", "bad"]}
)


def read_all(path: Path) -> list[tuple[int, list[str]]]:
    """All rows with their lines; every column is chosen."""
    return list(read_columns(CorpusFile(path, str(path), path.stem), lambda names: [*names]))


def rows_of(path: Path) -> list[list[str]]:
    return [cells for _, cells in read_all(path)]


SAVED: dict[str, Callable[[Path], object]] = {
    "a.csv": lambda file: TABLE.to_csv(file, index=False),
    "b.csv": lambda file: TABLE.to_csv(file, index=False, sep=";"),
    "c.jsonl": lambda file: TABLE.to_json(file, orient="records", lines=True),
    "d.parquet": TABLE.to_parquet,
    "saved": lambda file: (
        pytest.importorskip("datasets").Dataset.from_pandas(TABLE).save_to_disk(str(file))
    ),
}


@pytest.mark.parametrize("name", SAVED)
def test_all_formats_have_the_same_rows(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    SAVED[name](file)
    cells = TABLE.astype(str).to_numpy().tolist()
    assert rows_of(file) == cells
    task = read_task(file, TaskOptions())
    assert task.texts == ((cells[0][1],), (" ".join(cells[1][1].split()),))
    assert task.labels == ("good", "bad")


def test_quotation_marks_count_in_tables_of_commas_alone(tmp_path: Path) -> None:
    """Lines of quoted cells count from where they begin; tabs leave quotation marks alone."""
    (tmp_path / "t.csv").write_text('text,label\n"a\nb",x\nc,y\n', encoding="utf-8")
    assert [line for line, _ in read_all(tmp_path / "t.csv")] == [2, 4]
    (tmp_path / "t.tsv").write_text('text\tlabel\n"a, b\tx\n', encoding="utf-8")
    assert rows_of(tmp_path / "t.tsv") == [['"a, b', "x"]]


@pytest.mark.parametrize(("mark", "name"), [(",", "comma"), (";", "semicolon")])
def test_another_separator_is_named_in_errors(tmp_path: Path, mark: str, name: str) -> None:
    file = tmp_path / "t.tsv"
    file.write_text(f"text{mark}label\na{mark}x\nb{mark}y\n", encoding="utf-8")
    for options in (TaskOptions(), TaskOptions(text_columns="text")):
        with pytest.raises((UsageError, CorpusError), match=f"pass separator={name!r}"):
            read_task(file, options)
    assert read_task(file, TaskOptions(separator=name)).labels == ("x", "y")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.jsonl", '{"text": "a"}\n{"txt": "b"}\n', "line 2 has no text; add it"),
        ("t.jsonl", "[1]\n", "'object', got 'array'; JSON lines have one object a line$"),
        ("t.jsonl", '{"text": \n', "line 1: .*one object a line$"),
        ("t.jsonl", '{"text": "a"}\n{"text": "\\ud800"}\n', "line 2: .* no character is half"),
        ("t.parquet", "no parquet", "cannot be read as Parquet"),
    ],
)
def test_bad_tables_are_refused_in_one_line(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(CorpusError, match=message) as caught:
        rows_of(tmp_path / name)
    assert "\n" not in str(caught.value)


NOT_UTF8 = pa.Array.from_buffers(pa.string(), 2, pa.array([b"ok", b"\xff"]).buffers())
FAR = pa.array([2**62] * 2, pa.int64()).cast(pa.timestamp("us"))


@pytest.mark.parametrize(("bad", "cause"), [(NOT_UTF8, "can't decode"), (FAR, "out of range")])
def test_only_chosen_columns_of_parquet_are_read(tmp_path: Path, bad: pa.Array, cause: str) -> None:
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"other": bad, "text": ["a", "b"], "label": ["x", "y"]}), file)
    assert read_task(file, TaskOptions()).texts == (("a",), ("b",))
    with pytest.raises(CorpusError, match=rf"t\.parquet cannot be read .*{cause}.*; write it anew"):
        read_task(file, TaskOptions(text_columns="other"))


def test_data_sets_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    parts = {"train": datasets.Dataset.from_pandas(TABLE)}
    datasets.DatasetDict(parts).save_to_disk(str(tmp_path / "all"))
    with pytest.raises(UsageError, match=r"has several splits; name one, .*/SPLIT: train"):
        rows_of(tmp_path / "all")

    def fail(*_: object, **__: object) -> None:
        raise ConnectionError("no network\n\nadvice")

    monkeypatch.setattr("datasets.load_dataset", fail)
    with pytest.raises(CorpusError, match="hf:nobody/nothing:train cannot be loaded") as caught:
        rows_of(Path("hf:nobody/nothing:train"))
    assert "\n" not in str(caught.value)


def test_columns_of_one_name_are_told_apart_by_number(tmp_path: Path) -> None:
    columns = [pa.array(["a", "b"]), pa.array(["x", "y"]), pa.array(["p", "q"])]
    pq.write_table(pa.Table.from_arrays(columns, ["t", "u", "t"]), tmp_path / "t.parquet")
    file = CorpusFile(tmp_path / "t.parquet", "t.parquet", "t")
    assert [cells for _, cells in read_columns(file, lambda _: [2, 0])] == [["p", "a"], ["q", "b"]]
    with pytest.raises(CorpusError, match=r"has 2 columns 't', numbers 0, 2; give the number"):
        list(read_columns(file, lambda _: ["t"]))


@pytest.mark.parametrize(("cell", "kind"), [([1], "list"), ({"a": "b"}, "dict"), (b"x", "bytes")])
def test_cells_that_are_no_texts_are_refused(tmp_path: Path, cell: object, kind: str) -> None:
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"text": [cell, cell]}), file)
    with pytest.raises(CorpusError, match=rf"t\.parquet, row 1: a cell is a {kind}; choose"):
        rows_of(file)
    if kind != "bytes":
        TABLE.assign(text=[cell, cell]).to_json(tmp_path / "t.jsonl", orient="records", lines=True)
        with pytest.raises(CorpusError, match=rf"t\.jsonl, line 1: a cell is a {kind}; choose"):
            rows_of(tmp_path / "t.jsonl")
