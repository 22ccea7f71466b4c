"""Tables of text -> LaTeX as set by hand: booktabs, caption, numbers aligned at the point."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from headroles.wording import printable

if TYPE_CHECKING:
    import pandas as pd

_PAGE_ROWS, _PAGE_WIDTH = 40, 100
"""Rows of a table that fit a page, and characters of a line."""
_SHORT = r"""% needs \usepackage{{{packages}}}
\begin{{table}}[t]
\centering
\caption{{{caption}}}
\label{{{label}}}
{begin}\begin{{tabular}}{{{columns}}}
\toprule
{head} \\
\midrule
{rows}\bottomrule
\end{{tabular}}{end}
\end{{table}}
"""
_LONG = r"""% needs \usepackage{{booktabs,longtable}}
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
{rows}\end{{longtable}}
"""
_TOO_WIDE = "% wider than a page: choose columns (--columns), roles or layers (--role, --layer)\n"
_NAMES = ("checkpoint", "role", "estimator", "removed", "order", "task", "measure", "group")
_VALUES = (
    "mean",
    "difference",
    "importance",
    "loss_change",
    "removed_difference",
    "relative_drop",
    "value",
)
_ANSWERS = ("answer", "change", "interval")
_NUMBER = re.compile(r"([-+]?\d[\d,]*|[-+]?(?=\.\d))(\.\d+)?(e[-+]?\d+)?")
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


def for_paper(frame: pd.DataFrame) -> pd.DataFrame:
    """Choose up to four columns of a long table: head, names, the value, the answer or interval.

    Of roles beyond position, the contrast stands in place of the interval.

    A table without a known value keeps all of its columns.
    """
    value = next((name for name in _VALUES if name in frame), None)
    if value is None:
        return frame
    chosen = frame.copy()
    if {"layer", "head"} <= set(frame):
        chosen["head"] = _heads(frame)
    if {"ci_low", "ci_high"} <= set(frame):
        ends = (frame[name].map(_short) for name in ("ci_low", "ci_high"))
        chosen["interval"] = [f"{low} to {high}" for low, high in zip(*ends, strict=True)]
    telling = [name for name in chosen if len(chosen[name].unique()) > 1]
    answers = [name for name in ("beyond", *_ANSWERS) if name in telling]
    names = [name for name in ("head", *_NAMES) if name in telling]
    names = names or [name for name in ("head", *_NAMES) if name in chosen][:1]
    return chosen[[*names[:2], value, *answers[:1]]]


def _heads(frame: pd.DataFrame) -> list[str]:
    pairs = zip(frame["layer"], frame["head"], strict=True)
    return [f"{layer}-{head}" for layer, head in pairs]


def _short(value: float) -> str:
    return f"{value:.3g}"


def latex_table(readable: pd.DataFrame, caption: str = "", label: str = "tab:headroles") -> str:
    """A table of texts by booktabs, with numbers aligned at the decimal point.

    More rows than fit a page go on over pages. A table that is too wide for a page is made smaller
    if its rows fit, and begins with a comment that says what to do.
    """
    numbers = [_is_number(readable.iloc[:, k]) for k in range(readable.shape[1])]
    width = sum(_width(readable.iloc[:, k]) + 2 for k in range(readable.shape[1]))
    is_wide = width > _PAGE_WIDTH
    head = " & ".join(
        f"\\multicolumn{{2}}{{c}}{{{to_latex(name)}}}" if is_number else to_latex(name)
        for name, is_number in zip(map(str, readable.columns), numbers, strict=True)
    )
    rows = "".join(
        " & ".join(
            _aligned(cell) if is_number else to_latex(cell)
            for cell, is_number in zip(row, numbers, strict=True)
        )
        + " \\\\\n"
        for row in readable.itertuples(index=False)
    )
    page = (_LONG if len(readable) > _PAGE_ROWS else _SHORT).format(
        packages="booktabs" + ",graphicx" * is_wide,
        begin="\\resizebox{\\textwidth}{!}{" * is_wide,
        end="}" * is_wide,
        columns="".join("r@{}l" if is_number else "l" for is_number in numbers),
        caption=to_latex(caption),
        label=re.sub(r"[^\w:.-]", "-", label),
        head=head,
        rows=rows,
    )
    return _TOO_WIDE * is_wide + page


def _aligned(text: str) -> str:
    """A number in two cells, of which the second begins at the point."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return f"\\multicolumn{{2}}{{r}}{{{to_latex(text)}}}" if text else "&"
    return f"{found[1]}&{found[2] or ''}{found[3] or ''}"


def to_latex(text: str) -> str:
    """Escape text so that LaTeX prints it unchanged, and ``->`` as an arrow."""
    escaped = "".join(_ESCAPES.get(one, one) for one in printable(text))
    return escaped.replace(r"-\textgreater{}", r"$\rightarrow$")


def _width(column: pd.Series[Any]) -> int:
    longest = int(column.str.len().max()) if len(column) else 0
    return max(longest, len(str(column.name)))


def _is_number(column: pd.Series[Any]) -> bool:
    texts = [text for text in column.astype(str) if text not in ("", "<.001", "inf")]
    return bool(texts) and all(map(_NUMBER.fullmatch, texts))
