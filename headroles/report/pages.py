"""From a folder of results to its page, or to a figure for a paper."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from headroles import storage
from headroles.drawing.page import Page, Picture, plain_page
from headroles.drawing.style import figure_of, of_width, set_title
from headroles.errors import HeadRolesError, StorageError, UsageError
from headroles.options import Flag, Options, takes
from headroles.registry import all_kinds, result_type
from headroles.results.result import AnyResult, kind_in, load
from headroles.results.showing import Showing, describe, figure_function
from headroles.scoring.scores import HeadScores
from headroles.studies.inspection.origin import ReportOptions
from headroles.wording import not_among

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ENDINGS = (".html", ".htm")


@dataclass(frozen=True, kw_only=True)
class FigureOptions(Options):
    """Options of a figure."""

    title: ClassVar[str] = "Output"

    kind: str | None = None
    """roles, heads, role (of roles); means (of scores); heads, changes, trajectory (of
    comparisons); role, layers (of score sets); worth, curves, tasks, tokens, attention, errors,
    links (of others); left out: the usual one."""
    role: str | None = None
    """Role, by id, words or relation; if left out, the one with the clearest head."""
    checkpoint: str | None = None
    """Checkpoint of a comparison."""
    estimator: str | None = None
    """Estimator of importance."""
    measure: str | None = None
    """Measure of curves and tasks."""
    heading: Annotated[str | None, Flag("--title")] = None
    """Title above the figure."""
    width: Annotated[float | None, Meta(gt=0)] = None
    """Width in inches; 3.3 is a usual column of a paper."""


@takes(ReportOptions)
def make_report(folder: str | Path, options: ReportOptions) -> Page:
    """Make the page about the results in ``folder``: a role table, a comparison, or another table.

    Args:
        folder: the folder.
        options: keyword arguments, described below.

    Raises StorageError for a folder without results, or with unreadable ones, and UsageError for a
    sentence of the user's own that cannot be read, or that the page has no place for.
    """
    result = load(folder)
    make: Any = resolve_name(result.page) if result.page else None
    has_sentences = make is not None and "options" in inspect.signature(make).parameters
    if options.is_given and not has_sentences:
        raise UsageError(f"the page of a {result.kind} shows no sentences; leave yours out")
    if make is None:
        return plain_page(result, result.question, tuple(_pictures(result)))
    arguments = (Path(folder), options) if has_sentences else (tuple(_pictures(result)),)
    page: Page = make(result, *arguments)
    return page


def _pictures(result: AnyResult) -> Iterator[Picture]:
    """Yield every kind of figure that can be drawn of a result."""
    for kind in result.figure_kinds:
        try:
            drawn = draw_result(result, FigureOptions(kind=kind))
        except HeadRolesError:  # such as a table without rows to draw
            continue
        yield Picture(drawn, describe(figure_function(type(result), kind)))


@takes(ReportOptions)
def write_report(
    folder: str | Path, out: str | Path | None = None, *, options: ReportOptions
) -> Path:
    """Write the page about the results in ``folder`` as one HTML file, and return its path.

    Without ``out`` the file is ``report.html`` in the folder. Raises as `make_report`, StorageError
    for a place that cannot be written and a link named ``report.html``, and UsageError for a name
    that is no name of an HTML file.
    """
    file = Path(folder) / storage.REPORT_FILE if out is None else Path(out)
    if file.suffix.lower() not in _ENDINGS and not storage.is_special(file):
        raise UsageError(f"{file} is no name of an HTML file; end it in .html")
    if out is None and (file.is_symlink() or (file.exists() and not file.is_file())):
        raise StorageError(
            f"{file} is no plain file, and links are not followed; remove it, or name another "
            "file with `out`"
        )
    text = make_report(folder, options=options).to_html()
    storage.write_bytes(file, text.encode("utf-8", errors="backslashreplace"))
    return file


def draw_figure(folder: str | Path, options: FigureOptions) -> Figure:
    """Draw a figure of the results in ``folder``.

    Raises UsageError for a kind that the results do not have, and for an option of another
    kind; StorageError for results that cannot be read.
    """
    folder = Path(folder)
    held = storage.kinds_in(folder)
    main = HeadScores.kind if held == (HeadScores.kind,) else kind_in(folder)
    types: list[type[Showing]] = [
        result_type(name) for name in (main, *all_kinds()) if name in held and name != "scores"
    ]
    if HeadScores.kind in held:
        types.append(HeadScores)
    kind = options.kind or next(iter(types[0].figures), None)
    if kind is None:
        raise UsageError(f"results of the kind {main} have no figure")
    for form in types:
        if kind in form.figures:
            return draw_result(form.load(folder), options)
    kinds = list(dict.fromkeys(name for form in types for name in form.figures))
    raise UsageError(not_among(f"figure of the {main} called", kind, kinds))


def draw_result(result: Showing, options: FigureOptions) -> Figure:
    """Draw a figure of a result. Raises UsageError for options of another kind."""
    kind = options.kind or result.figure_kinds[0]
    taken = inspect.signature(figure_function(type(result), kind)).parameters
    names = ("role", "checkpoint", "estimator", "measure")
    choices = {name: value for name in names if (value := getattr(options, name)) is not None}
    for name in choices:
        if name not in taken:
            raise UsageError(
                f"this figure has no choice of {name}; choose another `kind`, or leave `{name}` out"
            )
    with of_width(options.width):
        figure = figure_of(result.plot(options.kind, **choices))
        titled = [ax for ax in figure.axes if ax.get_title()]
        if options.heading is not None and len(titled) != 1:
            figure.suptitle(options.heading, wrap=True)
        elif options.heading is not None:  # which should hide no direction of a role
            role = [titled[0].get_title()] if "role" in taken else []
            set_title(titled[0], "\n".join([options.heading, *role]))
    return figure
