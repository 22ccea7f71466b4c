"""How a corpus is read: the options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from headroles.corpus.columns import named_columns
from headroles.corpus.documents import NEWDOC, accept_documents
from headroles.options import Option, Options

ON_BAD_SENTENCE = ("error", "skip")
IDS = GIVEN, _ = ("given", "place")


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
class TextOptions(Options):
    """How text is read."""

    title: ClassVar[str] = "Corpus"

    lines: Annotated[
        bool, Option("Take every line of text for one sentence; else for part of a paragraph.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class PairsOptions(Options):
    """How tab-separated text is read."""

    title: ClassVar[str] = "Corpus"

    header: Annotated[
        bool | None,
        Option(
            "Whether tab-separated text has a header line; left out: yes, if it looks like one.",
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
            "Columns of tab-separated text, from 0 or by header name: one, or two for pairs.",
            convert=named_columns,
        ),
    ] = None
