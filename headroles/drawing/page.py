"""A page: sections of texts, pictures, tables and sentences, as one HTML file."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import TYPE_CHECKING

from headroles.drawing.head_map import HeadMap, Quoted
from headroles.drawing.style import to_svg
from headroles.wording import printable_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headroles.results.shown import Grid

_LONG = 28  # characters


@dataclass(frozen=True)
class Picture:
    """Figures side by side, and their caption."""

    figures: tuple[Figure, ...]
    caption: str


@dataclass(frozen=True)
class Table:
    """Rows of text under names of columns; the first cell of a row is its name."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @cached_property
    def texts(self) -> frozenset[int]:
        """Columns that hold sentences, and no numbers or names: they may break into lines."""
        return frozenset(
            place
            for place in range(1, len(self.columns))
            if any(len(row[place]) > _LONG for row in self.rows)
        )

    @classmethod
    def of(cls, grid: Grid, caption: str) -> Table:
        """Return a grid of a result as a table of the page."""
        return cls(caption, grid.columns, grid.rows)


@dataclass(frozen=True)
class Group:
    """Text about one head, with sentences."""

    title: str
    text: str
    sentences: tuple[Quoted, ...] = ()


@dataclass(frozen=True)
class Section:
    """A part of the page under its title; empty fields are not shown.

    With scripts the ``head_map`` stands before the pictures, which are then folded. ``copied`` are
    texts to copy into a paper.
    """

    title: str
    texts: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    head_map: HeadMap | None = None
    pictures: tuple[Picture, ...] = ()
    tables: tuple[Table, ...] = ()
    groups: tuple[Group, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    copied: tuple[str, ...] = ()
    command: str = ""


@dataclass(frozen=True)
class Page:
    """The question as ``title``, the ``answer`` in sentences, and sections of evidence."""

    title: str
    answer: tuple[str, ...]
    sections: tuple[Section, ...]

    def to_html(self) -> str:
        """Return the page as one HTML document that loads nothing; everything in it is escaped."""
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup

        held = files(__package__)
        template, style = (held / "page.html").read_text(), (held / "page.css").read_text()
        script = "".join((held / name).read_text("utf-8") for name in _SCRIPTS)
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        environment = Environment(
            autoescape=True,
            finalize=lambda value: printable_lines(value) if type(value) is str else value,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        # Only the script, the style and the drawings of this package are markup.
        return environment.from_string(template).render(
            page=self._drawn(),
            style=Markup(style),  # noqa: S704
            script=Markup(script),  # noqa: S704
            script_digest=digest,
        )

    def _drawn(self) -> dict[str, object]:
        """Return the page with its figures drawn."""
        from markupsafe import Markup

        sections = []
        for k, section in enumerate(self.sections):
            pictures = [
                {
                    "caption": one.caption,
                    "drawings": [
                        Markup(to_svg(figure, f"f{k}-{n}-{m}", _description(figure, one)))  # noqa: S704
                        for m, figure in enumerate(one.figures)
                    ],
                }
                for n, one in enumerate(section.pictures)
            ]
            data = section.head_map and Markup(section.head_map.to_json())  # noqa: S704
            sections.append({**vars(section), "pictures": pictures, "data": data})
        return {"title": self.title, "answer": self.answer, "sections": sections}


def _description(figure: Figure, picture: Picture) -> str:
    """Describe a figure for screen readers: by its title if the picture has several figures."""
    titles = [ax.get_title() for ax in figure.axes if ax.get_title()]
    return picture.caption if len(picture.figures) == 1 or not titles else titles[0]


_SCRIPTS = ("tables.js", "head_map.js")
