"""Opening of corpora of every kind from paths and options."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, cast

from headroles.corpus import bitext
from headroles.corpus.arcs import KEY as ARCS_KEY
from headroles.corpus.arcs import ArcsOptions, read_arcs
from headroles.corpus.bitext import BitextOptions
from headroles.corpus.files import STANDARD_INPUT, PathLike, is_dataset, kind_of
from headroles.corpus.objects import make_corpus
from headroles.corpus.sentence import Corpus, Sentence
from headroles.corpus.tables import TABLES, named_columns
from headroles.corpus.text import PairsOptions, ParsingOptions, TextOptions, read_pairs, read_text
from headroles.corpus.treebanks import NEWDOC, SUFFIXES, ConlluOptions, is_quick, read_conllu
from headroles.errors import CorpusError, UsageError
from headroles.options import Convert, Options, fields_of
from headroles.record import RecordedCorpus
from headroles.wording import shortened

if TYPE_CHECKING:
    import pandas as pd
    from spacy.tokens import Doc

_TEXTS = {".txt", ".md", ".rst", ".html"}


@dataclass(frozen=True)
class Format:
    """Files that hold sentences with their arcs, in place of text to be parsed.

    ``key`` names it in records, and ``suffixes`` tell its files. ``read`` takes paths, and options
    of the group ``options``; ``recorded`` returns the options to read files again with.
    """

    key: str
    suffixes: tuple[str, ...]
    options: type[Options]
    read: Callable[..., Corpus]
    recorded: Callable[[RecordedCorpus], Options]


def _conllu_options(record: RecordedCorpus) -> ConlluOptions:
    if not is_quick(record.documents_by or NEWDOC):
        raise CorpusError(
            f"run.json names documents by the pattern {shortened(record.documents_by)!r}, which "
            "may take forever: it repeats a group, or has more than four repetitions; score with "
            "a simpler one, such as `documents='sent_id:^.{6}'`"
        )
    return ConlluOptions(
        on_bad_sentence="skip",
        documents=record.documents_by or NEWDOC,
        ids=record.ids_by or "given",  # type: ignore[arg-type]
        contractions=record.contractions,
        spacing=record.spacing,
        join_spaces=record.join_spaces,
    )


def _arcs_options(record: RecordedCorpus) -> ArcsOptions:
    return ArcsOptions(
        least_distance=record.least_distance or 1,
        spacing=record.spacing,
        join_spaces=record.join_spaces,
    )


def _bitext_options(record: RecordedCorpus) -> BitextOptions:
    return BitextOptions(
        on_bad_sentence="skip",
        translations=record.translations,
        links=record.links,
        links_from=record.links_from,
        spacing=record.spacing,
        join_spaces=record.join_spaces,
    )


CONLLU = Format("conllu", SUFFIXES, ConlluOptions, read_conllu, _conllu_options)
_BITEXT = Format(
    bitext.BITEXT, (bitext.SUFFIX,), BitextOptions, bitext.read_bitext, _bitext_options
)
FORMATS = (
    CONLLU,
    Format(ARCS_KEY, (".jsonl",), ArcsOptions, read_arcs, _arcs_options),
    _BITEXT,
)
"""Formats of files whose sentences are parsed already."""
_BY_KEY = {form.key: form for form in FORMATS}
_SUFFIXES = {suffix for form in FORMATS for suffix in form.suffixes}


@dataclass(frozen=True, kw_only=True)
class CorpusOptions(ConlluOptions, ArcsOptions, BitextOptions, TextOptions, PairsOptions):
    """Options of reading any corpus."""

    parser: str | None = None
    """spaCy pipeline, by name or path, to parse text."""
    text_columns: Annotated[Sequence[str | int] | None, Convert(named_columns)] = None
    """Columns of a table (.tsv, .csv, .jsonl, .parquet, a data set), from 0 or by name: one, or two
    for pairs."""


def open_corpus(paths: Sequence[PathLike], options: CorpusOptions) -> Corpus:
    """Open a treebank, text or sentence pairs, as the options say.

    Without a parser the paths are of one of `FORMATS`, by default CoNLL-U; with a parser they are
    plain text, or, with columns, tab-separated files. Raises UsageError if paths and options
    contradict each other, and the errors of `read_conllu`, `read_arcs`, `read_text` and
    `read_pairs`.
    """
    kinds: set[str] = {kind_of(path) for path in paths}
    is_table = bool(kinds & {*TABLES}) or any(map(is_dataset, paths))
    form = next((form for form in FORMATS if kinds <= {*form.suffixes}), CONLLU)
    form = form if options.translations is None else _BITEXT
    parser, columns = options.parser, options.text_columns
    if columns is not None:
        group: type[Options] = PairsOptions
    elif parser is not None:
        group = TextOptions
    else:
        group = form.options
    _check_idle(options, group)
    if parser is None:
        if columns is not None or (form is CONLLU and (is_table or kinds & _TEXTS)):
            advice = "name a spaCy pipeline with `parser`"
            if is_table and not columns:
                advice += ", and the columns that hold the text with `text_columns`"
            raise UsageError(f"text must be parsed; {advice}")
        return form.read(paths, options=options.as_group(form.options))
    if (kinds & (_SUFFIXES | {".conll"})) - {*TABLES}:
        raise UsageError("a treebank is parsed already; omit `parser`, or give text")
    if columns is not None:
        return read_pairs(paths, parser, columns, options=options.as_group(PairsOptions))
    if is_table:
        raise UsageError("no text columns were given; number them from 0 with `text_columns`")
    return read_text(paths, parser, options=options.as_group(TextOptions))


_APPLIES_TO = {
    ArcsOptions: "files of tokens and arcs (.jsonl)",
    ConlluOptions: "treebanks, not to text",
    BitextOptions: "bitexts (a file that is called .bitext, or two with `translations`)",
    ParsingOptions: "text that is parsed",
    TextOptions: "plain text",
    PairsOptions: "tables",
}
_READ_BY: dict[type[Options], str] = {
    BitextOptions: "translations",
    ParsingOptions: "parser",
    TextOptions: "parser",
    PairsOptions: "text_columns",
}
"""Option that makes headroles read a corpus as one of this kind."""


def _check_idle(options: CorpusOptions, group: type[Options]) -> None:
    """Raise UsageError for options of another kind of corpus than that of ``group``."""
    accepted = {field.name for field in fields_of(group)}
    for other, applies_to in _APPLIES_TO.items():
        for field in fields_of(other):
            if field.name not in accepted and getattr(options, field.name) != field.default:
                raise UsageError(
                    f"`{field.name}` applies to {applies_to}; {_advice(options, other, field.name)}"
                )


def _advice(options: CorpusOptions, group: type[Options], idle: str) -> str:
    """Say what to do about an idle option, which belongs to another ``group``."""
    wanted = _READ_BY.get(group)
    if wanted is not None and getattr(options, wanted) is None:
        return f"give `{wanted}` too, or omit `{idle}`"
    if options.text_columns is not None:
        return "omit it, or omit `text_columns`, which makes the corpus a table"
    return "omit it"


# Corpora of results


def can_reopen(record: RecordedCorpus) -> bool:
    """Tell whether the files of a corpus hold its sentences, so that they can be read again."""
    return record.format in _BY_KEY and bool(record.files)


def reopen_corpus(paths: Sequence[PathLike], record: RecordedCorpus) -> Corpus:
    """Open the files of a corpus as they were read when it was recorded; see `can_reopen`."""
    form = _BY_KEY[record.format]
    return form.read(paths, options=form.recorded(record))


# What a user means

Tree: TypeAlias = tuple[Sequence[str], Sequence[int], Sequence[str]]
"""Words, the place of the governor of each (-1: the root), and relations."""
Parsed: TypeAlias = "Sentence | Doc | Tree | tuple[Any, Any, Any, Any] | Mapping[str, Any]"
"""A sentence, or a document, in any form that `make_corpus` takes without a parser."""
AnyCorpus: TypeAlias = "Corpus | PathLike | Iterable[PathLike] | Iterable[Parsed] | pd.DataFrame"
"""A corpus, or what `as_corpus` makes one of."""


def as_corpus(source: AnyCorpus) -> Corpus:
    """Return the corpus that a user means: a `Corpus`, treebanks by path, or parsed objects.

    Parsed objects are spaCy documents, triples, sentences, and tables of a treebank, as in
    `make_corpus`. Raises UsageError that describes any other object, and the errors of
    `read_conllu` and `make_corpus`.
    """
    if isinstance(source, Corpus):
        return source
    paths = [source] if isinstance(source, str | os.PathLike) else source
    if (
        isinstance(paths, Sequence)
        and paths
        and all(isinstance(path, str | os.PathLike) for path in paths)
    ):
        return _treebank(paths)
    return make_corpus(cast(Iterable[Any], source))


def _treebank(paths: Sequence[PathLike]) -> Corpus:
    for path in paths:
        # os.path.exists is false for a text longer than any name of a file
        is_there = path == STANDARD_INPUT or os.path.exists(path)  # noqa: PTH110
        if isinstance(path, str) and kind_of(path) not in _SUFFIXES and not is_there:
            raise UsageError(
                f"the corpus is the text {shortened(path, 40)!r}, and no file has that name; give "
                "the path of a file, or parse the text: make_corpus(TEXTS, parser=PIPELINE), or "
                "for a file read_text(FILE, parser=PIPELINE)"
            )
    return open_corpus(paths, CorpusOptions())
