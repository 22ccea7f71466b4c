"""Tables in files: separated text, JSON lines, Parquet, data sets of Hugging Face; columns."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

from headroles.corpus.files import HUB_PREFIX, CorpusFile, is_dataset, kind_of
from headroles.errors import CorpusError, UsageError
from headroles.options import split_names, whole_number
from headroles.wording import in_one_line, listed, shortened

Row = tuple[int, list[str]]
_NAMES = {"tab": "\t", "comma": ",", "semicolon": ";"}
SEPARATORS = tuple(_NAMES)
TABLES = (".tsv", ".csv", ".jsonl", ".ndjson", ".parquet")
"""Extensions of files that hold tables."""


def has_names(file: CorpusFile) -> bool:
    """Tell whether columns always have names, as in all tables but separated text."""
    return _reader_of(file) is not None


def read_rows(file: CorpusFile, separator: str | None = None) -> Iterator[Row]:
    """Yield the rows of a table, the names of its columns first, with the numbers of their lines.

    The ``separator`` of text is one of ``SEPARATORS``; None takes tabs, and in ``.csv`` files the
    separator that occurs most in the first line. Quotation marks are ordinary characters in files
    with tabs, and quote cells in files with commas or semicolons.

    Raises CorpusError for a file whose content does not fit its extension, UsageError without the
    package that reads it.
    """
    if (read := _reader_of(file)) is not None:
        yield from read(file)
        return
    lines = file.lines()
    first = next(lines)
    chosen = _NAMES[separator] if separator else _separator_of(file, first)
    if chosen == "\t":  # not the csv module, which takes quotation marks for its own
        yield 1, first.split("\t")
        yield from ((number, line.split("\t")) for number, line in enumerate(lines, start=2))
        return
    csv.field_size_limit(2**31 - 1)
    reader = csv.reader((f"{line}\n" for line in chain([first], lines)), delimiter=chosen)
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


def hint_of_separator(names: Sequence[str]) -> str:
    """Return advice about a header that tabs do not split, but commas or semicolons would."""
    if len(names) != 1:
        return ""
    found = [name for name, mark in _NAMES.items() if mark in names[0]]
    if not found:
        return ""
    return (
        f"; it looks {found[0]}-separated: pass separator={found[0]!r} "
        f"(--separator {found[0]}), or convert it to tabs"
    )


def _separator_of(file: CorpusFile, first: str) -> str:
    if kind_of(file.path) != ".csv":
        return "\t"
    return max(_NAMES.values(), key=lambda mark: (first.count(mark), mark == ","))


def _reader_of(file: CorpusFile) -> Callable[[CorpusFile], Iterator[Row]] | None:
    if is_dataset(file.path):
        return _dataset_rows
    return {".jsonl": _json_rows, ".ndjson": _json_rows, ".parquet": _parquet_rows}.get(
        kind_of(file.path)
    )


def _json_rows(file: CorpusFile) -> Iterator[Row]:
    names: list[str] = []
    for number, line in enumerate(file.lines(), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise CorpusError(
                f"{file}, line {number}: {in_one_line(error)}; JSON lines have one object a line"
            ) from error
        if not isinstance(record, dict):
            raise CorpusError(
                f"{file}, line {number} is no object; JSON lines have one object a line"
            )
        if not names:
            names = list(record)
            yield 0, names
        if missing := [name for name in names if name not in record]:
            raise CorpusError(f"{file}, line {number} has no {listed(missing)}; add it")
        yield number, [_cell(record[name]) for name in names]


def _parquet_rows(file: CorpusFile) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file.path) as table:
            names = list(table.schema_arrow.names)
            yield 0, names
            number = 0
            for batch in table.iter_batches():
                columns = [column.to_pylist() for column in batch.columns]
                for cells in zip(*columns, strict=True):
                    number += 1
                    yield number, list(map(_cell, cells))
    except (pa.ArrowException, OSError) as error:
        raise CorpusError(
            f"{file} cannot be read as Parquet ({in_one_line(error)}); write it anew"
        ) from error


def _dataset_rows(file: CorpusFile) -> Iterator[Row]:
    """Yield the rows of a data set of Hugging Face: a folder of it, or ``hf:NAME:SPLIT``."""
    data = _load_dataset(str(file.path))
    if hasattr(data, "keys"):
        splits = list(data.keys())
        where = f"{file}:SPLIT" if str(file).startswith(HUB_PREFIX) else f"{file}/SPLIT"
        raise UsageError(f"{file} has several splits; name one, {where}: {listed(splits, 12)}")
    names = list(data.column_names)
    yield 0, names
    for number, record in enumerate(data, start=1):
        yield number, [_cell(record[name]) for name in names]


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


def _cell(value: object) -> str:
    return "" if value is None else str(value)


def named_columns(given: Any) -> tuple[str | int, ...]:
    """Read columns from a text with commas or a sequence: numbers from 0, or names."""
    return tuple(
        name if (number := whole_number(name)) is None else number for name in split_names(given)
    )


def place_of(file: object, column: str | int, names: Sequence[str] | None, width: int) -> int:
    """Return the place of a column among ``width``; ``names`` are those of the header, if any.

    Raises CorpusError if no column or several have the name, UsageError for a name without a
    header.
    """
    number = whole_number(column) if isinstance(column, str) else column
    if number is None:
        if names is None:
            raise UsageError(
                f"column {shortened(column)!r} is a name, but {file} was said to have no header; "
                "give the number of the column, from 0"
            )
        if column not in names:
            raise CorpusError(
                f"{file} has no column {shortened(column)!r}; it has: {listed(names, 12)}"
                f"{hint_of_separator(names)}"
            )
        if names.count(column) > 1:
            places = [str(k) for k, name in enumerate(names) if name == column]
            raise CorpusError(
                f"{file} has {len(places)} columns {column!r}, numbers {', '.join(places)}; give "
                "the number of the one you mean, counted from 0"
            )
        return names.index(column)
    if not 0 <= number < width:
        called = f": {listed(names, 12)}" if names else ""
        raise CorpusError(f"{file} has no column {column}; it has {width}, counted from 0{called}")
    return number


def check_width(file: object, line: int, cells: Sequence[str], width: int, more: str = "") -> None:
    """Raise CorpusError for a line with more or fewer cells than the first one."""
    if len(cells) != width:
        raise CorpusError(
            f"{file}, line {line}: {len(cells)} columns instead of {width}; correct the line{more}"
        )


def check_text_columns(columns: Sequence[str | int]) -> None:
    """Raise UsageError unless one or two columns of text are named."""
    if not 1 <= len(columns) <= 2:
        raise UsageError(f"{len(columns)} text columns were given; give one, or two for pairs")
