"""What results show: sentences, small tables and warnings, as text, on a console or as HTML."""

from __future__ import annotations

import html
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

WIDE = 200
"""Characters a line of a grid may have where nothing says how wide the page is."""


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


def as_text(shown: Iterator[Shown], width: int = WIDE) -> str:
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


def print_on(console: Any, shown: Iterator[Shown]) -> None:
    """Print what a result shows on a console of rich."""
    for one in shown:
        if isinstance(one, Grid):
            console.print(_rich_table(one))
            console.print()
        else:
            text = f"warning: {one.text}" if isinstance(one, Warned) else one
            console.print(text, soft_wrap=True)


def _rich_table(grid: Grid) -> Any:
    from rich.table import Table

    table = Table(box=None, padding=(0, 1, 0, 0))
    for place, name in enumerate(grid.columns):
        if place == 0:
            table.add_column(name, overflow="fold")
        else:
            justify: Any = "left" if name in grid.left else "right"
            style = "bold" if name == grid.bold else ""
            table.add_column(name, justify=justify, style=style, no_wrap=True)
    for row in grid.rows:
        table.add_row(*row)
    return table


def as_html(shown: Iterator[Shown]) -> str:
    """What a result shows as HTML, everything in it escaped."""
    return "\n".join(_html(one) for one in shown)


def _html(one: Shown) -> str:
    if isinstance(one, Warned):
        return f"<p><b>warning:</b> {html.escape(one.text)}</p>"
    if isinstance(one, str):
        return f"<p>{html.escape(one.strip()).replace(chr(10), '<br>')}</p>"
    frame = pd.DataFrame(list(one.rows), columns=list(one.columns))
    return str(frame.to_html(index=False, border=0))
