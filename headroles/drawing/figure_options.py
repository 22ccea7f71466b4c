"""Options of figures of results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from headroles.options import Option, Options
from headroles.results.study import studies

KINDS = tuple(dict.fromkeys(kind for study in studies() for kind in study.figures))
"""Kinds of figures of all studies, in their order."""


@dataclass(frozen=True, kw_only=True)
class FigureOptions(Options):
    """Options of a figure."""

    title: ClassVar[str] = "Output"

    kind: Annotated[
        str | None,
        Option(
            "Kind of figure; if left out, the usual figure of the results.",
            words="the kind of figure",
            choices=KINDS,
        ),
    ] = None
    role: Annotated[
        str | None,
        Option("Role, by id, words or relation; if left out, the one with the clearest head."),
    ] = None
    head: Annotated[str | None, Option("Head of the kind head, as LAYER-HEAD.")] = None
    checkpoint: Annotated[str | None, Option("Checkpoint of a comparison.")] = None
    estimator: Annotated[str | None, Option("Estimator of importance.")] = None
    measure: Annotated[str | None, Option("Measure of curves and tasks.")] = None
    heading: Annotated[str | None, Option("Title above the figure.", flag="--title")] = None
    width: Annotated[
        float | None, Option("Width in inches; 3.3 is a usual column of a paper.", above=0)
    ] = None
