"""Options of reading a corpus."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from headroles.corpus.tables import named_columns
from headroles.errors import UsageError
from headroles.options import CIRCUMSTANCE, Convert, Options

GIVEN = "given"
NEWDOC, SENT_ID, COMMENT = "newdoc", "sent_id", "comment"


def _accept_documents(given: Any) -> str:
    if not isinstance(given, str):
        raise UsageError(f"documents is {given!r}; pass a text")
    kind, _, detail = given.partition(":")
    if given in (NEWDOC, SENT_ID) or (kind == COMMENT and detail.strip()):
        return given
    if kind != SENT_ID or not detail:
        raise UsageError(
            f"documents is {given!r}; pass {NEWDOC}, {SENT_ID}, {SENT_ID}:PATTERN or {COMMENT}:KEY"
        )
    try:
        re.compile(detail)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(
            f"documents has the pattern {detail!r}, which is not a regular expression ({error}); "
            "correct it"
        ) from error
    return given


def _as_path(given: Any) -> Path:
    if not isinstance(given, str | PathLike):
        raise UsageError(f"keep_parses is {given!r}; pass the name of a file")
    return Path(given)


@dataclass(frozen=True, kw_only=True)
class ConlluOptions(Options):
    """Options of reading a treebank."""

    title: ClassVar[str] = "Corpus"

    on_bad_sentence: Literal["error", "skip"] = "error"
    """Whether defective sentences are errors or skipped."""
    documents: Annotated[str, Convert(_accept_documents)] = NEWDOC
    """Names of documents: newdoc, sent_id, sent_id:PATTERN or comment:KEY.

    newdoc: by the comments of CoNLL-U. sent_id: by the part of a sentence id before its number;
    PATTERN is a regular expression for the part that names the document. comment: by a comment KEY
    = value, which holds until the next one. Sentences are paired within documents, and documents
    are clusters of tests.
    """
    ids: Literal["given", "place"] = "given"
    """Names of sentences: given, or place for FILE-N where ids repeat.

    given: by their sent_id, or FILE-N if they have none.
    """


@dataclass(frozen=True, kw_only=True)
class ArcsOptions(Options):
    """Options of reading tokens and arcs."""

    title: ClassVar[str] = "Corpus"

    least_distance: Annotated[int, Meta(ge=1)] = 1
    """Least distance of the arcs of .jsonl files, in tokens; shorter ones are left out."""


@dataclass(frozen=True, kw_only=True)
class ParsingOptions(Options):
    """Options of parsing text."""

    title: ClassVar[str] = "Corpus"

    parser_processes: Annotated[int, Meta(ge=1), CIRCUMSTANCE] = 1
    """Number of processes that parse text."""
    keep_parses: Annotated[Path | None, Convert(_as_path), CIRCUMSTANCE] = None
    """CoNLL-U file to save parsed text in; later runs can read it instead of the text."""


@dataclass(frozen=True, kw_only=True)
class TextOptions(ParsingOptions):
    """Options of reading plain text."""

    lines: bool = False
    """Read every line of text as one sentence, not as part of a paragraph."""


@dataclass(frozen=True, kw_only=True)
class PairsOptions(ParsingOptions):
    """Options of reading tab-separated text."""

    header: bool | None = None
    """Whether tab-separated text has a header line; by default yes, if it looks like one."""
    separator: Literal["tab", "comma", "semicolon"] | None = None
    """Separator of columns; by default tab, in .csv files the one of the first line."""


@dataclass(frozen=True, kw_only=True)
class CorpusOptions(ConlluOptions, ArcsOptions, TextOptions, PairsOptions):
    """Options of reading any corpus."""

    parser: str | None = None
    """spaCy pipeline, by name or path, to parse text."""
    text_columns: Annotated[Sequence[str | int] | None, Convert(named_columns)] = None
    """Columns of a table (.tsv, .csv, .jsonl, .parquet, a data set), from 0 or by name: one, or two
    for pairs."""
