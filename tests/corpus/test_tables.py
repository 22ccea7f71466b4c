"""Rows of tables: the same from every format, and errors that name what was found."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headroles.corpus.files import CorpusFile
from headroles.corpus.tables import read_columns
from headroles.errors import CorpusError, UsageError
from headroles.tasks.options import TaskOptions
from headroles.tasks.reading import read_task

TABLE = pd.DataFrame(
    {"id": [1, 2], "text": ['He said, "go".', "Two\nlines; here"], "label": ["good", "bad"]}
)


def read_all(path: Path) -> list[tuple[int, list[str]]]:
    """All rows with their lines; every column is chosen."""
    return list(read_columns(CorpusFile(path, str(path), path.stem), lambda names: [*names]))


def rows_of(path: Path) -> list[list[str]]:
    return [cells for _, cells in read_all(path)]


def save(folder: Path, name: str) -> Path:
    file = folder / name
    if name == "a.csv":
        TABLE.to_csv(file, index=False)
    elif name == "b.csv":
        TABLE.to_csv(file, index=False, sep=";")
    elif name == "c.jsonl":
        TABLE.to_json(file, orient="records", lines=True)
    elif name == "d.parquet":
        TABLE.to_parquet(file)
    else:
        datasets = pytest.importorskip("datasets")
        datasets.Dataset.from_pandas(TABLE).save_to_disk(str(file))
    return file


@pytest.mark.parametrize("name", ["a.csv", "b.csv", "c.jsonl", "d.parquet", "saved"])
def test_all_formats_have_the_same_rows(tmp_path: Path, name: str) -> None:
    file = save(tmp_path, name)
    cells = TABLE.astype(str).to_numpy().tolist()
    assert rows_of(file) == cells
    task = read_task(file, TaskOptions())
    assert task.texts == ((cells[0][1],), (" ".join(cells[1][1].split()),))
    assert task.labels == ("good", "bad")


def test_lines_of_quoted_cells_count_from_where_they_begin(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text('text,label\n"a\nb",x\nc,y\n', encoding="utf-8")
    assert [line for line, _ in read_all(file)] == [2, 4]


def test_tabs_leave_quotation_marks_alone(tmp_path: Path) -> None:
    file = tmp_path / "t.tsv"
    file.write_text('text\tlabel\n"a, b\tx\n', encoding="utf-8")
    assert rows_of(file) == [['"a, b', "x"]]


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
        ("t.jsonl", "[1]\n", "line 1 is no object"),
        ("t.jsonl", '{"text": \n', "line 1: .*one object a line"),
        ("t.jsonl", '{"text": "a"}\n{"text": "\\ud800"}\n', "line 2 has half of a character"),
        ("t.jsonl", "\n\n", "has empty lines only"),
        ("t.parquet", "no parquet", "cannot be read as Parquet"),
        ("hf:nobody/nothing:train", "", "hf:nobody/nothing:train cannot be loaded"),
    ],
)
def test_bad_tables_are_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: str, message: str
) -> None:
    file = Path(name)
    if content:
        file = tmp_path / name
        file.write_text(content, encoding="utf-8")
    else:
        pytest.importorskip("datasets")
        monkeypatch.setattr("datasets.load_dataset", _fail)
    with pytest.raises(CorpusError, match=message) as caught:
        rows_of(file)
    assert "\n" not in str(caught.value)


def _fail(*_: object, **__: object) -> None:
    raise ConnectionError("no network\n\nadvice")


NOT_UTF8 = pa.Array.from_buffers(pa.string(), 2, pa.array([b"ok", b"\xff"]).buffers())
FAR = pa.array([2**62] * 2, pa.int64()).cast(pa.timestamp("us"))


@pytest.mark.parametrize(("bad", "cause"), [(NOT_UTF8, "can't decode"), (FAR, "out of range")])
def test_only_chosen_columns_of_parquet_are_read(tmp_path: Path, bad: pa.Array, cause: str) -> None:
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"other": bad, "text": ["a", "b"], "label": ["x", "y"]}), file)
    assert read_task(file, TaskOptions()).texts == (("a",), ("b",))
    with pytest.raises(CorpusError, match=rf"t\.parquet cannot be read .*{cause}.*; write it anew"):
        read_task(file, TaskOptions(text_columns="other"))


def test_parts_of_a_data_set_are_named(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    parts = {"train": datasets.Dataset.from_pandas(TABLE)}
    datasets.DatasetDict(parts).save_to_disk(str(tmp_path / "all"))
    with pytest.raises(UsageError, match=r"has several splits; name one, .*/SPLIT: train"):
        rows_of(tmp_path / "all")


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
