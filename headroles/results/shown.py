"""What results show: sentences, small tables and warnings, as text, on a console or as HTML."""

from __future__ import annotations

import html
import io
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from headroles.wording import first_sentence, printable, printable_lines

WIDE = 200
"""Characters a line of a grid may have where nothing says how wide the page is."""
_LINE = 100
"""Characters of a line of text."""
_MOST_WARNINGS = 3


@dataclass(frozen=True)
class Grid:
    """A small table for people: names of columns, and rows of text.

    Columns are aligned to the right, as numbers are, but for the first and those ``left``.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: frozenset[str] = frozenset()
    bold: str = ""


@dataclass(frozen=True)
class Warned:
    """What to know before relying on a result: a sentence for people."""

    text: str


Shown = str | Grid | Warned


class Summary(ABC):
    """Results as people read them: a summary, details, facts for scripts, next steps."""

    @abstractmethod
    def shown(self) -> Iterable[Shown]:
        """Yield the summary: sentences, grids, warnings."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Return the same for scripts, as an object that JSON can have."""

    def details(self) -> Iterable[Shown]:
        """Yield what the summary leaves out: printed with ``--full``."""
        return ()

    def next_steps(self, folder: Path) -> Iterable[str]:
        """Name commands that show more of the results, which are stored in ``folder``."""
        return ()


def brief(shown: Iterable[Shown]) -> Iterator[Shown]:
    """Take the first sentences of the first warnings: findings, without reasons and advice."""
    n_warned = 0
    for one in shown:
        n_warned += isinstance(one, Warned)
        if not isinstance(one, Warned):
            yield one
        elif n_warned <= _MOST_WARNINGS:
            yield Warned(first_sentence(one.text))
    if n_warned > _MOST_WARNINGS:
        yield f"{n_warned - _MOST_WARNINGS} more warnings: see --full (in Python: .warnings)."


def as_text(shown: Iterable[Shown], width: int = WIDE) -> str:
    """What a result shows as plain text."""
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
    """Print what a result shows on a console of rich.

    Names in it come from corpora, models and folders: characters that a terminal would obey are
    shown as escapes, here and nowhere else.
    """
    for one in shown:
        if isinstance(one, Grid):
            console.print(_rich_table(one))
            console.print()
        else:
            text = f"warning: {one.text}" if isinstance(one, Warned) else one
            for line in map(_wrapped, printable_lines(text).split("\n")):
                console.print(line, soft_wrap=True)


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
    for row in grid.rows:
        table.add_row(*map(printable, row))
    return table


def as_html(shown: Iterable[Shown]) -> str:
    """What a result shows as HTML, everything in it escaped."""
    return "\n".join(_html(one) for one in shown)


def _html(one: Shown) -> str:
    if isinstance(one, Warned):
        return f"<p><b>warning:</b> {html.escape(printable(one.text))}</p>"
    if isinstance(one, str):
        text = html.escape(printable_lines(one.strip()))
        return f"<p>{text.replace(chr(10), '<br>')}</p>"
    rows = [[printable(cell) for cell in row] for row in one.rows]
    frame = pd.DataFrame(rows, columns=[printable(name) for name in one.columns])
    return str(frame.to_html(index=False, border=0))
