"""Page of any result: its answer, its tables, and its origin."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from headroles.drawing.citing import how_to_report
from headroles.drawing.head_map import HeadMap
from headroles.drawing.page import Page, Picture, Section, Table
from headroles.record import Record
from headroles.results.result import Result
from headroles.results.shown import SEE_FULL, Grid, Shown
from headroles.storage import plain
from headroles.wording import printable


def plain_page(
    result: Result,
    title: str = "",
    pictures: tuple[Picture, ...] = (),
    head_map: HeadMap | None = None,
    own_tables: tuple[Table, ...] = (),
    more: Sequence[Section] = (),
) -> Page:
    """Make a page of a summary and its details, with a map and pictures between if given.

    ``own_tables`` stand before those of the details; sections of ``more`` follow the details.
    """
    answer, tables = split_shown(result.summarize())
    texts, details = split_shown(result.details())
    sections = []
    if tables:
        sections.append(Section("Summary", tables=tables))
    if pictures:
        sections.append(Section("All heads", head_map=head_map, pictures=pictures))
    if texts or details:
        sections.append(Section("Details", texts=texts, tables=(*own_tables, *details)))
    sections += more
    if cautions := result.warnings:
        sections.append(Section("What to be careful about", cautions=cautions))
    return Page(
        title or result.kind,
        answer,
        (*sections, how_to_report(result), _how_made(result.record)),
    )


def split_shown(shown: Iterable[Shown]) -> tuple[tuple[str, ...], tuple[Table, ...]]:
    """Split sentences from tables; a title that stands before a table becomes its caption.

    Sentences that point to the full text are omitted: the page has the full text.
    """
    sentences: list[str] = []
    tables: list[Table] = []
    before: Shown = ""
    for one in shown:
        if isinstance(one, str) and not one.endswith(SEE_FULL):
            sentences.append(one.strip())
        elif isinstance(one, Grid):
            line = before.strip() if isinstance(before, str) else ""
            leads = line and "\n" not in line and not line.endswith(".")
            tables.append(Table.of(one, sentences.pop() if leads else one.columns[0]))
        before = one
    return tuple(sentences), tuple(tables)


def _how_made(record: Record) -> Section:
    command = record.command
    return Section(
        "How it was made",
        facts=tuple(_facts(record)),
        command=printable(shlex.join(["headroles", *command[1:]])) if command else "",
    )


def _facts(record: Record) -> Iterator[tuple[str, str]]:
    sources = list(record.sources.values())
    first = sources[0] if len(sources) == 1 else record
    pieces = {
        **plain(record.models),
        **{name: plain(getattr(first, name, None)) for name in _OF_SOURCE},
        **{name: plain(getattr(record, name, None)) for name in _PIECES},
    }
    for name, piece in pieces.items():
        if piece and (text := _written(piece)):
            yield name, text


def _written(value: Any) -> str:
    """Write a record as text, without empty values and without fields of other sections."""
    if isinstance(value, dict):
        given = {k: v for k, v in value.items() if k not in _ELSEWHERE and v not in _EMPTY}
        return "; ".join(f"{name}: {_written(one)}" for name, one in given.items())
    if isinstance(value, list):
        return ", ".join(map(_written, value))
    return printable(value)


_OF_SOURCE = ("corpus", "examples", "skipped")
_PIECES = ("options", "tests", "plan", "versions", "created")
_EMPTY: tuple[Any, ...] = (None, "", [], {})
_ELSEWHERE = ("warnings", "left_out")
