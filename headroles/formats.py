"""Export of result tables to the formats that people and programs read."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from headroles.errors import UsageError
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
            table = written.to_html(index=False, border=0)
            return _PAGE.format(style=_STYLE, table=table).encode()
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
    if isinstance(record, Mapping):
        return {
            name: _without_circumstances(value)
            for name, value in record.items()
            if name not in _CIRCUMSTANCES
        }
    return record


_CIRCUMSTANCES = ("created", "command")


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


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>headroles</title>
<style>{style}</style>
</head>
<body>
{table}
</body>
</html>
"""
_STYLE = """
body { font: 14px/1.4 system-ui, sans-serif; margin: 1.5em; color: #1a1a1a; background: #fff; }
table { border-collapse: collapse; }
th { position: sticky; top: 0; background: #f2f2f2; text-align: left; }
th, td { padding: .2em .7em; border-bottom: 1px solid #ddd; white-space: nowrap; }
td { font-variant-numeric: tabular-nums; }
tbody tr:hover { background: #f7f7f7; }
"""


_FORMULA = re.compile(r"[=@\t\r]|[-+](?!$)")
"""Beginning of a text that a spreadsheet would take for a formula."""


def readable(column: pd.Series[Any]) -> pd.Series[Any]:
    """Write the values of a column for people: four significant digits, marks, p-values."""
    from pandas.api.types import is_bool_dtype, is_float_dtype

    if is_bool_dtype(column):
        return column.map({True: "x", False: ""})
    if is_float_dtype(column):
        is_p = re.match(r"p(_|$)", str(column.name))
        return column.map(lambda value: "" if np.isnan(value) else _in_digits(value, bool(is_p)))
    return column.astype(str)


def _in_digits(value: float, is_p: bool) -> str:
    """Write a number with four significant digits; a p-value as papers do, from .001 on."""
    if not is_p:
        return f"{value:.4g}"
    return "<.001" if value < 0.001 else f"{value:.3f}".removeprefix("0")
