"""Tables in the formats that people and programs read; in LaTeX as papers have them."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from math import floor, log10
from typing import TYPE_CHECKING, Any

import numpy as np

from headroles.errors import UsageError
from headroles.role_names import in_words
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
            return encode_json({"record": record, "rows": to_records(frame)})
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


def to_records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as JSON values, None for NaN and infinity."""
    finite = table.astype(object).where(~table.isin([np.inf, -np.inf]) & table.notna(), None)
    return [{str(name): value for name, value in row.items()} for row in finite.to_dict("records")]


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

    texts = [name for name, kind in frame.dtypes.items() if kind.kind == "O" or kind == "string"]
    plain = frame.copy()
    for name in texts:
        plain[name] = frame[name].map(quoted)
    return plain.rename(columns=quoted)


_FORMULA = re.compile(r"[=@\t\r]|[-+](?!$)")
"""Beginning of a text that a spreadsheet would take for a formula."""


def readable(column: pd.Series[Any]) -> pd.Series[Any]:
    """Write the values of a column for people: four significant digits, marks, p-values."""
    return _in_cells(column, lambda value: f"{value:.4g}", "<.001")


def _in_cells(column: pd.Series[Any], write: Callable[[float], str], small: str) -> pd.Series[str]:
    """Write a column: True as a mark, missing numbers as nothing, p-values with three decimals."""
    from pandas.api.types import is_bool_dtype, is_float_dtype

    if is_bool_dtype(column):
        return column.map({True: "x", False: ""})
    if not is_float_dtype(column):
        return column.astype(str)
    if re.match(r"p(_|$)", str(column.name)):

        def write(value: float) -> str:
            return small if value < 0.001 else f"{value:.3f}".removeprefix("0")

    return column.map(lambda value: "" if np.isnan(value) else write(value))


# LaTeX.

_NAMES = "checkpoint role half estimator removed order share task measure group".split()
_VALUES = (
    "corpus_examples mean difference importance loss_change removed_difference relative_drop value"
).split()
_ANSWERS = "beyond answer change direction interval".split()
_CHECKS = ("beyond_distance", "mean_trees", "top")
_UNITS = {
    **dict.fromkeys(("loss", "loss_change", "removed_difference", "loss_difference"), "nats"),
    "relative_drop": "share of the score",
}
_OF_SCORES = "mean mean_before mean_after difference beyond threshold".split()
_IN_PAPERS = {"mean_trees": "in other trees"}
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
    columns = {name: _latex_column(frame[name]) for name in frame}
    cells = frame.assign(**{str(name): cells for name, (cells, _) in columns.items()})
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
    packages = "array,booktabs,siunitx" + ",longtable" * is_long
    where = ", and \\onecolumn where the article has two" * is_long
    return f"% needs \\usepackage{{{packages}}}{where}\n{page}"


def _latex_column(column: pd.Series[Any]) -> tuple[pd.Series[str], str]:
    """Return the cells of a column, and the column as the argument of ``tabular`` has it."""
    is_p = bool(re.match(r"p(_|$)", str(column.name)))
    if column.dtype.kind not in "iuf":
        cells = _in_cells(column, str, "").map(to_latex)
        is_sentence = cells.map(len).max() > _CHARACTERS
        return cells, r">{\raggedright\arraybackslash}p{.3\linewidth}" if is_sentence else "l"
    known = column[np.isfinite(column)]
    largest = float(known.abs().max()) if len(known) else 0.0
    decimals = 3 if is_p else _decimals(column)
    cells = column.map(lambda value: _latex_number(value, decimals, is_p))
    sign, digits = "-" * bool((known < 0).any()), len(f"{largest:.{decimals}f}".split(".")[0])
    return cells, f"S[table-format={sign}{digits}.{decimals}]"


def _decimals(column: pd.Series[Any]) -> int:
    """Return the decimals that the largest number of a column needs; none if all are whole."""
    known = column[np.isfinite(column)]
    largest = float(known.abs().max()) if len(known) else 0.0
    if not largest or (known == known.round()).all():
        return 0
    return max(0, _DIGITS - 1 - floor(log10(largest)))


def _latex_number(value: float, decimals: int, is_p: bool) -> str:
    if np.isnan(value):
        return ""
    if np.isinf(value):
        return r"{$\infty$}"
    return r"{$<$.001}" if is_p and value < 0.001 else f"{value:.{decimals}f}"


def for_paper(frame: pd.DataFrame) -> pd.DataFrame:
    """Name heads in one column, and choose the columns of a long table that a paper prints.

    The columns are the head (or the removal), names, the value, the answer or interval, what is
    beyond distance, the mean in other trees, and heads that are averaged. A table without a known
    value keeps all columns.
    """
    value = next((name for name in _VALUES if name in frame), None)
    chosen = with_head_names(frame)
    if "removed" in frame:
        chosen = frame.drop(columns=["layer", "head"], errors="ignore")
    if value is None:
        return chosen
    if {"ci_low", "ci_high"} <= set(frame):
        decimals = _decimals(frame[value])
        low, high = (frame[name].map(f"{{:.{decimals}f}}".format) for name in ("ci_low", "ci_high"))
        # an empty column has no texts
        chosen = chosen.assign(interval=low.astype(str) + " to " + high.astype(str))
    telling = [name for name in chosen if len(chosen[name].unique()) > 1]
    answers = [name for name in _ANSWERS if name in telling][:1]
    names = [name for name in ("head", *_NAMES) if name in telling]
    names = names or [name for name in ("head", *_NAMES) if name in chosen][:1]
    checks = [name for name in _CHECKS if name in telling]
    return chosen[[*names[:3], value, *answers, *checks]]


def with_head_names(frame: pd.DataFrame) -> pd.DataFrame:
    """Name heads by layer and head, in one column, of a table that has both."""
    if not {"layer", "head"} <= set(frame):
        return frame
    heads = frame["layer"].astype(str) + "-" + frame["head"].astype(str)
    return frame.assign(head=heads).drop(columns="layer")


def with_units(frame: pd.DataFrame, score: str = "") -> pd.DataFrame:
    """Name roles in words, in cells and column names, and add units to column names."""
    of_score = "times uniform" if score == "bias" else score
    units = {**_UNITS, **dict.fromkeys(_OF_SCORES, of_score)}
    names = {}
    for name in frame.columns:
        words = _IN_PAPERS.get(name, in_words(name))
        if re.fullmatch("[a-z]+(_[a-z]+)+", words):
            words = words.replace("_", " ")
        names[name] = f"{words} ({units[name]})" if units.get(name) else words
    for name in {"role", "removed"} & set(frame):
        if frame[name].dtype != bool:
            frame = frame.assign(**{name: frame[name].map(in_words)})
    return frame.rename(columns=names)
