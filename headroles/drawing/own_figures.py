"""Figures and axes that a notebook shows if a cell ends with them."""

from __future__ import annotations

import io
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headroles.drawing.style import figure_width, font_scale

_DOTS_PER_INCH = 90


class ShownFigure(Figure):
    """Figure unknown to pyplot, which shows itself as a picture."""

    def _repr_png_(self) -> bytes:
        page = io.BytesIO()
        self.savefig(page, format="png", dpi=_DOTS_PER_INCH)
        return page.getvalue()


class ShownAxes(Axes):
    """Axes alone in a `ShownFigure`, which they show."""

    def _repr_png_(self) -> bytes:
        figure = self.get_figure(root=True)
        assert isinstance(figure, ShownFigure)
        return figure._repr_png_()


def new_figure(width: float, height: float, layout: Any = None) -> ShownFigure:
    """Make a figure of so many inches."""
    return ShownFigure(figsize=(width, height), layout=layout)


def axes_of_their_own(width: float, height: float) -> ShownAxes:
    """Make axes alone in a new figure of so many inches, or as wide as asked for."""
    share = figure_width(width) / width
    high = min(1.0, max(share, font_scale()))
    figure = new_figure(share * width, high * height, "constrained")
    return figure.add_subplot(axes_class=ShownAxes)  # type: ignore[return-value]
