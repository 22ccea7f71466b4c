"""A page: sections of texts, pictures, tables and sentences, as one HTML file."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import TYPE_CHECKING

from headroles.report.style import to_svg
from headroles.wording import printable_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headroles.results import Grid


_LONG = 28  # characters


@dataclass(frozen=True)
class Picture:
    """Figures side by side, as many as there is room for, and what they show in words."""

    figures: tuple[Figure, ...]
    caption: str


@dataclass(frozen=True)
class Table:
    """Rows of text under names; the first cell of a row says what the row is of."""

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
        """What a result shows to people, as a table of the page."""
        return cls(caption, grid.columns, grid.rows)


@dataclass(frozen=True)
class Group:
    """What is said of one head, with sentences.

    ``sentences`` are pairs: a score as text, and parts of the sentence, each marked or not.
    """

    title: str
    text: str
    sentences: tuple[tuple[str, tuple[tuple[bool, str], ...]], ...] = ()


@dataclass(frozen=True)
class Section:
    """A part of the page under its title; what it does not have is left out."""

    title: str
    texts: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    tables: tuple[Table, ...] = ()
    groups: tuple[Group, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    command: str = ""


@dataclass(frozen=True)
class Page:
    """The question as ``title``, the ``answer`` in sentences, and what they rest on."""

    title: str
    answer: tuple[str, ...]
    sections: tuple[Section, ...]

    def to_html(self) -> str:
        """The page as one HTML document that loads nothing; everything in it is escaped."""
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup

        made = {name: (files(__package__) / f"page.{name}").read_text() for name in _PARTS}
        digest = base64.b64encode(hashlib.sha256(made["js"].encode()).digest()).decode()
        environment = Environment(
            autoescape=True,
            finalize=lambda value: printable_lines(value) if type(value) is str else value,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        # Only what this package made itself is markup: its script, its style, its drawings.
        return environment.from_string(made["html"]).render(
            page=self._drawn(),
            style=Markup(made["css"]),  # noqa: S704
            script=Markup(made["js"]),  # noqa: S704
            script_digest=digest,
        )

    def _drawn(self) -> dict[str, object]:
        """The page with its figures drawn."""
        from markupsafe import Markup

        sections = []
        for k, section in enumerate(self.sections):
            pictures = [
                {
                    "caption": one.caption,
                    "drawings": [
                        Markup(to_svg(figure, f"f{k}-{n}-{m}", _told(figure, one)))  # noqa: S704
                        for m, figure in enumerate(one.figures)
                    ],
                }
                for n, one in enumerate(section.pictures)
            ]
            sections.append({**vars(section), "pictures": pictures})
        return {"title": self.title, "answer": self.answer, "sections": sections}


def _told(figure: Figure, picture: Picture) -> str:
    """What is read out in the place of a figure: its title if it is one of several."""
    titles = [ax.get_title() for ax in figure.axes if ax.get_title()]
    return picture.caption if len(picture.figures) == 1 or not titles else titles[0]


_PARTS = ("html", "css", "js")
