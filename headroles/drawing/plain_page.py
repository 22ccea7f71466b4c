"""Page of any result: its answer, its tables, and how it was made."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from typing import Any

from headroles.drawing.citing import how_to_report
from headroles.drawing.head_map import HeadMap
from headroles.drawing.page import Page, Picture, Section, Table
from headroles.record import Record
from headroles.results.result import Result
from headroles.results.shown import Grid, Shown
from headroles.storage import plain
from headroles.wording import printable


def plain_page(
    result: Result,
    title: str = "",
    pictures: tuple[Picture, ...] = (),
    head_map: HeadMap | None = None,
) -> Page:
    """Make a page of a summary and its details, with a map and pictures between if given."""
    answer, tables = told(result.shown())
    texts, details = told(result.details())
    sections = []
    if pictures:
        sections.append(Section("All heads", head_map=head_map, pictures=pictures))
    sections.append(Section("Tables", texts=texts, tables=(*tables, *details)))
    if cautions := result.warnings:
        sections.append(Section("What to be careful about", cautions=cautions))
    return Page(
        title or result.kind,
        answer,
        (*sections, how_to_report(result), made_how(result.record)),
    )


def told(shown: Iterable[Shown]) -> tuple[tuple[str, ...], tuple[Table, ...]]:
    """Part sentences from tables; a title that stands before a table becomes its caption."""
    sentences: list[str] = []
    tables: list[Table] = []
    before: Shown = ""
    for one in shown:
        if isinstance(one, str):
            sentences.append(one.strip())
        elif isinstance(one, Grid):
            line = before.strip() if isinstance(before, str) else ""
            leads = line and "\n" not in line and not line.endswith(".")
            tables.append(Table.of(one, sentences.pop() if leads else one.columns[0]))
        before = one
    return tuple(sentences), tuple(tables)


def made_how(record: Record) -> Section:
    """The last section of a page."""
    command = record.command
    return Section(
        "How it was made",
        facts=tuple(_facts(record)),
        command=printable(shlex.join(["headroles", *command[1:]])) if command else "",
    )


def _facts(record: Record) -> Iterator[tuple[str, str]]:
    said = {
        **plain(record.models),
        "corpus": plain(getattr(record, "corpus", None)),
        **{
            name: plain(getattr(record, name)) for name in _TOLD if name in record.__struct_fields__
        },
    }
    for name, one in said.items():
        if one and (told := _written(one)):
            yield name, told


def _written(value: Any) -> str:
    """A record as text: names and values, without what is told elsewhere or not given."""
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if k not in _ELSEWHERE and v not in _EMPTY}
        return "; ".join(f"{name}: {_written(one)}" for name, one in kept.items())
    if isinstance(value, list):
        return ", ".join(map(_written, value))
    return printable(value)


_TOLD = ("examples", "skipped", "options", "tests", "plan", "versions", "created")
_EMPTY: tuple[Any, ...] = (None, "", [], {})
_ELSEWHERE = ("warnings", "left_out", "why_left_out")
