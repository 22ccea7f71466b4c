"""How a corpus is read: the options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from headroles.options import Option, Options, split_names

ON_BAD_SENTENCE = ("error", "skip")


def _columns(given: Any) -> tuple[str | int, ...]:
    return tuple(int(name) if name.isdecimal() else name for name in split_names(given))


@dataclass(frozen=True, kw_only=True)
class ConlluOptions(Options):
    """How a treebank is read."""

    title: ClassVar[str] = "Corpus"

    on_bad_sentence: Annotated[
        str, Option("What becomes of defective sentences.", choices=ON_BAD_SENTENCE)
    ] = "error"


@dataclass(frozen=True, kw_only=True)
class PairsOptions(Options):
    """How tab-separated text is read."""

    title: ClassVar[str] = "Corpus"

    header: Annotated[bool, Option("Whether tab-separated text has a header line.")] = True


@dataclass(frozen=True, kw_only=True)
class CorpusOptions(ConlluOptions, PairsOptions):
    """How any corpus is read."""

    title: ClassVar[str] = "Corpus"

    parser: Annotated[str | None, Option("spaCy pipeline, by name or path, to parse text.")] = None
    text_columns: Annotated[
        Sequence[str | int] | None,
        Option(
            "Columns of tab-separated text, from 0 or by header name: one, or two for pairs.",
            convert=_columns,
        ),
    ] = None
