"""The page of a result that is told by what it shows: sentences, tables and warnings."""

from __future__ import annotations

from headroles.report.page import Page, Picture, Section, Table
from headroles.report.run_facts import made_how
from headroles.results import Grid, Result, Warned


def plain_page(
    result: Result,
    title: str = "",
    answer: tuple[str, ...] = (),
    pictures: tuple[Picture, ...] = (),
) -> Page:
    """A page of what ``result`` shows, below a question, an answer and pictures if given."""
    shown = list(result.shown())
    sentences = tuple(one.strip() for one in shown if isinstance(one, str))
    tables = tuple(Table.of(one, result.kind) for one in shown if isinstance(one, Grid))
    cautions = tuple(one.text for one in shown if isinstance(one, Warned))
    sections = [Section("All heads", pictures=pictures)] if pictures else []
    sections.append(Section("Tables", texts=sentences if answer else (), tables=tables))
    if cautions:
        sections.append(Section("What to be careful about", cautions=cautions))
    return Page(title or result.kind, answer or sentences, (*sections, made_how(result.provenance)))
