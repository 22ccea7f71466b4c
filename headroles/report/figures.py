"""Figures for papers by name: from a folder of results to a figure in a file."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from headroles import storage
from headroles.errors import UsageError
from headroles.report.figure_options import KINDS, FigureOptions
from headroles.report.saving import check_figure_file, save_figure
from headroles.report.style import figure_of
from headroles.results import study_in
from headroles.results.study import study_of
from headroles.wording import not_among

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_figure(folder: str | Path, options: FigureOptions) -> Figure:
    """Draw a figure of the results in ``folder``.

    Raises UsageError for a kind that the results do not have, and for an option that the kind does
    not take; StorageError for results that cannot be read.
    """
    folder = Path(folder)
    held, place = _found(folder, options.kind)
    study = study_of(held)
    assert study is not None  # kinds of figures name kinds of results
    result = study.load("result").load(folder)
    draw = resolve_name(place if place.startswith("headroles") else f"{__package__}.{place}")
    drawn = draw(result, **dict(_arguments(draw, options, result)))
    figure = drawn if hasattr(drawn, "savefig") else figure_of(drawn)
    if options.heading is not None:
        _set_title(figure, options.heading)
    if options.width is not None:
        width, height = figure.get_size_inches()
        figure.set_size_inches(options.width, height * options.width / width)
    return figure


def write_figure(folder: str | Path, out: str | Path, options: FigureOptions) -> Path:
    """Draw a figure of the results in ``folder`` into a PDF, SVG or PNG file; the path of it.

    Raises what `draw_figure` and `save_figure` raise.
    """
    check_figure_file(out)
    return save_figure(draw_figure(folder, options), out)


def _found(folder: Path, kind: str | None) -> tuple[str, str]:
    """Return the kind of result to draw and the place of the function that draws it."""
    storage.finish_swap(folder)
    study = study_in(folder)
    if kind is None:
        if not study.figure:
            raise UsageError(f"results of the kind {study.kind} have no figure")
        return study.kind, study.figure
    held = storage.kinds_in(folder)
    for one, place in KINDS[kind].items():
        if one in held:
            return one, place
    known = [name for name, places in KINDS.items() if set(places) & set(held)]
    raise UsageError(not_among(f"figure of the {study.kind} called", kind, known))


def _arguments(draw: Any, options: FigureOptions, result: Any) -> Iterator[tuple[str, Any]]:
    """Yield what the function takes. Raises UsageError for an option that it does not take."""
    taken = inspect.signature(draw).parameters
    for name in ("role", "checkpoint", "estimator", "measure"):
        given = getattr(options, name)
        if given is not None and name not in taken:
            raise UsageError(f"this figure has no choice of {name}; leave {name} (--{name}) out")
        if given is not None:
            yield name, given
        elif name == "role" and name in taken and taken[name].default is inspect.Parameter.empty:
            yield name, _clearest_role(result)
    if "head" in taken:
        yield from zip(("layer", "head"), _head(options.head), strict=True)
    elif options.head is not None:
        raise UsageError("this figure has no choice of a head; leave head (--head) out")


def _head(given: str | None) -> tuple[int, int]:
    layer, _, head = (given or "").partition("-")
    if not (layer.isdigit() and head.isdigit()):
        raise UsageError(f"the head is {given!r}; name layer and head, such as 4-0")
    return int(layer), int(head)


def _clearest_role(result: Any) -> str:
    """The role whose head goes farthest beyond distance, or that changed most; else the first."""
    from headroles.report.comparison_map import changed_most
    from headroles.studies.role_answers import find_answers

    if result.kind == "comparison":
        return changed_most(result.frame)[0]
    arcs = find_answers(result).arcs if result.kind == "role table" else ()
    return arcs[0].role if arcs else str(result.frame["role"].iloc[0])


def _set_title(figure: Figure, text: str) -> None:
    titled = [ax for ax in figure.axes if ax.get_title()]
    if len(titled) == 1:
        titled[0].set_title(text)
    else:
        figure.suptitle(text)
