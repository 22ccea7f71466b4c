"""Options of reading a corpus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, ClassVar

from headroles.corpus.documents import NEWDOC, accept_documents
from headroles.corpus.table_files import SEPARATORS, named_columns
from headroles.errors import UsageError
from headroles.options import Option, Options

ON_BAD_SENTENCE = ("error", "skip")
IDS = GIVEN, _ = ("given", "place")


def _as_path(given: Any) -> Path:
    if not isinstance(given, str | PathLike):
        raise UsageError(f"keep_parses is {given!r}; pass the name of a file")
    return Path(given)


@dataclass(frozen=True, kw_only=True)
class ConlluOptions(Options):
    """Options of reading a treebank."""

    title: ClassVar[str] = "Corpus"

    on_bad_sentence: Annotated[
        str, Option("Whether defective sentences are errors or skipped.", choices=ON_BAD_SENTENCE)
    ] = "error"
    documents: Annotated[
        str,
        Option(
            "Names of documents: newdoc, sent_id, sent_id:PATTERN or comment:KEY.",
            more="newdoc: by the comments of CoNLL-U. sent_id: by the part of a sentence id before "
            "its number; PATTERN is a regular expression for the part that names the document. "
            "comment: by a comment KEY = value, which holds until the next one. "
            "Sentences are paired within documents, and documents are clusters of tests.",
            convert=accept_documents,
        ),
    ] = NEWDOC
    ids: Annotated[
        str,
        Option(
            "Names of sentences: given, or place for FILE-N where ids repeat.",
            more="given: by their sent_id, or FILE-N if they have none.",
            choices=IDS,
        ),
    ] = GIVEN


@dataclass(frozen=True, kw_only=True)
class ParsingOptions(Options):
    """Options of parsing text."""

    title: ClassVar[str] = "Corpus"

    parser_processes: Annotated[
        int, Option("Number of processes that parse text.", least=1, recorded=False)
    ] = 1
    keep_parses: Annotated[
        Path | None,
        Option(
            "CoNLL-U file to save parsed text in; later runs can read it instead of the text.",
            convert=_as_path,
            recorded=False,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class TextOptions(ParsingOptions):
    """Options of reading plain text."""

    lines: Annotated[
        bool, Option("Read every line of text as one sentence, not as part of a paragraph.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class PairsOptions(ParsingOptions):
    """Options of reading tab-separated text."""

    header: Annotated[
        bool | None,
        Option(
            "Whether tab-separated text has a header line; by default yes, if it looks like one.",
        ),
    ] = None
    separator: Annotated[
        str | None,
        Option(
            "Separator of columns; by default tab, in .csv files the one of the first line.",
            words="the separator",
            choices=SEPARATORS,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class CorpusOptions(ConlluOptions, TextOptions, PairsOptions):
    """Options of reading any corpus."""

    parser: Annotated[str | None, Option("spaCy pipeline, by name or path, to parse text.")] = None
    text_columns: Annotated[
        Sequence[str | int] | None,
        Option(
            "Columns of a table (.tsv, .csv, .jsonl, .parquet, a data set), from 0 or by name: "
            "one, or two for pairs.",
            convert=named_columns,
        ),
    ] = None
