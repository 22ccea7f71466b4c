"""Pages: sections of texts, pictures, tables and sentences as one HTML file; that of a result."""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headroles.drawing.head_map import HeadMap, Quoted
from headroles.drawing.style import to_svg
from headroles.record import CorpusRecord, Record, RecordedModel, TaskRecord
from headroles.results.shown import SEE_FULL, Grid, Shown
from headroles.storage import plain
from headroles.wording import listed, printable, printable_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headroles.results.result import Result

_LONG = 28  # characters


@dataclass(frozen=True)
class Picture:
    """Figures side by side, and their caption."""

    figures: tuple[Figure, ...]
    caption: str


@dataclass(frozen=True)
class Table:
    """Rows of text under names of columns; the first cell of a row is its name."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @cached_property
    def texts(self) -> frozenset[int]:
        """Columns that hold sentences, and no numbers or names: they may break into lines."""
        return frozenset(
            place
            for place in range(1, len(self.columns))
            if any(len(row[place]) > _LONG for row in self.rows)
        )


@dataclass(frozen=True)
class Group:
    """Text about one head, with sentences."""

    title: str
    text: str
    sentences: tuple[Quoted, ...] = ()


@dataclass(frozen=True)
class Section:
    """A part of the page under its title; empty fields are not shown.

    With scripts the ``head_map`` stands before the pictures, which are then folded. ``copied`` are
    texts to copy into a paper.
    """

    title: str
    texts: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    head_map: HeadMap | None = None
    pictures: tuple[Picture, ...] = ()
    tables: tuple[Table, ...] = ()
    groups: tuple[Group, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    copied: tuple[str, ...] = ()
    command: str = ""


@dataclass(frozen=True)
class Page:
    """The question as ``title``, the ``answer`` in sentences, and sections of evidence."""

    title: str
    answer: tuple[str, ...]
    sections: tuple[Section, ...]

    def to_html(self) -> str:
        """Return the page as one HTML document that loads nothing; everything in it is escaped."""
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup

        held = files(__package__)
        template, style = (held / "page.html").read_text(), (held / "page.css").read_text()
        script = "".join((held / name).read_text("utf-8") for name in _SCRIPTS)
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        environment = Environment(
            autoescape=True,
            finalize=lambda value: printable_lines(value) if type(value) is str else value,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        # Only the script, the style and the drawings of this package are markup.
        return environment.from_string(template).render(
            page=self._drawn(),
            style=Markup(style),  # noqa: S704
            script=Markup(script),  # noqa: S704
            script_digest=digest,
        )

    def _drawn(self) -> dict[str, object]:
        """Return the page with its figures drawn."""
        from markupsafe import Markup

        sections = []
        for k, section in enumerate(self.sections):
            pictures = [
                {
                    "caption": one.caption,
                    "drawings": [
                        Markup(to_svg(figure, f"f{k}-{n}-{m}", _description(figure, one)))  # noqa: S704
                        for m, figure in enumerate(one.figures)
                    ],
                }
                for n, one in enumerate(section.pictures)
            ]
            data = section.head_map and Markup(section.head_map.to_json())  # noqa: S704
            sections.append({**vars(section), "pictures": pictures, "data": data})
        return {"title": self.title, "answer": self.answer, "sections": sections}


def _description(figure: Figure, picture: Picture) -> str:
    """Describe a figure for screen readers: by its title if the picture has several figures."""
    titles = [ax.get_title() for ax in figure.axes if ax.get_title()]
    return picture.caption if len(picture.figures) == 1 or not titles else titles[0]


_SCRIPTS = ("tables.js", "head_map.js")


# The page of a result.


def plain_page(
    result: Result,
    title: str = "",
    pictures: tuple[Picture, ...] = (),
    head_map: HeadMap | None = None,
    more: Sequence[Section] = (),
) -> Page:
    """Make a page of a summary and its details, with a map and pictures between if given.

    Sections of ``more`` follow the details.
    """
    answer, tables = _split_shown(result.summarize())
    texts, details = _split_shown(result.details())
    if head_map:  # it has the rows of the frame, by head
        details = tuple(table for table in details if table.caption != "Long")
    sections = []
    if tables:
        sections.append(Section("Summary", tables=tables))
    if pictures:
        sections.append(Section("All heads", head_map=head_map, pictures=pictures))
    if texts or details:
        sections.append(Section("Details", texts=texts, tables=details))
    sections += more
    if cautions := result.warnings:
        sections.append(Section("What to be careful about", cautions=cautions))
    return Page(
        title or result.kind,
        answer,
        (*sections, _how_to_report(result), _how_made(result.record)),
    )


def _split_shown(shown: Iterable[Shown]) -> tuple[tuple[str, ...], tuple[Table, ...]]:
    """Split sentences from tables; a title that stands before a table becomes its caption.

    Sentences that point to the full text are omitted: the page has the full text.
    """
    sentences: list[str] = []
    tables: list[Table] = []
    before: Shown = ""
    for one in shown:
        if isinstance(one, str) and not one.endswith(SEE_FULL):
            sentences.append(one.strip())
        elif isinstance(one, Grid):
            line = before.strip() if isinstance(before, str) else ""
            leads = line and "\n" not in line and not line.endswith(".")
            caption = sentences.pop() if leads else one.columns[0]
            tables.append(Table(caption, one.columns, one.rows))
        before = one
    return tuple(sentences), tuple(tables)


def _how_made(record: Record) -> Section:
    command = record.command
    return Section(
        "How it was made",
        facts=tuple(_facts(record)),
        command=printable(shlex.join(["headroles", *command[1:]])) if command else "",
    )


def _facts(record: Record) -> Iterator[tuple[str, str]]:
    sources = list(record.sources.values())
    first = sources[0] if len(sources) == 1 else record
    pieces = {
        **plain(record.models),
        **{name: plain(getattr(first, name, None)) for name in _OF_SOURCE},
        **{name: plain(getattr(record, name, None)) for name in _PIECES},
    }
    for name, piece in pieces.items():
        if piece and (text := _written(piece)):
            yield name, text


def _written(value: Any) -> str:
    """Write a record as text, without empty values and without fields of other sections."""
    if isinstance(value, dict):
        given = {k: v for k, v in value.items() if k not in _ELSEWHERE and v not in _EMPTY}
        return "; ".join(f"{name}: {_written(one)}" for name, one in given.items())
    if isinstance(value, list):
        return ", ".join(map(_written, value))
    return printable(value)


_OF_SOURCE = ("corpus", "examples", "skipped")
_PIECES = ("options", "tests", "plan", "versions", "created")
_EMPTY: tuple[Any, ...] = (None, "", [], {})
_ELSEWHERE = ("warnings", "left_out")


def _how_to_report(result: Result) -> Section:
    """Return the section with a paragraph to copy, and BibTeX entries."""
    sentences, works = result.method()
    entries = (files(__package__) / "works.bib").read_text("utf-8").strip().split("\n\n")
    version = result.record.versions.get("headroles", "")
    cited = [one for one in entries for name in ("headroles", *works) if f"{{{name}" in one]
    return Section(
        "How to report this",
        texts=("To copy into a paper: the model, data, versions and tests of these results.",),
        copied=(
            " ".join((_setting(result.record), *sentences)),
            "\n".join(cited).replace("VERSION", version),
        ),
    )


def _setting(record: Record) -> str:
    """Name the program, the model and the data."""
    versions = record.versions
    named = ("transformers", "torch", "python")
    with_versions = ", ".join(f"{one} {versions[one]}" for one in named if one in versions)
    models = list(map(_model, record.models.values())) or [_model(RecordedModel())]
    return (
        f"With headroles {versions.get('headroles', '')} ({with_versions}) we analysed the "
        f"attention heads of {' and '.join(dict.fromkeys(models))}{_data(record)}."
    )


def _model(model: RecordedModel) -> str:
    parts = [model.family, f"revision {model.revision}" if model.revision else ""]
    parts.append(f"weights SHA-256 {model.weights_sha256[:12]}" if model.weights_sha256 else "")
    known = ", ".join(filter(None, parts))
    return printable(model.name) + (f" ({known})" if known else "")


def _data(record: Record) -> str:
    first = next(iter(record.sources.values()), record)
    if isinstance(first, TaskRecord):
        return f" on {printable(Path(first.corpus.file).name)}"
    if not isinstance(first, CorpusRecord) or first.is_by_hand:
        return ""
    corpus = first.corpus
    files = listed([Path(name).name for name in corpus.files]) or "a corpus in memory"
    return (
        f" on {corpus.sentences} sentences of {files} ({corpus.documents} documents, "
        f"SHA-256 {corpus.digest[:12]})"
    )
