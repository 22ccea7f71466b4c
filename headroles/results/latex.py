"""Tables as papers have them, in LaTeX: few columns, roles in words, units, booktabs, siunitx."""

from __future__ import annotations

import re
from math import floor, log10
from typing import TYPE_CHECKING, Any

import numpy as np

from headroles.role_names import in_words
from headroles.wording import printable

if TYPE_CHECKING:
    import pandas as pd

    from headroles.arrays import FloatArray

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
_OWN_NAME = re.compile(r"[a-z]+(_[a-z]+)+")
_UNITS = {
    **dict.fromkeys(("loss", "loss_change", "removed_difference", "loss_difference"), "nats"),
    "seconds": "s",
    "relative_drop": "share of the score",
}
_OF_SCORES = ("mean", "mean_before", "mean_after", "difference", "beyond", "threshold")
_OF_A_SCORE = {"bias": "times uniform"}
_ANSWERS = ("answer", "change", "interval")


_PAGE_ROWS, _COLUMNS, _CHARACTERS = 40, 6, 40
"""Rows of a page; columns that fit a column of an article; characters of a line of text."""
_DIGITS = 3
"""Significant digits of the largest number of a column, which all its numbers are rounded to."""
_ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # which after the end of a row would begin its height
    '"': "''",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def latex_table(frame: pd.DataFrame, caption: str = "", label: str = "tab:headroles") -> str:
    """Return a table for articles, over pages if it is long, over both columns if it is wide.

    The numbers of a column have as many decimals as its largest needs; p-values have three.
    """
    is_long, is_wide = len(frame) > _PAGE_ROWS, len(frame.columns) > _COLUMNS
    shown = frame.apply(_in_fixed_decimals)
    styled = shown.rename(columns=to_latex).style.hide(axis="index")
    page = styled.to_latex(
        column_format="".join(_column(frame[name], shown[name]) for name in frame),
        hrules=True,
        siunitx=True,
        caption=to_latex(caption) or None,
        label=re.sub(r"[^\w:.-]", "-", label),
        position=None if is_long else "t",
        position_float=None if is_long else "centering",
        environment="longtable" if is_long else "table*" if is_wide else None,
    )
    packages = "array,booktabs,siunitx" + ",longtable" * is_long
    where = ", and \\onecolumn where the article has two" * is_long
    return f"% needs \\usepackage{{{packages}}}{where}\n{page}"


def _in_fixed_decimals(column: pd.Series[Any]) -> pd.Series[str]:
    from pandas.api.types import is_bool_dtype, is_float_dtype

    if is_bool_dtype(column):
        return column.map({True: "x", False: ""})
    if not is_float_dtype(column):
        return column.map(lambda value: to_latex(str(value)))
    is_p = bool(re.match(r"p(_|$)", str(column.name)))
    decimals = 3 if is_p else _decimals(column.to_numpy(dtype=np.float64))

    def written(value: float) -> str:
        if np.isnan(value):
            return ""
        if np.isinf(value):
            return r"{$\infty$}"
        if is_p and value < 0.001:
            return r"{$<$.001}"
        return f"{value:.{decimals}f}"

    return column.map(written)


def _decimals(values: FloatArray) -> int:
    known = np.abs(values[np.isfinite(values)])
    largest = known.max(initial=0)
    if not largest or (known == np.round(known)).all():
        return 0
    return max(0, _DIGITS - 1 - floor(log10(largest)))


def _column(values: pd.Series[Any], texts: pd.Series[str]) -> str:
    """Return a column as the argument of ``tabular`` has it."""
    if values.dtype.kind in "iuf":
        numbers = [text for text in texts if not text.startswith("{")]
        parts = [text.lstrip("-").partition(".") for text in numbers]
        before, after = (max((len(part[k]) for part in parts), default=0) for k in (0, 2))
        sign = "-" if any(text.startswith("-") for text in numbers) else ""
        return f"S[table-format={sign}{before or 1}.{after}]"
    is_sentence = texts.map(len).max() > _CHARACTERS
    return r">{\raggedright\arraybackslash}p{.3\linewidth}" if is_sentence else "l"


def to_latex(text: str) -> str:
    """Escape text so that LaTeX prints it unchanged, and ``->`` as an arrow."""
    escaped = "".join(_ESCAPES.get(character, character) for character in printable(text))
    return escaped.replace(r"-\textgreater{}", r"$\rightarrow$")


def for_paper(frame: pd.DataFrame) -> pd.DataFrame:
    """Name heads in one column, and choose up to four columns of a long table.

    The columns are the head (or the removal), names, the value, and the answer or interval; for
    roles beyond position the contrast instead of the interval. A fifth column tells which heads go
    beyond distance, if that is known. A table without a known value keeps all columns.
    """
    chosen = frame
    if "removed" in frame:
        chosen = frame.drop(columns=["layer", "head"], errors="ignore")
    elif {"layer", "head"} <= set(frame):
        pairs = zip(frame["layer"], frame["head"], strict=True)
        chosen = frame.assign(head=[f"{layer}-{head}" for layer, head in pairs])
        chosen = chosen.drop(columns="layer")
    value = next((name for name in _VALUES if name in frame), None)
    if value is None:
        return chosen
    if {"ci_low", "ci_high"} <= set(frame):
        ends = (frame[name].map("{:.3g}".format) for name in ("ci_low", "ci_high"))
        interval = [f"{low} to {high}" for low, high in zip(*ends, strict=True)]
        chosen = chosen.assign(interval=interval)
    telling = [name for name in chosen if len(chosen[name].unique()) > 1]
    answers = [name for name in ("beyond", *_ANSWERS) if name in telling]
    names = [name for name in ("head", *_NAMES) if name in telling]
    names = names or [name for name in ("head", *_NAMES) if name in chosen][:1]
    beyond = [name for name in ("beyond_distance",) if name in telling]
    return chosen[[*names[:2], value, *answers[:1], *beyond]]


def with_units(frame: pd.DataFrame, score: str = "") -> pd.DataFrame:
    """Name roles in words, in cells and column names, and add units to column names."""
    units = {**_UNITS, **dict.fromkeys(_OF_SCORES, _OF_A_SCORE.get(score, score))}
    names = {}
    for name in frame.columns:
        words = name.replace("_", " ") if _OWN_NAME.fullmatch(name) else in_words(name)
        unit = units.get(name)
        names[name] = f"{words} ({unit})" if unit else words
    for name in {"role", "removed"} & set(frame):
        frame = frame.assign(**{name: frame[name].map(in_words)})
    return frame.rename(columns=names)
