"""Pages as HTML: an answer, a map of all heads, and sections with pictures, tables, sentences.

Without scripts the pictures of a page replace its map.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headroles.drawing.saving import to_svg
from headroles.record import Record, RecordedModel
from headroles.results.shown import Grid, Shown, Title, Verbatim, Warned, without_pointers
from headroles.storage import plain
from headroles.wording import addressed, listed, numbered, printable, printable_lines

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from headroles.results.result import AnyResult

_LONG = 28
"""Characters of a cell beyond which it is a sentence, which may break into lines."""
_UD = "https://github.com/UniversalDependencies/"
_SCRIPTS = ("tables.js", "head_map.js")
_MOST_CELLS = 40_000
"""Cells of all views; with as many the page stays below 2 MB."""
_ABOUT = ["words", "group", "unit", "line"]


@dataclass(frozen=True)
class Picture:
    """A figure and its caption."""

    figure: Figure
    caption: str


@dataclass(frozen=True)
class Quoted:
    """A sentence with the attention of a head.

    ``keys`` are indices of the words in the sieve, ``arcs`` are (query, key, weight, whether the
    role has it); the weight is NaN without a model.
    """

    score: str
    words: tuple[str, ...]
    keys: tuple[int, ...] = ()
    arcs: tuple[tuple[int, int, float, bool], ...] = ()

    @property
    def arcs_in_words(self) -> tuple[tuple[bool, str], ...]:
        """The arcs in words, each with whether it is of the role."""
        return tuple(
            (is_own, f"{self.words[query]} → {self.words[key]} {weight:.2f}".removesuffix(" nan"))
            for query, key, weight, is_own in self.arcs
        )

    @property
    def data(self) -> str:
        """The arcs for the script."""
        arcs = [
            (query, key, None if np.isnan(weight) else round(weight, 2), int(is_own))
            for query, key, weight, is_own in self.arcs
        ]
        return json.dumps(arcs, separators=(",", ":"))


@dataclass(frozen=True)
class Sentences:
    """Sentences of a head and a role, under a title, which the map shows with the ``head``."""

    title: str
    text: str
    head: str
    quoted: tuple[Quoted, ...]


class Copied(str):
    """A text to copy."""

    __slots__ = ()


Part = Shown | Picture | Sentences
"""Part of a section."""


@dataclass(frozen=True)
class Section:
    """A part of the page under its title, folded unless it is open."""

    title: str
    parts: tuple[Part, ...]
    is_open: bool = False


@dataclass(frozen=True)
class HeadMap:
    """A map of all heads with its views, the first of which is shown first; a script draws it.

    Args:
        title: description of the map for screen readers.
        value: name of the values.
        frame: a row for each view, layer and head. ``view`` is the id of a view, as a role;
            ``words``, ``group`` and ``unit`` describe it, and ``line`` is its threshold. ``value``
            colours the map, and ``mark`` is a sign of the legend.
        facts: the columns of other numbers and texts of a head by their names; two columns are a
            range, or the values before and after.
        legend: signs, their meaning, and the look of their cells: full, pale, hatched or framed.
        low: the value that is white; None for signed values, with 0 in the middle of the scale.
    """

    title: str
    value: str
    frame: pd.DataFrame
    facts: Mapping[str, tuple[str, ...]]
    legend: tuple[tuple[str, str, str], ...]
    low: float | None = None

    def to_json(self) -> str:
        """Return the data of the script as JSON that can stand in an HTML document."""
        import pandas as pd

        layers, heads = (int(self.frame[name].max()) + 1 for name in ("layer", "head"))
        all_heads = pd.MultiIndex.from_product([range(layers), range(heads)])
        frames = list(self.frame.groupby("view", sort=False))
        views = [
            {
                **rows.iloc[0][_ABOUT].to_dict(),
                "values": _column(cells["value"]),
                "marks": _column(cells["mark"].fillna("")),
                "facts": [
                    [name, *(_column(cells[column]) for column in columns)]
                    for name, columns in self.facts.items()
                    if cells[[*columns]].notna().any(axis=None)
                ],
            }
            for _, rows in frames[: max(1, _MOST_CELLS // len(all_heads))]
            for cells in [rows.set_index(["layer", "head"]).reindex(all_heads)]
        ]
        record = {
            **{name: getattr(self, name) for name in ("title", "value", "legend", "low")},
            "layers": layers,
            "heads": heads,
            "views": views,
        }
        text = json.dumps(_plain(record), separators=(",", ":"), allow_nan=False)
        for sign in "<>&":  # so that no word ends the element that holds the data
            text = text.replace(sign, f"\\u{ord(sign):04x}")
        return text


def _column(cells: pd.Series[Any]) -> list[Any] | dict[str, Any]:
    """Return numbers of three digits, or texts by their numbers in a list of them."""
    if cells.dtype.kind in "iuf":
        return [float(f"{value:.3g}") if value - value == 0 else None for value in cells]
    numbers, texts = cells.fillna("").astype(str).factorize()
    return {"texts": list(texts), "at": numbers.tolist()}


def _plain(content: Any) -> Any:
    """Return the content with printable texts."""
    if isinstance(content, str):
        return printable(content)
    if isinstance(content, dict):
        return {name: _plain(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(part) for part in content]
    return content


@dataclass(frozen=True)
class Page:
    """The question as ``title``, the ``answer`` in sentences, a map, and sections of evidence."""

    title: str
    answer: tuple[str, ...]
    sections: tuple[Section, ...]
    head_map: HeadMap | None = None

    def to_html(self) -> str:
        """Return the page as one HTML document that loads nothing; everything in it is escaped."""
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup

        def without_control_characters(value: object) -> object:
            is_text = isinstance(value, str) and not isinstance(value, Markup)
            return printable_lines(str(value)) if is_text else value

        held = files(__package__)
        template, style = ((held / f"page.{kind}").read_text("utf-8") for kind in ("html", "css"))
        script = "".join((held / name).read_text("utf-8") for name in _SCRIPTS)
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        environment = Environment(
            autoescape=True,
            finalize=without_control_characters,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        # Only the script, the style and the drawings of this package are markup.
        return environment.from_string(template).render(
            page=self,
            data=self.head_map and Markup(self.head_map.to_json()),  # noqa: S704
            kind=_kind,
            texts=_texts,
            drawn=lambda part, name: Markup(to_svg(part.figure, name, part.caption)),  # noqa: S704
            style=Markup(style),  # noqa: S704
            script=Markup(script),  # noqa: S704
            script_digest=digest,
        )


def _kind(part: Part) -> str:
    """Name the kind of a part, for the template."""
    return "str" if isinstance(part, Verbatim) else type(part).__name__


def _texts(grid: Grid) -> set[int]:
    """Return the columns that hold sentences, and no numbers or names."""
    columns = range(1, len(grid.columns))
    return {place for place in columns if any(len(row[place]) > _LONG for row in grid.rows)}


# The page of a result.


def plain_page(
    result: AnyResult,
    title: str = "",
    pictures: Sequence[Picture] = (),
    head_map: HeadMap | None = None,
    answer: Sequence[str] = (),
    more: Sequence[Section] = (),
) -> Page:
    """Make a page of a result: the ``answer``, a map if given, and what the result says of itself.

    Without an ``answer``, it is made of the sentences of the summary. Sections of ``more`` follow
    the summary.
    """
    summary, details = _parts(result.summarize()), _parts(result.details())
    said = tuple(answer) or tuple(str(part) for part in summary if _kind(part) == "str")
    summary = tuple(part for part in summary if part not in said)
    details = tuple(part for part in details if part != addressed(" ".join(result.method()[0])))
    if head_map and Title("Long") in details:  # the last table, whose rows the map has by head
        details = details[: details.index(Title("Long"))]
    sections = (
        Section("Summary", summary, is_open=True),
        Section("What to be careful about", tuple(map(Warned, result.warnings)), is_open=True),
        *more,
        Section("Pictures", tuple(pictures), is_open=not head_map),
        Section("Details", details, is_open=not head_map),
        _how_to_report(result),
        _how_made(result.record),
    )
    shown = tuple(section for section in sections if section.parts)
    return Page(title or result.kind, said, shown, head_map)


def _parts(shown: Iterable[Shown]) -> tuple[Part, ...]:
    """Return parts without warnings, and without sentences that point to the full text."""
    return tuple(
        _stripped(part) if isinstance(part, str) else part
        for part in without_pointers(shown)
        if not isinstance(part, Warned) and part != ""
    )


def _stripped(text: str) -> str:
    """Strip a text, which keeps its kind; names of options are addressed to the reader."""
    kind = type(text)
    return kind(text.strip() if isinstance(text, Verbatim) else addressed(text.strip()))


def _how_made(record: Record) -> Section:
    """Return the section with the origin of a result, as its record has it."""
    sources = list(record.sources.values())
    first = sources[0] if len(sources) == 1 else record
    pieces = {
        **plain(record.models),
        "corpus": plain(first.corpus),
        "task": plain(first.task) if first.task.file else {},
        "options": {**first.options, **record.options},
        "versions": record.versions,
    }
    rows = tuple((name, _written(piece)) for name, piece in pieces.items() if piece)
    parts: list[Part] = [Grid(("record", f"of {record.created}"), rows)]
    if command := record.command:
        parts += ["To run it again:", Copied(shlex.join(["headroles", *command[1:]]))]
    return Section("How it was made", tuple(parts))


def _written(value: Any) -> str:
    """Write a piece of a record as text, without empty values; of a list with some, as a dash."""
    if isinstance(value, dict):
        texts = {name: _written(part) for name, part in value.items()}
        return "; ".join(f"{name}: {text}" for name, text in texts.items() if text)
    if isinstance(value, list):
        items = [_written(part) for part in value]
        return ", ".join(text or "-" for text in items) if any(items) else ""
    return "" if value is None else printable(value)


def _how_to_report(result: AnyResult) -> Section:
    """Return the section with a paragraph and BibTeX entries to copy, and what was found."""
    sentences, works = result.method()
    entries = (files(__package__) / "works.bib").read_text("utf-8").strip().split("\n\n")
    version = result.record.versions.get("headroles", "")
    treebank = treebank_of(result.record.files)
    keys = ["headroles", *works]
    if treebank:
        keys += ["marneffe", "treebank"]
    cited = [entry for entry in entries for name in keys if f"{{{name}" in entry]
    parts: list[Part] = [
        "To copy into a paper: the model, data, versions and tests of these results.",
        Copied(" ".join((_setting(result.record), *sentences))),
        Copied("\n\n".join(cited).replace("VERSION", version).replace("TREEBANK", treebank)),
    ]
    if finding := result.finding():
        parts += ["For the section of results:", Copied(finding)]
    return Section("How to report this", tuple(parts))


def _setting(record: Record) -> str:
    """Name the program, the model and the data."""
    versions = record.versions
    packages = ("transformers", "torch", "python")
    with_versions = ", ".join(f"{name} {versions[name]}" for name in packages if name in versions)
    models = list(map(_model, record.models.values())) or [_model(RecordedModel())]
    return (
        f"With headroles {versions.get('headroles', '')} ({with_versions}) we analysed the "
        f"attention heads of {' and '.join(dict.fromkeys(models))}{_data(record)}."
    )


def _model(model: RecordedModel) -> str:
    parts = [model.family, f"revision {model.revision}" if model.revision else ""]
    parts.append(f"weights SHA-256 {model.weights_sha256[:12]}" if model.weights_sha256 else "")
    details = ", ".join(filter(None, parts))
    return printable(model.name) + (f" ({details})" if details else "")


def _data(record: Record) -> str:
    """Name the data, and a treebank of Universal Dependencies with its address."""
    first = next(iter(record.sources.values()), record)
    if first.task.file:
        return f" on {printable(Path(first.task.file).name)}"
    if first.is_by_hand:
        return ""
    corpus = first.corpus
    files = listed([Path(name).name for name in corpus.files]) or "a corpus in memory"
    from_treebank = ""
    if treebank := treebank_of(corpus.files):
        from_treebank = (
            f" of {treebank} (Universal Dependencies; de Marneffe et al., 2021; {_UD}{treebank})"
        )
    return (
        f" on {numbered(corpus.sentences, 'sentence')} of {files}{from_treebank} "
        f"({numbered(corpus.documents, 'document')}, SHA-256 {corpus.digest[:12]})"
    )


def treebank_of(names: Sequence[str]) -> str:
    """Return the treebank of Universal Dependencies that files are of, by their folder."""
    treebanks = {match[0] if (match := re.search(r"UD_\w+-\w+", name)) else "" for name in names}
    return treebanks.pop() if len(treebanks) == 1 else ""
