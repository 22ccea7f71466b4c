"""From a folder of results to its page."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from pathlib import Path
from pkgutil import resolve_name

from headroles import storage
from headroles.drawing.page import Page, Picture
from headroles.drawing.plain_page import plain_page
from headroles.drawing.style import figure_of
from headroles.errors import HeadRolesError, StorageError, UsageError
from headroles.report.figures import figure_arguments
from headroles.results.result import Result, describe, figure_function
from headroles.results.stored import load
from headroles.studies.options import FigureOptions

_ENDINGS = (".html", ".htm")


def make_report(folder: str | Path, roles: Sequence[str] = (), model: str | None = None) -> Page:
    """Make the page about the results in ``folder``: a role table, a comparison, or another table.

    ``roles`` are functions of users, as ``MODULE:FUNCTION``, that may be imported to show their
    sentences; no other code of results is run. ``model`` is the new place of the scored model,
    whose weights stand beside sentences.

    Raises StorageError for a folder without results, or with unreadable ones.
    """
    result = load(folder)
    if not result.page:
        return plain_page(result, result.question, tuple(_pictures(result)))
    make = resolve_name(result.page)
    known = {"folder": Path(folder), "roles": roles, "model": model}
    taken = {name: known[name] for name in inspect.signature(make).parameters if name in known}
    page: Page = make(result, **taken)
    return page


def _pictures(result: Result) -> Iterator[Picture]:
    """Yield every kind of figure that can be drawn of a result."""
    for kind in result.figures:
        draw = figure_function(type(result), kind)
        arguments = dict(figure_arguments(FigureOptions(kind=kind), result))
        try:
            drawn = draw(result, **arguments)
        except HeadRolesError:  # such as a table without rows to draw
            continue
        yield Picture((figure_of(drawn),), describe(draw))


def write_report(
    folder: str | Path,
    out: str | Path | None = None,
    roles: Sequence[str] = (),
    model: str | None = None,
) -> Path:
    """Write the page about the results in ``folder`` as one HTML file, and return its path.

    ``roles`` and ``model`` are as in `make_report`. Without ``out`` the file is ``report.html`` in
    the folder. Raises StorageError for unreadable results, a place that cannot be written, and a
    link named ``report.html``, and UsageError for a name that is no name of an HTML file.
    """
    file = Path(folder) / storage.REPORT_FILE if out is None else Path(out)
    if file.suffix.lower() not in _ENDINGS and not storage.is_special(file):
        raise UsageError(f"{file} is no name of an HTML file; end it in .html")
    if out is None and (file.is_symlink() or (file.exists() and not file.is_file())):
        raise StorageError(
            f"{file} is no plain file, and links are not followed; remove it, or name another "
            "file with `out`"
        )
    text = make_report(folder, roles, model).to_html()
    storage.write_bytes(file, text.encode("utf-8", errors="backslashreplace"))
    return file
