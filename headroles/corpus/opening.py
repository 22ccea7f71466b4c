"""Opening of corpora of every kind from paths and options."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike as PathLikeOfOs
from pathlib import Path

from headroles.corpus.conllu_files import SUFFIXES, read_conllu
from headroles.corpus.files import STANDARD_INPUT, PathLike, is_dataset, kind_of
from headroles.corpus.objects import make_corpus
from headroles.corpus.options import (
    ConlluOptions,
    CorpusOptions,
    PairsOptions,
    ParsingOptions,
    TextOptions,
)
from headroles.corpus.sentence import Corpus
from headroles.corpus.table_files import TABLES
from headroles.corpus.text import read_pairs, read_text
from headroles.errors import UsageError
from headroles.options import fields_of
from headroles.wording import shortened


def open_corpus(paths: Sequence[PathLike], options: CorpusOptions) -> Corpus:
    """Open a treebank, text or sentence pairs, as the options say.

    Without a parser the paths are CoNLL-U; with a parser they are plain text, or, with columns,
    tab-separated files. Raises UsageError if paths and options contradict each other, and the
    errors of `read_conllu`, `read_text` and `read_pairs`.
    """
    _refuse_idle(options)
    suffixes = {kind_of(path) for path in paths}
    if options.parser is None:
        if options.text_columns is not None:
            raise UsageError(
                "text columns must be parsed; name a spaCy pipeline with parser (--parser)"
            )
        if suffixes & {*TABLES} or any(map(is_dataset, paths)):
            raise UsageError(
                "text must be parsed; name a spaCy pipeline with parser (--parser), and the "
                "columns that hold the text with text_columns (--text-columns)"
            )
        if ".txt" in suffixes:
            raise UsageError("text must be parsed; name a spaCy pipeline with parser (--parser)")
        return read_conllu(paths, **options.as_group(ConlluOptions).record())
    if suffixes & {*SUFFIXES, ".conll"}:
        raise UsageError("a treebank is parsed already; omit parser (--parser), or give text")
    if options.text_columns is not None:
        return read_pairs(
            paths, options.parser, options.text_columns, **vars(options.as_group(PairsOptions))
        )
    if suffixes & {*TABLES} or any(map(is_dataset, paths)):
        raise UsageError(
            "no text columns were given; number them from 0 with text_columns (--text-columns)"
        )
    return read_text(paths, options.parser, **vars(options.as_group(TextOptions)))


def _refuse_idle(options: CorpusOptions) -> None:
    """Raise UsageError for options of another kind of corpus."""
    if options.separator is not None and options.text_columns is None:
        raise UsageError(
            "separator (--separator) applies to tables; name columns with text_columns "
            "(--text-columns), or omit it"
        )
    if options.header is not None and options.text_columns is None:
        raise UsageError(
            "header (--header) applies to tab-separated text; name its columns with text_columns "
            "(--text-columns), or omit it"
        )
    if options.lines and (options.parser is None or options.text_columns is not None):
        raise UsageError(
            "lines (--lines) applies to plain text; name a parser (--parser) for it, or omit it"
        )
    if options.parser is None:
        usual_parsing = vars(ParsingOptions())
        for one in fields_of(ParsingOptions):
            if getattr(options, one.name) != usual_parsing[one.name]:
                raise UsageError(
                    f"{one.name} applies to text that is parsed, not to a treebank; name a parser "
                    f"(--parser), or omit {one.name} ({one.flag})"
                )
        return
    given, usual = options.as_group(ConlluOptions).record(), ConlluOptions().record()
    for one in fields_of(ConlluOptions):
        if given[one.name] != usual[one.name]:
            raise UsageError(f"{one.name} applies to treebanks, not to text; omit it")


def as_corpus(given: object) -> Corpus:
    """Return the corpus that a user means: a `Corpus`, treebanks by path, or parsed objects.

    Parsed objects are spaCy documents, triples and sentences, as in `make_corpus`. Raises
    UsageError that describes any other object, and the errors of `read_conllu` and `make_corpus`.
    """
    if isinstance(given, Corpus):
        return given
    if isinstance(given, str | PathLikeOfOs):
        return _treebank([given])
    if (
        isinstance(given, Sequence)
        and given
        and all(isinstance(one, str | PathLikeOfOs) for one in given)
    ):
        return _treebank(given)
    return make_corpus(given)  # type: ignore[arg-type]  # which checks its argument


def _treebank(paths: Sequence[PathLike]) -> Corpus:
    for path in paths:
        if isinstance(path, str) and kind_of(path) not in SUFFIXES and not _may_exist(path):
            raise UsageError(
                f"the corpus is the text {shortened(path, 40)!r}, and no file has that name; give "
                "the path of a file, or parse the text: make_corpus(TEXTS, parser=PIPELINE), or "
                "for a file read_text(FILE, parser=PIPELINE)"
            )
    return open_corpus(paths, CorpusOptions())


def _may_exist(path: str) -> bool:
    try:
        return path == STANDARD_INPUT or Path(path).exists()
    except OSError:  # a text longer than any name of a file
        return False
