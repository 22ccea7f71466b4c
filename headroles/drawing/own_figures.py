"""Figures of one axes or several, as wide as asked for, that notebooks show."""

from __future__ import annotations

import io

from matplotlib.axes import Axes
from matplotlib.figure import Figure

_DOTS_PER_INCH, _COLOURS = 80, 48


class ShownFigure(Figure):
    """Figure unknown to pyplot, which shows itself as a picture."""

    def _repr_png_(self) -> bytes:
        """Return a small PNG, of few colours."""
        from PIL import Image

        drawn, page = io.BytesIO(), io.BytesIO()
        self.savefig(drawn, format="png", dpi=_DOTS_PER_INCH)
        Image.open(drawn).convert("RGB").quantize(_COLOURS).save(page, "PNG", optimize=True)
        return page.getvalue()


class ShownAxes(Axes):
    """Axes alone in a `ShownFigure`, which they show."""

    def _repr_png_(self) -> bytes:
        figure = self.get_figure(root=True)
        assert isinstance(figure, ShownFigure)
        return figure._repr_png_()


def new_figure(width: float, height: float) -> ShownFigure:
    """Make a figure of so many inches."""
    return ShownFigure(figsize=(width, height), layout="constrained")
