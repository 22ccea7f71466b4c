"""Tables in the formats that people and programs read; in LaTeX as papers have them."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from math import floor, log10
from typing import TYPE_CHECKING, Any

import numpy as np

from headroles.errors import UsageError
from headroles.results.columns import NAMES
from headroles.storage import encode_json, plain
from headroles.wording import printable

if TYPE_CHECKING:
    import pandas as pd

    from headroles.record import Record

ENDINGS = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".json": "json",
    ".md": "markdown",
    ".tex": "latex",
    ".html": "html",
}
"""Formats by file extension."""
FORMATS = tuple(ENDINGS.values())
_NOTE = b"headroles"  # key of the record in the metadata of a Parquet file


def export_frame(frame: pd.DataFrame, fmt: str, record: Record) -> bytes:
    """Return ``frame`` in a format other than LaTeX, text encoded as UTF-8.

    Names in it are text and no markup: formats for people escape them, and CSV puts a quotation
    mark before texts that look like formulas to a spreadsheet.

    Parquet and JSON contain ``record``. CSV has full precision; markdown and html round to four
    significant digits, and show True as a mark. Missing values are empty (JSON: null).

    Raises UsageError for a format that is not one of ``FORMATS``.
    """
    match fmt:
        case "csv":
            return _without_formulas(frame).to_csv(index=False, lineterminator="\n").encode()
        case "parquet":
            return _to_parquet(frame, record)
        case "json":
            return encode_json({"record": record, "rows": frame.to_dict("records")})
        case "markdown":
            written = frame.apply(readable).rename(columns=_to_markdown).map(_to_markdown)
            return f"{written.to_markdown(index=False, disable_numparse=True)}\n".encode()
        case "html":
            written = frame.apply(readable).rename(columns=printable).map(printable)
            return f"{written.to_html(index=False, border=0)}\n".encode()
    raise UsageError(f"unknown format {fmt!r}; use one of {', '.join(FORMATS)}")


def _to_parquet(frame: pd.DataFrame, record: Record) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pandas(frame, preserve_index=False)
    note = {_NOTE: encode_json(_without_circumstances(plain(record)))}
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({**(table.schema.metadata or {}), **note}), sink)
    return sink.getvalue()


def _without_circumstances(record: Any) -> Any:
    """Return a record without dates and commands, so that the same table gives the same file.

    This includes the records of the results that the table was made from.
    """
    if not isinstance(record, Mapping):
        return record
    kept = record.keys() - {"created", "command"}
    return {name: _without_circumstances(record[name]) for name in record if name in kept}


def _to_markdown(text: str) -> str:
    """Escape text for Markdown; ``_`` within words is no markup and stays readable."""
    escaped = _MARKDOWN.sub(r"\\\g<0>", printable(text))
    return escaped.replace("&", "&amp;").replace("<", "&lt;")


# emphasis, code, links, formulas, borders; underscores only where they could delimit emphasis
_MARKDOWN = re.compile(r"[\\`*\[\]|~$]|(?<!\w)_|_(?!\w)")


def _without_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Put a quotation mark before texts, in the header too, that a spreadsheet would compute."""

    def quoted(value: Any) -> Any:
        return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value

    texts = frame.select_dtypes(exclude=["number", "bool"])
    return frame.assign(**texts.map(quoted)).rename(columns=quoted)


_FORMULA = re.compile(r"[=@\t\r]|[-+](?!$)")
"""Beginning of a text that a spreadsheet would take for a formula."""


def readable(column: pd.Series[Any]) -> pd.Series[Any]:
    """Write a column for people: four significant digits, p-values with three decimals, marks.

    True is a mark, and missing numbers are nothing.
    """
    from pandas.api.types import is_bool_dtype, is_float_dtype

    def write(value: float) -> str:
        if np.isnan(value):
            return ""
        if not _is_p(column):
            return f"{value:.4g}"
        return "<.001" if value < 0.001 else f"{value:.3f}".removeprefix("0")

    if is_bool_dtype(column):
        return column.map({True: "x", False: ""})
    return column.map(write) if is_float_dtype(column) else column.astype(str)


def _is_p(column: pd.Series[Any]) -> bool:
    return bool(re.match(r"p(_|$)", str(column.name)))


# LaTeX.

_VALUES = (
    "mean value difference importance loss_change removed_difference relative_drop corpus_examples"
).split()
_CHECKS = "ci_low ci_high answer change direction replicated beyond_distance mean_trees top".split()
_IN_PAPERS = tuple(dict.fromkeys(("head", *NAMES, *_VALUES, *_CHECKS)))
"""Columns that papers print, in this order."""
_HEADERS = {"ci_low": "interval from", "ci_high": "interval to", "mean_trees": "in other trees"}
_OF_SCORES = ("mean", "difference", "threshold")
_OF_LOSSES = ("loss", "loss_change", "removed_difference")
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


def to_latex(text: str) -> str:
    """Escape text so that LaTeX prints it unchanged, and ``->`` as an arrow."""
    escaped = "".join(_ESCAPES.get(character, character) for character in printable(text))
    return escaped.replace(r"-\textgreater{}", r"$\rightarrow$")


def latex_table(frame: pd.DataFrame, caption: str = "", label: str = "tab:headroles") -> str:
    """Return a table for articles, over pages if it is long, over both columns if it is wide.

    The numbers of a column have as many decimals as its largest needs; p-values have three.
    """
    is_long, is_wide = len(frame) > _PAGE_ROWS, len(frame.columns) > _COLUMNS
    columns = {str(name): _latex_column(frame[name]) for name in frame}
    cells = frame.assign(**{name: cells for name, (cells, _) in columns.items()})
    page = (
        cells.rename(columns=to_latex)
        .style.hide(axis="index")
        .to_latex(
            column_format="".join(form for _, form in columns.values()),
            hrules=True,
            siunitx=True,
            caption=to_latex(caption) or None,
            label=re.sub(r"[^\w:.-]", "-", label),
            position=None if is_long else "t",
            position_float=None if is_long else "centering",
            environment="longtable" if is_long else "table*" if is_wide else None,
        )
    )
    packages, where = "array,booktabs,siunitx", ""
    if is_long:
        packages += ",longtable"
        where = ", and \\onecolumn where the article has two"
    return f"% needs \\usepackage{{{packages}}}{where}\n{page}"


def _latex_column(column: pd.Series[Any]) -> tuple[pd.Series[str], str]:
    """Return the cells of a column, and the column as the argument of ``tabular`` has it."""
    if column.dtype.kind not in "iuf":
        cells = readable(column).map(to_latex)
        is_sentence = cells.map(len).max() > _CHARACTERS
        return cells, r">{\raggedright\arraybackslash}p{.3\linewidth}" if is_sentence else "l"
    known = column[np.isfinite(column)]
    largest = float(known.abs().max()) if len(known) else 0.0
    decimals = 0 if (known == known.round()).all() else max(0, _DIGITS - 1 - floor(log10(largest)))
    decimals = 3 if _is_p(column) else decimals
    cells = column.map(f"{{:.{decimals}f}}".format).replace({"nan": "", "inf": r"{$\infty$}"})
    if _is_p(column):
        cells = cells.mask(column < 0.001, "{$<$.001}")
    sign, digits = ("-" if (known < 0).any() else ""), len(f"{largest:.{decimals}f}".split(".")[0])
    return cells, f"S[table-format={sign}{digits}.{decimals}]"


def for_paper(frame: pd.DataFrame) -> pd.DataFrame:
    """Name heads in one column, and choose the columns of a long table that a paper prints.

    They are names, values, answers or else intervals, and checks, where these tell rows apart. A
    table without any of ``_VALUES`` keeps all columns.
    """
    named = with_head_names(frame)
    chosen = [name for name in _IN_PAPERS if name in named]
    if not {*chosen} & {*_VALUES}:
        return named
    if "removed" in chosen and "head" in chosen:  # a head that was removed is named by both
        chosen.remove("head")
    chosen = [name for name in chosen if len(named) < 2 or len(named[name].unique()) > 1]
    has_answers = "answer" in named  # which say what intervals show, in a column instead of two
    return named[[name for name in chosen if not (has_answers and name in ("ci_low", "ci_high"))]]


def with_head_names(frame: pd.DataFrame) -> pd.DataFrame:
    """Name heads by layer and head, in one column, of a table that has both."""
    if not {"layer", "head"} <= set(frame):
        return frame
    heads = frame["layer"].astype(str) + "-" + frame["head"].astype(str)
    return frame.assign(head=heads).drop(columns="layer")


def with_units(frame: pd.DataFrame, score: str, in_words: Callable[[object], str]) -> pd.DataFrame:
    """Name roles ``in_words``, in cells and column names, and add units to column names."""
    unit = " (times uniform)" if score == "bias" else (f" ({score})" if score else "")
    units = {**dict.fromkeys(_OF_SCORES, unit), **dict.fromkeys(_OF_LOSSES, " (nats)")}
    for name in {"role", "removed"} & set(frame):
        if frame[name].dtype != bool:
            frame = frame.assign(**{name: frame[name].map(in_words)})
    names = {name: _HEADERS.get(name, in_words(name)) for name in frame.columns}
    return frame.rename(
        columns={
            name: re.sub("(?<=[a-z])_(?=[a-z])", " ", words) + units.get(name, "")
            for name, words in names.items()
        }
    )
