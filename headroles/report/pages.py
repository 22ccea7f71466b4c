"""From a folder of results to the page that tells what they say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from headroles import storage
from headroles.report.comparison_page import comparison_page
from headroles.report.role_page import role_page
from headroles.report.run_facts import made_how
from headroles.results import Grid, Result, Warned
from headroles.studies.comparison import RoleShifts
from headroles.studies.role_table import RoleTable

if TYPE_CHECKING:
    from headroles.report.page import Page

REPORT_FILE = "report.html"
"""What the page is called in the folder of its results, if nobody says otherwise."""


def make_report(folder: str | Path) -> Page:
    """The page about the results in ``folder``: a role table, a comparison, or another table.

    Raises StorageError if there is none, or it cannot be read.
    """
    folder = Path(folder)
    storage.finish_swap(folder)
    held = storage.kinds_in(folder)
    if RoleTable.kind in held:
        return role_page(folder)
    if RoleShifts.kind in held:
        return comparison_page(RoleShifts.load(folder))
    from headroles.studies.stored import load_table  # which loads torch for some kinds

    return _plain_page(load_table(folder))


def write_report(folder: str | Path, out: str | Path | None = None) -> Path:
    """Write the page about the results in ``folder`` as one HTML file; the path of it.

    Without ``out`` it is ``report.html`` beside the folder's results. Raises StorageError for
    results that cannot be read, and a place that cannot be written.
    """
    file = Path(folder) / REPORT_FILE if out is None else Path(out)
    text = make_report(folder).to_html()
    storage.write_bytes(file, text.encode("utf-8", errors="backslashreplace"))
    return file


def _plain_page(table: Result) -> Page:
    """The page of a kind of result that has no page of its own: what it shows."""
    from headroles.report.page import Page, Section
    from headroles.report.page import Table as PageTable

    shown = list(table.shown())
    sentences = tuple(one.strip() for one in shown if isinstance(one, str))
    grids = [one for one in shown if isinstance(one, Grid)]
    cautions = tuple(one.text for one in shown if isinstance(one, Warned))
    tables = tuple(PageTable.of(grid, table.kind) for grid in grids)
    sections = [Section("Tables", tables=tables)]
    if cautions:
        sections.append(Section("What to be careful about", cautions=cautions))
    return Page(table.kind, sentences, (*sections, made_how(table.provenance)))
