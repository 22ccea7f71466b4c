"""Tables in files: separated text, JSON lines, Parquet, data sets of Hugging Face."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import msgspec

from headroles.corpus.files import HUB_PREFIX, CorpusFile, check_not_special, is_dataset, kind_of
from headroles.errors import CorpusError, HeadRolesError, UsageError
from headroles.options import split_names, whole_number
from headroles.wording import in_one_line, it_has, listed, shortened

Row = tuple[int, list[Any]]
Choose = Callable[[Sequence[str]], Sequence[str | int]]
_MARKS = {"tab": "\t", "comma": ",", "semicolon": ";"}
TABLES = (".tsv", ".csv", ".jsonl", ".ndjson", ".parquet")
"""Extensions of files that hold tables."""
_NO_TEXTS = (dict, list, tuple, bytes)
_A_NUMBER = re.compile(r"[-+]?\d+([.,]\d+)?")
_A_SENTENCE = re.compile(r"(?<!\S)(\S+\s+){3}\S|[.?!\u3002\uff1f\uff01]$")


def read_columns(
    file: CorpusFile, choose: Choose, *, header: bool | None = True, separator: str | None = None
) -> Iterator[tuple[int, list[str]]]:
    """Yield the chosen cells of every row, with the number of its line, or of the row in Parquet.

    ``choose`` returns columns, by name or by number from 0, given the names of all (none without
    a header line); other columns are not read. Only separated text may lack a header; with ``None``
    its first line is refused if it looks like data and columns are numbered. The ``separator`` is
    tab, comma or semicolon; None takes tabs, and in ``.csv`` files the separator that occurs most
    in the first line. Quotation marks are ordinary characters in files with tabs, and quote cells
    in files with commas or semicolons. Lines without any cell are ignored in tables of several
    columns.

    Raises CorpusError that names the line of a defect, or for a file whose content does not fit its
    extension; UsageError for a name without a header, or without the package that reads the file.
    """
    kind = kind_of(file.path)
    if is_dataset(file.path):
        rows, unit = _dataset_rows(file, choose), "row"
    elif kind in (".jsonl", ".ndjson"):
        rows, unit = _json_rows(file, choose), "line"
    elif kind == ".parquet":
        rows, unit = _parquet_rows(file, choose), "row"
    else:
        rows, unit = _text_rows(file, choose, header, separator), "line"
    for number, cells in rows:
        if wrong_types := [type(cell).__name__ for cell in cells if isinstance(cell, _NO_TEXTS)]:
            raise CorpusError(
                f"{file}, {unit} {number}: a cell is a {wrong_types[0]}; choose columns of texts"
            )
        yield number, ["" if cell is None else str(cell) for cell in cells]


def _text_rows(
    file: CorpusFile, choose: Choose, header: bool | None, separator: str | None
) -> Iterator[Row]:
    lines = _split_lines(file, separator)
    line, first = next(lines)
    names = [] if header is False else first
    columns = choose(names)
    indices = [_index_of(file, column, names, len(first)) for column in columns]
    if header is None and all(isinstance(column, int) for column in columns):
        _check_header(file, first, [first[index] for index in indices])
    hint = ", or pass `header=False` if line 1 is no header" if names else ""
    for number, cells in lines if names else chain([(line, first)], lines):
        if cells == [""] and len(first) > 1:
            continue
        if len(cells) != len(first):
            raise CorpusError(
                f"{file}, line {number}: {len(cells)} columns instead of {len(first)}; correct the "
                f"line{hint}"
            )
        yield number, [cells[index] for index in indices]


def _split_lines(file: CorpusFile, separator: str | None) -> Iterator[Row]:
    lines, mark = file.lines(), _MARKS[separator or "tab"]
    if separator is None and kind_of(file.path) == ".csv":
        first = next(lines)
        lines = chain([first], lines)
        mark = max(_MARKS.values(), key=lambda mark: (first.count(mark), mark == ","))
    if mark == "\t":  # not the csv module, which takes quotation marks for its own
        yield from ((k, line.split("\t")) for k, line in enumerate(lines, start=1))
        return
    csv.field_size_limit(2**31 - 1)
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=mark)
    start = 1
    try:
        for cells in reader:
            yield start, cells or [""]
            start = reader.line_num + 1
    except csv.Error as error:
        raise CorpusError(
            f"{file}, line {reader.line_num}: {error}; correct the quotation marks, or convert the "
            "file to tabs"
        ) from error


def _check_header(file: CorpusFile, first: Sequence[str], chosen: Sequence[str]) -> None:
    """Raise UsageError for a first line that looks like data."""
    suspect = [cell for cell in first if _A_NUMBER.fullmatch(cell.strip())]
    suspect += [cell for cell in chosen if _A_SENTENCE.search(cell.strip())]
    if suspect:
        raise UsageError(
            f"{file}, line 1: {shortened(suspect[-1])!r} looks like data, not like a column name; "
            "pass `header=False` if this is the first row, or `header=True` if it is a header"
        )


def hint_of_separator(names: Sequence[str]) -> str:
    """Return advice about a header that tabs do not split, but commas or semicolons would."""
    marks = [name for name, mark in _MARKS.items() if len(names) == 1 and mark in names[0]]
    if not marks:
        return ""
    return f"; it looks {marks[0]}-separated: pass `separator={marks[0]!r}`, or convert it to tabs"


def _chosen_names(file: CorpusFile, choose: Choose, names: Sequence[str]) -> list[str]:
    return [names[_index_of(file, column, names, len(names))] for column in choose(names)]


def _json_rows(file: CorpusFile, choose: Choose) -> Iterator[Row]:
    chosen: list[str] = []
    for number, record in read_json_lines(file):
        chosen = chosen or _chosen_names(file, choose, [*record])
        if missing := [name for name in chosen if name not in record]:
            raise CorpusError(f"{file}, line {number} has no {listed(missing)}; add it")
        yield number, [record[name] for name in chosen]


def read_json_lines(file: CorpusFile) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a file of JSON lines, with their lines; empty lines are ignored.

    Raises CorpusError that names the line of a defect.
    """
    for number, line in enumerate(file.lines(), start=1):
        if line.strip():
            try:
                record = msgspec.json.decode(line, type=dict[str, Any])
            except (ValueError, RecursionError) as error:
                said = in_one_line(error).replace("`", "'")  # which would mark an option
                half = ", in which no character is half (such as \\ud800)"
                advice = "JSON lines have one object a line" + half * ("\\ud" in line.lower())
                raise CorpusError(f"{file}, line {number}: {said}; {advice}") from error
            yield number, record


def _parquet_rows(file: CorpusFile, choose: Choose) -> Iterator[Row]:
    import pyarrow.parquet as pq

    check_not_special(file.path)
    try:
        with pq.ParquetFile(file.path) as table:
            names, number = table.schema_arrow.names, 0
            indices = [_index_of(file, column, names, len(names)) for column in choose(names)]
            for batch in table.iter_batches(columns=list({names[index] for index in indices})):
                columns = []
                for index in indices:  # several columns may have one name
                    alike = batch.schema.get_all_field_indices(names[index])
                    field = alike[names[:index].count(names[index])]
                    columns.append(batch.column(field).to_pylist())
                for cells in zip(*columns, strict=True):
                    number += 1
                    yield number, list(cells)
    except HeadRolesError:
        raise
    except Exception as error:  # no Parquet, bytes that are no text, dates of no calendar, ...
        raise CorpusError(
            f"{file} cannot be read as Parquet ({in_one_line(error)}); write it anew, with columns "
            "of text"
        ) from error


def _dataset_rows(file: CorpusFile, choose: Choose) -> Iterator[Row]:
    """Yield the rows of a data set of Hugging Face: a folder of it, or ``hf:NAME:SPLIT``."""
    data = _load_dataset(str(file.path))
    if hasattr(data, "keys"):
        splits = list(data.keys())
        where = f"{file}:SPLIT" if str(file).startswith(HUB_PREFIX) else f"{file}/SPLIT"
        raise UsageError(f"{file} has several splits; name one, {where}: {listed(splits, 12)}")
    chosen = _chosen_names(file, choose, data.column_names)
    for number, record in enumerate(data.select_columns(list(dict.fromkeys(chosen))), start=1):
        yield number, [record[name] for name in chosen]


def _load_dataset(name: str) -> Any:
    try:
        import datasets  # type: ignore[import-untyped]
    except ImportError as error:
        raise UsageError(
            f"{name} is a data set of Hugging Face; to read it: pip install datasets"
        ) from error
    try:
        if not name.startswith(HUB_PREFIX):
            return datasets.load_from_disk(name)
        hub, _, split = name.removeprefix(HUB_PREFIX).partition(":")
        return datasets.load_dataset(hub, split=split or None)
    except Exception as error:  # of any kind: of the network, the hub, scripts, files
        raise CorpusError(f"the data set {name} cannot be loaded: {in_one_line(error)}") from error


# Choosing columns


def named_columns(value: str | int | Sequence[str | int]) -> tuple[str | int, ...]:
    """Read one or two columns from a text with commas or a sequence: numbers from 0, or names.

    Raises UsageError for none, more, or one given twice.
    """
    names = split_names((value,) if isinstance(value, int) else value)
    columns = tuple(map(named_column, names))
    if not 1 <= len(columns) <= 2:
        raise UsageError(f"{len(columns)} text columns were given; give one, or two for pairs")
    if len(set(columns)) < len(columns):
        raise UsageError(f"the text column {columns[0]!r} was given twice; give two columns")
    return columns


def named_column(value: str | int) -> str | int:
    """Read a column: a number from 0, or a name."""
    number = whole_number(str(value))
    return str(value) if number is None else number


def _index_of(file: CorpusFile, column: str | int, names: Sequence[str], width: int) -> int:
    """Return the index of a column among ``width``; ``names`` are those of the header, if any.

    Raises CorpusError if no column or several have the name, UsageError for a name without a
    header.
    """
    if isinstance(column, int):
        if 0 <= column < width:
            return column
        called = f": {listed(names, 12)}" if names else ""
        raise CorpusError(f"{file} has no column {column}; it has {width}, counted from 0{called}")
    if not names:
        raise UsageError(
            f"column {shortened(column)!r} is a name, but {file} was said to have no header; "
            "give the number of the column, from 0"
        )
    indices = [k for k, name in enumerate(names) if name == column]
    if not indices:
        raise CorpusError(
            f"{file} has no column {shortened(column)!r}; {it_has(names)}{hint_of_separator(names)}"
        )
    if len(indices) > 1:
        raise CorpusError(
            f"{file} has {len(indices)} columns {column!r}, numbers {listed(indices, 12)}; give "
            "the number of the one you mean, counted from 0"
        )
    return indices[0]
