"""Tables of text -> LaTeX that compiles and fits its page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headroles.wording import printable

if TYPE_CHECKING:
    import pandas as pd

_UPRIGHT, _ACROSS = 100, 150
"""Characters of a line that fit a page of the smaller types, upright and across."""
_PAGE = """% needs \\usepackage{packages}
{begin}{{\\{size}\\setlength{{\\tabcolsep}}{{2pt}}
{table}}}
{end}"""
_ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    **{one: f"\\{one}" for one in "&%$#_{}"},
}


def latex_table(readable: pd.DataFrame) -> str:
    """A table of texts by booktabs that goes on over pages.

    Names of columns stand upright where their text is narrower. A table that is too wide for an
    upright page is laid across, with a wish for a smaller part of it if that does not do either.
    """
    width = sum(_width(readable.iloc[:, place]) + 1 for place in range(readable.shape[1]))
    escaped = readable.rename(columns=to_latex).map(to_latex)
    escaped.columns = [f"\\rotatebox{{90}}{{{name}}}" for name in escaped.columns]
    kinds = ("r" if _is_number(readable.iloc[:, k]) else "l" for k in range(readable.shape[1]))
    table = escaped.to_latex(
        index=False, escape=False, longtable=True, column_format="".join(kinds)
    )
    lies = width > _UPRIGHT
    page = _PAGE.format(
        packages="{booktabs,longtable,graphicx" + ",pdflscape" * lies + "}",
        begin="\\begin{landscape}\n" * lies,
        size="tiny" if lies else "scriptsize",
        table=table,
        end="\\end{landscape}\n" * lies,
    )
    return _TOO_WIDE * (width > _ACROSS) + page


_TOO_WIDE = (
    "% wider than a page: export a view (--view), or fewer roles or layers (--role, --layer)\n"
)


def to_latex(text: str) -> str:
    """Text that LaTeX sets as it is."""
    return "".join(_ESCAPES.get(one, one) for one in printable(text))


def _width(column: pd.Series[Any]) -> int:
    return int(column.str.len().max()) if len(column) else 0


def _is_number(column: pd.Series[Any]) -> bool:
    return bool(column.astype(str).str.fullmatch(r"[-+]?[\d.,e+-]*|<\.001|inf").all())
