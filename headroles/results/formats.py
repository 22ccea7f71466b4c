"""Tables in the formats that people and programs read; in LaTeX as papers have them."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import TYPE_CHECKING, Any

import numpy as np

from headroles.errors import UsageError
from headroles.head_rows import ATTENTION
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
_CHECKS = "interval answer change direction replicated beyond_distance evidence top".split()
_IN_PAPERS = tuple(dict.fromkeys(("head", *NAMES, *_VALUES, *_CHECKS)))
"""Columns that papers print, in this order."""
_INTERVALS = (
    *(("beyond_distance", "beyond_low", "beyond_high"), ("mean", "ci_low", "ci_high")),
    *((name, "ci_low", "ci_high") for name in ("value", "difference", "loss_change")),
)
"""The interval that a table has in one column, the first that is there: of what, and its ends."""
_OF_SCORES = ("mean", "difference", "threshold")
_OF_LOSSES = ("loss", "loss_change", "removed_difference")
_PAGE_ROWS = 40
"""Rows of a page."""
_COLUMN, _NARROW_PAGE, _PAGE = 55, 76, 112
"""Characters of a line of footnote size: of a column of 3.3 inches, of a page with wide margins,
and of a page with two such columns."""
_GAP, _SEPARATOR, _NARROW_SEPARATOR = 1.4, "3pt", "2pt"
"""Characters between two columns, which is twice this separator."""
_LEAST, _HEADER = 9, 9
"""Characters of the narrowest column of text, and of a line of a header."""
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


@dataclass(frozen=True)
class _Column:
    """A column of a LaTeX table: its cells, their form, and how many characters wide they are.

    Texts may break into lines; then ``longest`` is their longest word, else it is the width.
    """

    name: str
    cells: pd.Series[str]
    form: str
    width: int
    longest: int

    @property
    def header(self) -> list[str]:
        """The lines of the header."""
        return textwrap.wrap(self.name, _HEADER, break_long_words=False) or [""]

    def least(self, is_upright: bool) -> int:
        """Return the fewest characters that the column needs."""
        header = 2 if is_upright else max(map(len, self.header))
        return max(header, self.longest)

    def most(self, is_upright: bool) -> int:
        """Return the characters that the column takes without breaking its texts."""
        return max(self.least(is_upright), self.width)


def latex_table(frame: pd.DataFrame, caption: str = "", label: str = "tab:headroles") -> str:
    """Return a table for articles, over pages if it is long, over both columns if it is wide.

    It fits a column of 3.3 inches where it can, and else a page of two; headers stand upright where
    that takes less. The numbers of a column have as many decimals as its largest needs; p-values
    have three.
    """
    import pandas as pd

    columns = [_latex_column(str(name), frame[name]) for name in frame]
    lines, is_upright, widths = _fit(columns)
    is_long, is_wide = len(frame) > _PAGE_ROWS, lines > _COLUMN
    forms = [
        column.form if column.most(is_upright) <= width else _paragraph(width)
        for column, width in zip(columns, widths, strict=True)
    ]
    packages = ["array", "booktabs", "siunitx"]
    if is_long:
        packages.append("longtable")
    if is_upright:
        packages.append("graphicx")
    about = ", and \\onecolumn where the article has two" if is_long else ""
    about += "; wider than a page: choose fewer columns" if lines > _PAGE else ""
    cells = pd.DataFrame({place: column.cells for place, column in enumerate(columns)})
    cells.columns = [_header(column, is_upright) for column in columns]
    page = cells.style.hide(axis="index").to_latex(
        column_format="@{}" + "".join(forms) + "@{}",
        hrules=True,
        siunitx=True,
        caption=to_latex(caption) or None,
        label=re.sub(r"[^\w:.-]", "-", label),
        position=None if is_long else "t",
        position_float=None if is_long else "centering",
        environment="longtable" if is_long else "table*" if is_wide else None,
    )
    separator = _NARROW_SEPARATOR if is_upright else _SEPARATOR
    style = f"\\footnotesize\\setlength{{\\tabcolsep}}{{{separator}}}\n"
    if is_long:  # of a longtable the whole: its style ends with a group
        page = f"{{{style}{page}}}\n"
    else:
        page = page.replace("\\begin{tabular}", f"{style}\\begin{{tabular}}", 1)
    return f"% needs \\usepackage{{{','.join(packages)}}}{about}\n{page}"


def _fit(columns: Sequence[_Column]) -> tuple[float, bool, list[int]]:
    """Return the width of the line that columns fit, whether headers stand upright, and widths.

    Where they fit none, the line is as wide as they are.
    """
    gaps = _GAP * max(0, len(columns) - 1)
    for is_upright in (False, True):
        least = sum(column.least(is_upright) for column in columns) + gaps
        for line in (_COLUMN, _NARROW_PAGE, _PAGE):
            if least <= line:
                return line, is_upright, _widths(columns, is_upright, int(line - gaps))
    return least, True, [column.least(is_upright=True) for column in columns]


def _widths(columns: Sequence[_Column], is_upright: bool, line: int) -> list[int]:
    """Share a line among columns: while it is too short, the widest text gets narrower."""
    least = [column.least(is_upright) for column in columns]
    widths = [column.most(is_upright) for column in columns]
    while sum(widths) > line:
        spare = [width - low for width, low in zip(widths, least, strict=True)]
        widths[spare.index(max(spare))] -= 1
    return widths


def _paragraph(width: int) -> str:
    """Return the form of a column of texts that break into lines."""
    return rf">{{\raggedright\arraybackslash}}p{{{width / 2:g}em}}"


def _header(column: _Column, is_upright: bool) -> str:
    """Return the header of a column, in lines or upright."""
    if is_upright and len(column.name) > column.most(is_upright):
        return rf"\rotatebox{{90}}{{{to_latex(column.name)}}}"
    lines = [to_latex(line) for line in column.header]
    if len(lines) == 1:
        return lines[0]
    side = "r" if column.form.startswith("S") or column.form == "r" else "l"
    text = r"\\".join(lines)
    return rf"\shortstack[{side}]{{{text}}}"


def _latex_column(name: str, column: pd.Series[Any]) -> _Column:
    """Make a column: numbers are aligned by their digits."""
    if column.dtype.kind not in "iuf":
        texts = readable(column)
        width = int(texts.map(len).max()) if len(texts) else 0
        words = max((len(word) for text in texts for word in text.split()), default=0)
        is_interval = bool(len(texts)) and all(map(_BRACKETS.fullmatch, texts))
        cells = texts.map(to_latex)
        if is_interval or width <= _LEAST:
            return _Column(name, cells, "r" if is_interval else "l", width, width)
        return _Column(name, cells, "l", width, max(words, _LEAST))
    numbers = column[np.isfinite(column)]
    largest = float(numbers.abs().max()) if len(numbers) else 0.0
    decimals = 3 if _is_p(column) else _decimals(column)
    cells = column.map(f"{{:.{decimals}f}}".format).replace({"nan": "", "inf": r"{$\infty$}"})
    if _is_p(column):
        cells = cells.mask(column < 0.001, "{$<$.001}")
    sign, digits = (
        ("-" if (numbers < 0).any() else ""),
        len(f"{largest:.{decimals}f}".split(".")[0]),
    )
    width = len(sign) + digits + (decimals and 1 + decimals)
    return _Column(name, cells, f"S[table-format={sign}{digits}.{decimals}]", width, width)


def _decimals(column: pd.Series[Any]) -> int:
    """Return the decimals of a column, of which its largest number needs three digits."""
    numbers = column[np.isfinite(column)]
    if (numbers == numbers.round()).all():
        return 0
    return max(0, _DIGITS - 1 - floor(log10(float(numbers.abs().max()))))


_BRACKETS = re.compile(r"|\[-?[\d.]+, -?[\d.]+\]")


def strongest_first(frame: pd.DataFrame) -> pd.DataFrame:
    """Sort heads by their attention beyond distance, where it is known of any."""
    if "beyond_distance" not in frame or not frame["beyond_distance"].notna().any():
        return frame
    return frame.sort_values("beyond_distance", ascending=False, kind="stable")


def for_paper(frame: pd.DataFrame) -> pd.DataFrame:
    """Name heads in one column, and choose the columns of a long table that a paper prints.

    They are names, values, answers or else intervals, and checks, where these tell rows apart. A
    table without any of ``_VALUES`` keeps all columns.
    """
    table = with_head_names(frame)
    if not {*table} & {*_VALUES}:
        return table
    if "answer" not in table or len(table["answer"].unique()) == 1:  # answers say it shorter
        table = with_interval(table)
    chosen = [name for name in _IN_PAPERS if name in table]
    if "removed" in chosen and "head" in chosen:  # a head that was removed is named by both
        chosen.remove("head")
    chosen = [name for name in chosen if len(table) < 2 or len(table[name].unique()) > 1]
    if "beyond_distance" in chosen and "interval" in chosen:  # which is about it
        chosen.remove("interval")
        chosen.insert(chosen.index("beyond_distance") + 1, "its_interval")
        table = table.rename(columns={"interval": "its_interval"})
    return table[chosen]


def with_interval(frame: pd.DataFrame) -> pd.DataFrame:
    """Write the interval of what goes beyond distance, or else of the mean, into one column.

    Its ends have as many decimals as what it is of.
    """
    import pandas as pd

    for names in _INTERVALS:
        if not {*names} <= {*frame} or not frame[names[1]].notna().any():
            continue
        decimals, ends = _decimals(frame[names[0]]), frame[[*names[1:]]].to_numpy(dtype=float)
        texts = [
            "" if np.isnan([low, high]).any() else f"[{low:.{decimals}f}, {high:.{decimals}f}]"
            for low, high in ends
        ]
        return frame.assign(interval=pd.Series(texts, index=frame.index, dtype=object))
    return frame


def with_head_names(frame: pd.DataFrame) -> pd.DataFrame:
    """Name heads by layer and head, in one column, of a table that has both."""
    if not {"layer", "head"} <= set(frame):
        return frame
    heads = frame["layer"].astype(str) + "-" + frame["head"].astype(str)
    if ATTENTION in frame:
        heads = (frame[ATTENTION] + " " + heads).str.lstrip()
    return frame.assign(head=heads).drop(columns=["layer", ATTENTION], errors="ignore")


def with_units(frame: pd.DataFrame, score: str, in_words: Callable[[object], str]) -> pd.DataFrame:
    """Name roles ``in_words``, in cells and column names, and add units to column names."""
    unit = " (times uniform)" if score == "bias" else (f" ({score})" if score else "")
    units = {**dict.fromkeys(_OF_SCORES, unit), **dict.fromkeys(_OF_LOSSES, " (nats)")}
    for name in {"role", "removed"} & set(frame):
        if frame[name].dtype != bool:
            frame = frame.assign(**{name: frame[name].map(in_words)})
    names = {name: in_words(name) for name in frame.columns}
    return frame.rename(
        columns={
            name: re.sub("(?<=[a-z])_(?=[a-z])", " ", words) + units.get(name, "")
            for name, words in names.items()
        }
    )
