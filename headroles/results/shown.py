"""Summaries of results: sentences, small tables and warnings; as text, on a console, as HTML."""

from __future__ import annotations

import html
import io
import math
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from headroles.wording import addressed, first_sentence, printable, printable_lines

WIDE = 200
"""Characters of a line of a grid on a page of unknown width."""
_LINE = 100
"""Characters of a line of text."""
_SUMMARY = 17
"""Lines of a summary: with next steps and the folder it fills a screen of 20."""
_MOST_WARNINGS, _FEWEST_ROWS = 3, 3
SEE_FULL = "see `.in_full()`."
"""End of a sentence about omitted lines."""


@dataclass(frozen=True)
class Grid:
    """A small table for people: names of columns, and rows of text.

    Columns are aligned to the right, as numbers are, but for the first and those ``left``. Rows of
    a ``tight`` one are indented, and no empty line follows.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: frozenset[str] = frozenset()
    bold: str = ""
    tight: bool = False

    @classmethod
    def of(cls, frame: pd.DataFrame, cells: Mapping[str, str], left: Iterable[str] = ()) -> Grid:
        """Make a grid of the rows of a frame; ``cells`` has each column's format by its title.

        >>> Grid.of(pd.DataFrame({"head": [3], "mean": [0.51]}), {"of": "{head}", "": "{mean:.1f}"})
        Grid(columns=('of', ''), rows=(('3', '0.5'),), left=frozenset(), bold='', tight=False)
        """
        rows = (
            tuple(cell.format_map(row) for cell in cells.values())
            for row in frame.to_dict("records")
        )
        return cls(tuple(cells), tuple(rows), frozenset(left))


@dataclass(frozen=True)
class Warned:
    """Caution about a result: a sentence for people."""

    text: str


Shown = str | Grid | Warned


class Verbatim(str):
    """A text that quotes a corpus, whose words may look like flags."""

    __slots__ = ()


class Summary(ABC):
    """Results as people read them: a summary, details, facts for scripts, next steps."""

    @abstractmethod
    def summarize(self) -> Iterable[Shown]:
        """Yield the summary: sentences, grids, warnings."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the same for scripts, as an object that JSON can have."""

    def in_full(self) -> str:
        """Return the summary with whole warnings, and all details, as text."""
        return as_text(chain(self.summarize(), self.details()))

    def details(self) -> Iterable[Shown]:
        """Yield the details that the summary omits, printed with ``--full``."""
        return ()

    def next_steps(self, folder: Path) -> Iterable[str]:
        """Name commands that show more of the results, which are stored in ``folder``."""
        return ()


def in_digits(number: float, digits: int = 2) -> str:
    """Format a number with so many decimals; "-" if missing.

    >>> in_digits(0.126), in_digits(float("nan"))
    ('0.13', '-')
    """
    return "-" if math.isnan(number) else f"{number:.{digits}f}"


def brief(shown: Iterable[Shown]) -> list[Shown]:
    """Fit a summary on a screen: warnings lose reasons and advice, grids rows, the rest its end."""
    parts = [replace(one, tight=True) if isinstance(one, Grid) else one for one in shown]
    content: list[Shown] = [one for one in parts if not isinstance(one, Warned)]
    warned = [Warned(first_sentence(one.text)) for one in parts if isinstance(one, Warned)]
    room = _SUMMARY - sum(map(_height, content))
    n_warned = next(
        (n for n in range(min(len(warned), _MOST_WARNINGS), 1, -1) if _fit(warned, n) <= room),
        min(len(warned), 1),
    )
    content = _shorten(content, _fit(warned, n_warned) - room)
    return [*_clip(content, _SUMMARY - _fit(warned, n_warned)), *_first(warned, n_warned)]


def _first(warned: Sequence[Warned], n: int) -> Iterable[Shown]:
    left = len(warned) - n
    return (
        *warned[:n],
        *[f"{left} more warning{'s' * (left > 1)}: see `.warnings`."] * (left > 0),
    )


def _fit(warned: Sequence[Warned], n: int) -> int:
    """Count the lines of the first ``n`` warnings."""
    return sum(map(_height, _first(warned, n)))


def _height(one: Shown) -> int:
    if isinstance(one, Grid):
        return 1 + len(one.rows)
    return len(_lines(one))


def _shorten(content: list[Shown], n_lines: int) -> list[Shown]:
    """Take ``n_lines`` lines out of the longest grids, and say how many rows are missing."""
    shortened: dict[int, tuple[Shown, ...]] = {k: (one,) for k, one in enumerate(content)}
    grids = [place for place, one in enumerate(content) if isinstance(one, Grid)]
    for place in sorted(grids, key=lambda one: _height(content[one]), reverse=True):
        grid: Any = content[place]
        n_rows = max(len(grid.rows) - n_lines - 1, _FEWEST_ROWS)
        left = len(grid.rows) - n_rows
        if n_lines > 0 and left > 1:
            more = f"  {left} more rows: {SEE_FULL}"
            shortened[place] = (replace(grid, rows=grid.rows[:n_rows]), more)
            n_lines -= left - 1
    return [*chain.from_iterable(shortened.values())]


def _clip(content: list[Shown], n_lines: int) -> list[Shown]:
    """Drop the last parts beyond ``n_lines`` lines, and the title of a dropped grid."""
    left = [*content]
    while sum(map(_height, left)) > n_lines - (len(left) < len(content)) and len(left) > 1:
        was_grid = isinstance(left.pop(), Grid)
        if was_grid and len(left) > 1 and not isinstance(left[-1], Grid):
            left.pop()
    return left if len(left) == len(content) else [*left, f"More: {SEE_FULL}"]


def as_text(shown: Iterable[Shown], width: int = WIDE) -> str:
    """Return parts of a summary as plain text."""
    from rich.console import Console

    page = io.StringIO()
    console = Console(
        file=page,
        width=width,
        force_jupyter=False,  # in a notebook rich would display it, and leave the page empty
        force_terminal=False,  # and notebooks ask for colours
        markup=False,
        emoji=False,
        highlight=False,
    )
    print_on(console, shown)
    return page.getvalue().rstrip("\n")


def print_on(console: Any, shown: Iterable[Shown]) -> None:
    """Print parts of a summary on a console of rich.

    Names in it come from corpora, models and folders: characters that a terminal would obey are
    printed as escapes, here and nowhere else.
    """
    for one in shown:
        if isinstance(one, Grid):
            console.print(_rich_table(one))
            if not one.tight:
                console.print()
        else:
            for line in _lines(one):
                console.print(line, soft_wrap=True)


def _lines(one: str | Warned) -> list[str]:
    """Break a text into lines of limited length."""
    text = f"warning: {one.text}" if isinstance(one, Warned) else one
    text = text if isinstance(one, Verbatim) else addressed(text)
    return "\n".join(map(_wrapped, printable_lines(text).split("\n"))).split("\n")


def _wrapped(line: str) -> str:
    """Break a line of text at spaces; later parts are indented as the first one is."""
    indent = " " * (len(line) - len(line.lstrip()))
    parts = textwrap.wrap(
        line,
        _LINE,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
        replace_whitespace=False,
    )
    return "\n".join(parts) if len(line) > _LINE else line


def _rich_table(grid: Grid) -> Any:
    from rich.table import Table

    table = Table(box=None, padding=(0, 1, 0, 0))
    for place, name in enumerate(grid.columns):
        shown = printable(name)
        if place == 0:
            table.add_column(shown, overflow="fold")
        else:
            justify: Any = "left" if name in grid.left else "right"
            style = "bold" if name == grid.bold else ""
            table.add_column(shown, justify=justify, style=style, no_wrap=True)
    indent = "  " * grid.tight
    for first, *others in grid.rows:
        table.add_row(f"{indent}{printable(first)}", *map(printable, others))
    return table


def as_html(shown: Iterable[Shown]) -> str:
    """Return parts of a summary as HTML, everything in it escaped."""
    return "\n".join(_html(one) for one in shown)


def _html(one: Shown) -> str:
    if isinstance(one, Warned):
        return f"<p><b>warning:</b> {html.escape(printable(addressed(one.text)))}</p>"
    if isinstance(one, str):
        content = one if isinstance(one, Verbatim) else addressed(one)
        text = html.escape(printable_lines(content.strip()))
        return f"<p>{text.replace(chr(10), '<br>')}</p>"
    rows = [[printable(cell) for cell in row] for row in one.rows]
    frame = pd.DataFrame(rows, columns=[printable(name) for name in one.columns])
    return str(frame.to_html(index=False, border=0))
