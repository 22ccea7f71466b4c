"""Options of figures of results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from headroles.options import Flag, Options


@dataclass(frozen=True, kw_only=True)
class FigureOptions(Options):
    """Options of a figure."""

    title: ClassVar[str] = "Output"

    kind: str | None = None
    """Kind of figure; if left out, the usual figure of the results."""
    role: str | None = None
    """Role, by id, words or relation; if left out, the one with the clearest head."""
    head: str | None = None
    """Head of the kind head, as LAYER-HEAD."""
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
