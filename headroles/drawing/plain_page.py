"""Page of any result: its answer, its tables, its origin, and a paragraph for a paper."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from headroles.drawing.head_map import HeadMap
from headroles.drawing.page import Page, Picture, Section, Table
from headroles.record import CorpusRecord, Record, RecordedModel, TaskRecord
from headroles.results.result import Result
from headroles.results.shown import SEE_FULL, Grid, Shown
from headroles.storage import plain
from headroles.wording import listed, printable

_WORKS = {
    "headroles": """@software{{headroles,
  title = {{headroles: roles of attention heads, tested}},
  author = {{{{the headroles developers}}}},
  version = {{{version}}},
  year = {{2026}}
}}""",
    "pande": """@inproceedings{pande2021heads,
  title = {The Heads Hypothesis: A Unifying Statistical Approach Towards Understanding
           Multi-Headed Attention in {BERT}},
  author = {Pande, Madhura and Budhraja, Aakriti and Nema, Preksha and Kumar, Pratyush and
            Khapra, Mitesh M.},
  booktitle = {AAAI},
  year = {2021},
  note = {arXiv 2101.09115}
}""",
    "clark": """@inproceedings{clark2019what,
  title = {What Does {BERT} Look At? An Analysis of {BERT}'s Attention},
  author = {Clark, Kevin and Khandelwal, Urvashi and Levy, Omer and Manning, Christopher D.},
  booktitle = {BlackboxNLP},
  year = {2019}
}""",
    "michel": """@inproceedings{michel2019sixteen,
  title = {Are Sixteen Heads Really Better than One?},
  author = {Michel, Paul and Levy, Omer and Neubig, Graham},
  booktitle = {NeurIPS},
  year = {2019}
}""",
}


def plain_page(
    result: Result,
    title: str = "",
    pictures: tuple[Picture, ...] = (),
    head_map: HeadMap | None = None,
    own_tables: tuple[Table, ...] = (),
    more: Sequence[Section] = (),
) -> Page:
    """Make a page of a summary and its details, with a map and pictures between if given.

    ``own_tables`` stand before those of the details; sections of ``more`` follow the details.
    """
    answer, tables = split_shown(result.summarize())
    texts, details = split_shown(result.details())
    if head_map:  # it has the rows of the frame, by head
        details = tuple(table for table in details if table.caption != "Long")
    sections = []
    if tables:
        sections.append(Section("Summary", tables=tables))
    if pictures:
        sections.append(Section("All heads", head_map=head_map, pictures=pictures))
    if texts or details:
        sections.append(Section("Details", texts=texts, tables=(*own_tables, *details)))
    sections += more
    if cautions := result.warnings:
        sections.append(Section("What to be careful about", cautions=cautions))
    return Page(
        title or result.kind,
        answer,
        (*sections, how_to_report(result), _how_made(result.record)),
    )


def split_shown(shown: Iterable[Shown]) -> tuple[tuple[str, ...], tuple[Table, ...]]:
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
            tables.append(Table.of(one, sentences.pop() if leads else one.columns[0]))
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


def how_to_report(result: Result) -> Section:
    """Return the section with a paragraph to copy, and BibTeX entries."""
    record = result.record
    sentences, works = result.method()
    paragraph = " ".join((_setting(record), *sentences))
    own = _WORKS["headroles"].format(version=record.versions.get("headroles", ""))
    return Section(
        "How to report this",
        texts=("To copy into a paper: the model, data, versions and tests of these results.",),
        copied=(paragraph, "\n".join((own, *(_WORKS[one] for one in works)))),
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
