"""How a corpus is read: the options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, ClassVar

from headroles.corpus.columns import named_columns
from headroles.corpus.documents import NEWDOC, accept_documents
from headroles.corpus.rows import SEPARATORS
from headroles.errors import UsageError
from headroles.options import Option, Options

ON_BAD_SENTENCE = ("error", "skip")
IDS = GIVEN, _ = ("given", "place")


def _as_path(given: Any) -> Path:
    if not isinstance(given, str | PathLike):
        raise UsageError(f"keep_parses is {given!r}; it must be the name of a file")
    return Path(given)


@dataclass(frozen=True, kw_only=True)
class ConlluOptions(Options):
    """How a treebank is read."""

    title: ClassVar[str] = "Corpus"

    on_bad_sentence: Annotated[
        str, Option("What becomes of defective sentences.", choices=ON_BAD_SENTENCE)
    ] = "error"
    documents: Annotated[
        str,
        Option(
            "What tells documents apart: newdoc, sent_id, sent_id:PATTERN or comment:KEY.",
            more="newdoc: its comments, as CoNLL-U has them. sent_id: what stands in the id of a "
            "sentence before its number; PATTERN is a regular expression for the part that names "
            "the document. comment: a comment KEY = value, which holds until there is another. "
            "Sentences are paired within documents, and documents are clusters of tests.",
            convert=accept_documents,
        ),
    ] = NEWDOC
    ids: Annotated[
        str,
        Option(
            "What sentences are called: given, or place for FILE-N where ids repeat.",
            more="given: by their sent_id, or FILE-N if they have none.",
            choices=IDS,
        ),
    ] = GIVEN


@dataclass(frozen=True, kw_only=True)
class ParsingOptions(Options):
    """How text is parsed."""

    title: ClassVar[str] = "Corpus"

    parser_processes: Annotated[
        int, Option("Number of processes that parse text.", least=1, recorded=False)
    ] = 1
    keep_parses: Annotated[
        Path | None,
        Option(
            "CoNLL-U file to keep parsed text in; it can be given in the place of the text.",
            convert=_as_path,
            recorded=False,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class TextOptions(ParsingOptions):
    """How text is read."""

    title: ClassVar[str] = "Corpus"

    lines: Annotated[
        bool, Option("Take every line of text for one sentence; else for part of a paragraph.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class PairsOptions(ParsingOptions):
    """How tab-separated text is read."""

    title: ClassVar[str] = "Corpus"

    header: Annotated[
        bool | None,
        Option(
            "Whether tab-separated text has a header line; left out: yes, if it looks like one.",
        ),
    ] = None
    separator: Annotated[
        str | None,
        Option(
            "What separates columns of text; left out: tab, in .csv files as the first line says.",
            words="the separator",
            choices=SEPARATORS,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class CorpusOptions(ConlluOptions, TextOptions, PairsOptions):
    """How any corpus is read."""

    title: ClassVar[str] = "Corpus"

    parser: Annotated[str | None, Option("spaCy pipeline, by name or path, to parse text.")] = None
    text_columns: Annotated[
        Sequence[str | int] | None,
        Option(
            "Columns of a table (.tsv, .csv, .jsonl, .parquet, a data set), from 0 or by name: "
            "one, or two for pairs.",
            convert=named_columns,
        ),
    ] = None
