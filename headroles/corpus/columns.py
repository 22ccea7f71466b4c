"""Columns of tables in files, by number or by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headroles.corpus.rows import hint_of_separator
from headroles.errors import CorpusError, UsageError
from headroles.options import split_names, whole_number
from headroles.wording import listed, shortened


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


def check_width(file: object, line: int, cells: Sequence[str], width: int, cure: str = "") -> None:
    """Raise CorpusError for a line with more or fewer cells than the first one."""
    if len(cells) != width:
        raise CorpusError(
            f"{file}, line {line}: {len(cells)} columns instead of {width}; correct the line{cure}"
        )


def check_text_columns(columns: Sequence[str | int]) -> None:
    """Raise UsageError unless one or two columns of text are named."""
    if not 1 <= len(columns) <= 2:
        raise UsageError(f"{len(columns)} text columns were given; give one, or two for pairs")
