"""Summaries of results: sentences, small tables and warnings; as text, on a console, as HTML."""

from __future__ import annotations

import html
import io
import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from headroles.wording import addressed, printable, printable_lines

if TYPE_CHECKING:
    import pandas as pd

WIDE = 200
"""Characters of a line of a grid on a page of unknown width."""
_LINE = 100
"""Characters of a line of text."""
_SUMMARY = 21
"""Lines of a summary: with next steps and the folder it fills a terminal of 24 lines."""
_LONG = 3
"""Rows of a grid that are cut first."""
_MOST_WARNINGS = 3
SEE_FULL = "see `.in_full()`."
"""End of a sentence about omitted lines."""


@dataclass(frozen=True)
class Grid:
    """A small table for people: names of columns, and rows of text.

    Columns are aligned to the right, as numbers are, but for the first and those ``left``. Rows of
    a ``tight`` one are indented, and no empty line follows. ``view`` names the table of the
    result that has these rows, if one has.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: frozenset[str] = frozenset()
    tight: bool = False
    view: str = ""

    @classmethod
    def from_frame(
        cls, frame: pd.DataFrame, cells: Mapping[str, str], left: Iterable[str] = ()
    ) -> Grid:
        """Make a grid of the rows of a frame; ``cells`` has each column's format by its title.

        >>> import pandas as pd
        >>> of = pd.DataFrame({"head": [3], "mean": [0.51]})
        >>> Grid.from_frame(of, {"head": "{head}", "": "{mean:.1f}"}).rows
        (('3', '0.5'),)
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


class Pointer(str):
    """A sentence that points to the full text, which leaves it out."""

    __slots__ = ()


class Title(str):
    """The title of what follows."""

    __slots__ = ()


def in_digits(number: float | None, digits: int = 2) -> str:
    """Format a number with so many decimals; "-" if missing, which records keep as None.

    >>> in_digits(0.126), in_digits(-1e-9), in_digits(float("nan")), in_digits(None)
    ('0.13', '0.00', '-', '-')
    """
    return "-" if number is None or math.isnan(number) else f"{number:z.{digits}f}"


def brief(shown: Iterable[Shown]) -> list[Shown]:
    """Fit a summary on a screen: while it is too high, the last long grid loses its last row.

    A line counts the rows that a grid lost. Where that is not enough, texts at the end go. Warnings
    keep their first sentence; one that stands first stays first, and the others come last.
    """
    parts = list(shown)
    cautions = [part.text for part in parts if isinstance(part, Warned)]
    warned = [Warned(re.split(r"(?<=\.)\s", text, maxsplit=1)[0]) for text in cautions]
    first = [warned.pop(0) for part in parts[:1] if isinstance(part, Warned)]
    ends: list[Shown] = [*warned[:_MOST_WARNINGS]]
    if (left := len(warned) - _MOST_WARNINGS) > 0:
        ends.append(f"{left} more warning{'s' if left > 1 else ''}: see `.warnings`.")
    content = [part for part in parts if not isinstance(part, Warned)]
    lines = _rows_in(content)
    while True:
        cut = [
            piece for part, most in zip(content, lines, strict=True) for piece in _cut(part, most)
        ]
        fitted, longest = [*first, *cut, *ends], max(lines, default=0)
        if sum(map(_height, fitted)) <= _SUMMARY:
            return fitted
        if longest > 2:
            long = [place for place, n_rows in enumerate(lines) if n_rows > _LONG]
            lines[long[-1] if long else lines.index(longest)] -= 1
        elif len(content) > 2:
            content[-2:] = [Pointer(f"More: {SEE_FULL}")]
            lines = _rows_in(content)  # which may have more room now
        else:
            return fitted


def _rows_in(parts: Iterable[Shown]) -> list[int]:
    return [len(part.rows) if isinstance(part, Grid) else 0 for part in parts]


def _cut(part: Shown, most: int) -> list[Shown]:
    """Return a grid of so many lines, the last of which counts the rows that do not fit."""
    if not isinstance(part, Grid):
        return [part]
    if len(part.rows) <= most:
        return [replace(part, tight=True)]
    more = Pointer(f"  {len(part.rows) - most + 1} more rows: {SEE_FULL}")
    return [replace(part, rows=part.rows[: most - 1], tight=True), more]


def _height(part: Shown) -> int:
    return 1 + len(part.rows) if isinstance(part, Grid) else len(_lines(part))


def without_pointers(shown: Iterable[Shown]) -> Iterator[Shown]:
    """Yield the parts, without sentences that point to the full text."""
    return (part for part in shown if not isinstance(part, Pointer))


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
    for part in shown:
        if isinstance(part, Grid):
            console.print(_rich_table(part))
            if not part.tight:
                console.print()
        else:
            for line in _lines(part):
                console.print(line, soft_wrap=True)


def _lines(part: str | Warned) -> list[str]:
    """Break a text at spaces into lines of limited length, indented as their first part is."""
    text = f"warning: {part.text}" if isinstance(part, Warned) else part
    text = text if isinstance(part, Verbatim) else addressed(text)
    wrapper = textwrap.TextWrapper(
        _LINE, break_long_words=False, break_on_hyphens=False, replace_whitespace=False
    )
    lines = []
    for line in printable_lines(text).split("\n"):
        wrapper.subsequent_indent = " " * (len(line) - len(line.lstrip()))
        lines += wrapper.wrap(line) if len(line) > _LINE else [line]
    return lines


def _rich_table(grid: Grid) -> Any:
    from rich.table import Table

    table = Table(box=None, padding=(0, 1, 0, 0))
    for place, name in enumerate(grid.columns):
        shown = printable(name)
        if place == 0:
            table.add_column(shown, overflow="fold")
        else:
            justify: Any = "left" if name in grid.left else "right"
            table.add_column(shown, justify=justify, no_wrap=True)
    indent = "  " * grid.tight
    for first, *rest in grid.rows:
        table.add_row(f"{indent}{printable(first)}", *map(printable, rest))
    return table


def as_html(shown: Iterable[Shown]) -> str:
    """Return parts of a summary as HTML, everything in it escaped."""
    return "\n".join(_html(part) for part in shown)


def _html(part: Shown) -> str:
    import pandas as pd

    if isinstance(part, Warned):
        return f"<p><b>warning:</b> {html.escape(printable(addressed(part.text)))}</p>"
    if isinstance(part, str):
        content = part if isinstance(part, Verbatim) else addressed(part)
        text = html.escape(printable_lines(content.strip()))
        return f"<p>{text.replace(chr(10), '<br>')}</p>"
    rows = [[printable(cell) for cell in row] for row in part.rows]
    frame = pd.DataFrame(rows, columns=[printable(name) for name in part.columns])
    return str(frame.to_html(index=False, border=0))
