"""The page of a result that is told by what it shows: sentences, tables and warnings."""

from __future__ import annotations

from collections.abc import Iterable

from headroles.report.citing import how_to_report
from headroles.report.head_map import HeadMap
from headroles.report.page import Page, Picture, Section, Table
from headroles.report.run_facts import made_how
from headroles.results import Grid, Result, Shown


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
