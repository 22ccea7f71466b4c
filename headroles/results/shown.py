"""Summaries of results: sentences, small tables and warnings; as text, on a console, as HTML."""

from __future__ import annotations

import html
import io
import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from headroles.wording import addressed, printable, printable_lines, shortened

WIDE = 200
"""Characters of a line of a grid on a page of unknown width."""
_LINE = 100
"""Characters of a line of text."""
_SUMMARY = 17
"""Lines of a summary: with next steps and the folder it fills a screen of 20."""
_MOST_WARNINGS = 3
_FEWEST = 4
"""Rows that a table keeps before the sentences after it are omitted."""
SEE_FULL = "see `.in_full()`."
"""End of a sentence about omitted lines."""
_MORE = f"More: {SEE_FULL}"


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


def in_digits(number: float | None, digits: int = 2) -> str:
    """Format a number with so many decimals; "-" if missing, which records keep as None.

    >>> in_digits(0.126), in_digits(float("nan")), in_digits(None)
    ('0.13', '-', '-')
    """
    return "-" if number is None or math.isnan(number) else f"{number:.{digits}f}"


def brief(shown: Iterable[Shown]) -> list[Shown]:
    """Fit a summary on a screen: warnings lose reasons and advice, grids rows, texts the end.

    A warning that stands first stays first, and the others come last, in one line each.
    """
    parts = list(shown)
    warned = [_in_a_line(part) for part in parts if isinstance(part, Warned)]
    first = [warned.pop(0) for part in parts[:1] if isinstance(part, Warned)]
    ends: list[Shown] = [*warned[:_MOST_WARNINGS]]
    if left := len(warned) - len(ends):
        ends.append(f"{left} more warning{'s' * (left > 1)}: see `.warnings`.")
    room = _SUMMARY - sum(map(_height, [*first, *ends]))
    content = [part for part in parts if not isinstance(part, Warned)]
    heights = [len(part.rows) for part in content if isinstance(part, Grid)]
    texts = [_height(part) for part in content if isinstance(part, str)]
    for_rows = room - len(heights) - sum(texts)
    enough = min(sum(heights), _FEWEST * len(heights))
    is_cut = False
    while for_rows < enough and isinstance(content[-1], str):
        for_rows += _height(content.pop()) - (not is_cut)
        is_cut = True
    shares = _shares(heights, for_rows)
    fitted: list[Shown] = []
    for part in content:
        fitted += _cut(part, shares.pop(0)) if isinstance(part, Grid) else [part]
    fitted += [_MORE] * is_cut
    while sum(map(_height, fitted)) > room and len(fitted) > 1:
        fitted[-2:] = [_MORE]
    return [*first, *fitted, *ends]


def _shares(wanted: list[int], room: int) -> list[int]:
    """Share rows among grids: each gets as many as the others, or as many as it wants."""
    shares: dict[int, int] = {}
    for k, place in enumerate(sorted(range(len(wanted)), key=wanted.__getitem__)):
        shares[place] = max(1, min(wanted[place], room // (len(wanted) - k)))
        room -= shares[place]
    return [shares[place] for place in range(len(wanted))]


def _in_a_line(caution: Warned) -> Warned:
    """Keep the first sentence of a warning, if it fits a line."""
    sentence = re.split(r"(?<=\.)\s", addressed(caution.text), maxsplit=1)[0]
    return Warned(shortened(sentence, _LINE - len("warning: ")))


def _cut(grid: Grid, most: int) -> list[Shown]:
    """Return a grid of so many lines, the last of which counts rows that do not fit."""
    if len(grid.rows) <= max(most, 2):
        return [replace(grid, tight=True)]
    shown = max(1, most - 1)
    more = f"  {len(grid.rows) - shown} more rows: {SEE_FULL}"
    return [replace(grid, rows=grid.rows[:shown], tight=True), more]


def _height(part: Shown) -> int:
    return 1 + len(part.rows) if isinstance(part, Grid) else len(_lines(part))


def without_pointers(shown: Iterable[Shown]) -> Iterator[Shown]:
    """Yield the parts, without sentences that point to the full text."""
    return (part for part in shown if not (isinstance(part, str) and part.endswith(SEE_FULL)))


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
    """Break a text into lines of limited length."""
    text = f"warning: {part.text}" if isinstance(part, Warned) else part
    text = text if isinstance(part, Verbatim) else addressed(text)
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
    return "\n".join(_html(part) for part in shown)


def _html(part: Shown) -> str:
    if isinstance(part, Warned):
        return f"<p><b>warning:</b> {html.escape(printable(addressed(part.text)))}</p>"
    if isinstance(part, str):
        content = part if isinstance(part, Verbatim) else addressed(part)
        text = html.escape(printable_lines(content.strip()))
        return f"<p>{text.replace(chr(10), '<br>')}</p>"
    rows = [[printable(cell) for cell in row] for row in part.rows]
    frame = pd.DataFrame(rows, columns=[printable(name) for name in part.columns])
    return str(frame.to_html(index=False, border=0))
