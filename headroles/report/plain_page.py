"""The page of a result that is told by what it shows: sentences, tables and warnings."""

from __future__ import annotations

from headroles.report.page import Page, Picture, Section, Table
from headroles.report.run_facts import made_how
from headroles.results import Grid, Result, Shown, Warned


def plain_page(
    result: Result,
    title: str = "",
    answer: tuple[str, ...] = (),
    pictures: tuple[Picture, ...] = (),
) -> Page:
    """A page of what ``result`` shows, below a question, an answer and pictures if given."""
    shown = list(result.shown())
    sentences, tables = _told(shown)
    cautions = tuple(one.text for one in shown if isinstance(one, Warned))
    sections = [Section("Overview", pictures=pictures)] if pictures else []
    sections.append(Section("Tables", texts=sentences if answer else (), tables=tables))
    if cautions:
        sections.append(Section("What to be careful about", cautions=cautions))
    return Page(title or result.kind, answer or sentences, (*sections, made_how(result.provenance)))


def _told(shown: list[Shown]) -> tuple[tuple[str, ...], tuple[Table, ...]]:
    """Sentences, and tables under the line that stands before them if there is one.

    The first sentence is about all that follows, and no caption.
    """
    sentences: list[str] = []
    tables: list[Table] = []
    for before, one in zip(["", *shown], shown, strict=False):
        if isinstance(one, str):
            sentences.append(one.strip())
        elif isinstance(one, Grid):
            leads = isinstance(before, str) and "\n" not in before.strip() and len(sentences) > 1
            tables.append(Table.of(one, sentences.pop() if leads else one.columns[0]))
    return tuple(sentences), tuple(tables)
