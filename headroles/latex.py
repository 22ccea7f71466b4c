"""Tables of text -> LaTeX by booktabs, with a caption, and numbers aligned at the point."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headroles.wording import printable

if TYPE_CHECKING:
    import pandas as pd

PAGE_WIDTH, COLUMN_WIDTH = 330.0, 215.0
"""Points that a table may take of a page in one column, and of a column of a page in two."""
_PAGE_ROWS = 40
_GAP = 12.0
"""Points between two columns of a table."""
_SIZES = {"normalsize": 10.0, "small": 9.0, "footnotesize": 8.0}
_WRAPPED, _HEAD_CHARACTERS = (175.0, 120.0), 13
"""Points beyond which text is broken into lines; characters of a line in heads of numbers."""
_FLOAT = r"""\begin{{table{star}}}[t]
\centering\{size}
\caption{{{caption}}}
\label{{{label}}}
\begin{{tabular}}{{{columns}}}
\toprule
{head} \\
\midrule
{rows}\bottomrule
\end{{tabular}}
\end{{table{star}}}
"""
_OVER_PAGES = r"""\makeatletter\let\next=\relax
\if@twocolumn\onecolumn\let\next=\twocolumn\fi\makeatother
{{\{size}
\begin{{longtable}}{{{columns}}}
\caption{{{caption}}}\label{{{label}}} \\
\toprule
{head} \\
\midrule
\endfirsthead
\toprule
{head} \\
\midrule
\endhead
\bottomrule
\endlastfoot
{rows}\end{{longtable}}}}
\next
"""
_KEYS = ("layer", "head", "other")
_NUMBER = re.compile(r"([-+]?)(\d[\d,]*|(?=\.\d))(\.\d+)?(?:e([-+]?\d+))?")
_SMALL_P = "<.001"
_ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # which after the end of a row would begin its height
    '"': "''",
    **{one: f"\\{one}" for one in "&%$#_{}"},
}


@dataclass(frozen=True)
class _Column:
    """A column of texts, numbers or not, as LaTeX sets it; widths in points at a size of 10."""

    name: str
    cells: tuple[str, ...]
    widest: float

    @property
    def is_number(self) -> bool:
        texts = [text for text in self.cells if text not in ("", _SMALL_P, "inf")]
        return bool(texts) and all(map(_NUMBER.fullmatch, texts))

    @property
    def is_wrapped(self) -> bool:
        return not self.is_number and max(map(text_width, self.cells), default=0) > self.widest

    @property
    def head_lines(self) -> list[str]:
        widest = max(_HEAD_CHARACTERS, *map(len, self.cells), 0)
        return textwrap.wrap(self.name, widest, break_long_words=False) or [""]

    @property
    def width(self) -> float:
        """Estimate the width, a little too wide rather than too narrow."""
        head = max(map(text_width, self.head_lines))
        if self.is_number:
            before, after = self._digits()
            return max(head, 5.0 * (before + after) + 8)
        return max(head, min(self.widest, max(map(text_width, self.cells), default=0)))

    def kind(self, size: float) -> str:
        """Return the column as the argument of ``tabular`` has it."""
        if self.is_number:
            before, after = self._digits()
            return f"D{{.}}{{.}}{{{before}.{after}}}"
        if self.is_wrapped:
            return f">{{\\raggedright\\arraybackslash}}p{{{self.widest * size / 10:.0f}pt}}"
        return "l"

    def head(self) -> str:
        lines = r" \\ ".join(map(to_latex, self.head_lines))
        if len(self.head_lines) > 1:
            lines = f"\\shortstack{{{lines}}}"
        return f"\\multicolumn{{1}}{{c}}{{{lines}}}" if self.is_number else lines

    def shown(self) -> list[str]:
        return [_number(cell) if self.is_number else to_latex(cell) for cell in self.cells]

    def _digits(self) -> tuple[int, int]:
        wider = (cell.replace("e-", "ee-") for cell in self.cells)  # a minus is wider than a digit
        parts = [cell.partition(".") for cell in wider]
        return max(len(one[0]) for one in parts), max(len(one[2]) for one in parts)


def latex_table(readable: pd.DataFrame, caption: str = "", label: str = "tab:headroles") -> str:
    """Return a table of texts by booktabs, with numbers aligned at the decimal point.

    It fits a column, or else a page, in articles of one column and of two, if necessary in smaller
    letters, or split into several tables of some columns each. More rows than fit a page make a
    table over several pages, in one column.
    """
    texts = [
        (str(name), tuple(map(str, readable.iloc[:, k]))) for k, name in enumerate(readable.columns)
    ]
    ways = ([_Column(*one, widest) for one in texts] for widest in _WRAPPED)
    tables = min((list(_split(columns)) for columns in ways), key=len)
    label = re.sub(r"[^\w:.-]", "-", label)
    named = [(caption, label)]
    if len(tables) > 1:
        of = len(tables)
        named = [(f"{caption} Part {k} of {of}.", f"{label}-{k}") for k in range(1, of + 1)]
    is_long = len(readable) > _PAGE_ROWS
    page = "\n".join(
        _table(one, is_long, to_latex(caption), label)
        for one, (caption, label) in zip(tables, named, strict=True)
    )
    packages = "array,booktabs,dcolumn" + ",longtable" * is_long
    return f"% needs \\usepackage{{{packages}}}\n{page}"


def _split(columns: Sequence[_Column]) -> Iterator[list[_Column]]:
    """Split columns into tables that fit a page; the columns that name rows begin each of them."""
    values = (k for k, one in enumerate(columns) if one.is_number and one.name not in _KEYS)
    names = list(columns[: next(values, 1) or 1])
    while len(names) > 1 and _total(names) * 0.8 > PAGE_WIDTH / 2:
        names.pop()
    table = list(names)
    for column in columns[len(names) :]:
        if len(table) > len(names) and _total([*table, column]) * 0.8 > PAGE_WIDTH:
            yield table
            table = list(names)
        table.append(column)
    yield table


def _table(columns: Sequence[_Column], is_long: bool, caption: str, label: str) -> str:
    """Return one table, in the largest letters that fit a column, or else a page."""
    is_wide = is_long or _total(columns) * 0.9 > COLUMN_WIDTH
    widest = PAGE_WIDTH if is_wide else COLUMN_WIDTH
    fitting = (name for name, size in _SIZES.items() if _total(columns) * size / 10 <= widest)
    size = next(fitting, "footnotesize")
    rows = zip(*(one.shown() for one in columns), strict=True)
    return (_OVER_PAGES if is_long else _FLOAT).format(
        star="*" * is_wide,
        size=size,
        caption=caption,
        label=label,
        columns="".join(one.kind(_SIZES[size]) for one in columns),
        head=" & ".join(one.head() for one in columns),
        rows="".join(" & ".join(row) + " \\\\\n" for row in rows),
    )


def _total(columns: Sequence[_Column]) -> float:
    """Add widths up, as if gaps shrank with letters, which they do not."""
    return sum(one.width + _GAP / 0.8 for one in columns)


def _number(text: str) -> str:
    """Format a number for a column that is aligned at the decimal point."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return text if text == _SMALL_P else "\\infty" if text == "inf" else to_latex(text)
    sign, whole, part, power = found.groups()
    raised = f"\\mathrm{{e}}{{{int(power)}}}" if power else ""
    return f"{sign}{whole.replace(',', '{,}')}{part or ''}{raised}"


def to_latex(text: str) -> str:
    """Escape text so that LaTeX prints it unchanged, and ``->`` as an arrow."""
    escaped = "".join(_ESCAPES.get(one, one) for one in printable(text))
    return escaped.replace(r"-\textgreater{}", r"$\rightarrow$")


_WIDE, _NARROW = frozenset("mwMW%@"), frozenset("iljtfrsI.,:;'|!()[]/- ")


def text_width(text: str) -> float:
    """Estimate the width of a text in Computer Modern of 10 points."""
    return sum(map(_points_of_one, text))


def _points_of_one(one: str) -> float:
    if one in _WIDE:
        return 8.4
    if one in _NARROW:
        return 4.0
    return 7.3 if one.isupper() else 5.4
