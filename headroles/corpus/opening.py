"""Every kind of corpus from paths and options, for callers that know paths and options only."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike as PathLikeOfOs
from pathlib import Path
from typing import Any

from headroles.corpus.conllu_files import SUFFIXES, read_conllu
from headroles.corpus.corpus import Corpus
from headroles.corpus.files import STANDARD_INPUT, PathLike, kind_of
from headroles.corpus.options import ConlluOptions, CorpusOptions
from headroles.corpus.sentence import Sentence
from headroles.corpus.text import read_pairs, read_text
from headroles.errors import UsageError
from headroles.options import fields_of
from headroles.wording import listed, shortened


def open_corpus(paths: Sequence[PathLike], options: CorpusOptions) -> Corpus:
    """A treebank, or text or sentence pairs to be parsed, as the options say.

    Without a parser the paths are CoNLL-U; with it they are text, or with columns tab-separated
    files. Raises UsageError where paths and options contradict each other, and the errors of
    `read_conllu`, `read_text` and `read_pairs`.
    """
    _refuse_idle(options)
    suffixes = {kind_of(path) for path in paths}
    if options.parser is None:
        if options.text_columns is not None:
            raise UsageError("text columns must be parsed: name a spaCy pipeline with --parser")
        if suffixes & {".txt", ".tsv", ".csv"}:
            raise UsageError("text must be parsed: name a spaCy pipeline with --parser")
        return read_conllu(paths, **options.part(ConlluOptions).record())
    if suffixes & {*SUFFIXES, ".conll"}:
        raise UsageError("a treebank is parsed already: leave --parser out, or give text")
    if options.text_columns is not None:
        return read_pairs(paths, options.parser, options.text_columns, header=options.header)
    if suffixes & {".tsv", ".csv"}:
        raise UsageError("name the columns that hold the text with --text-columns, from 0")
    return read_text(paths, options.parser, lines=options.lines)


def _refuse_idle(options: CorpusOptions) -> None:
    """Raise UsageError for options that say how to read what is not read."""
    if options.header is not None and options.text_columns is None:
        raise UsageError(
            "a header is that of tab-separated text: name its columns with --text-columns, "
            f"or leave --{'' if options.header else 'no-'}header out"
        )
    if options.lines and (options.parser is None or options.text_columns is not None):
        raise UsageError(
            "lines are those of plain text: name a parser for it, or leave --lines out"
        )
    if options.parser is None:
        return
    given, usual = options.part(ConlluOptions).record(), ConlluOptions().record()
    for one in fields_of(ConlluOptions):
        if given[one.name] != usual[one.name]:
            raise UsageError(
                f"{one.name} is of treebanks, and text is parsed: leave {one.flag} out"
            )


def as_corpus(given: object) -> Corpus:
    """What was given where a corpus is wanted: a corpus, treebanks by path, or sentences.

    Raises UsageError that says what was given instead, and the errors of `read_conllu`.
    """
    if isinstance(given, Corpus):
        return given
    if isinstance(given, str | PathLikeOfOs):
        return _treebank([given])
    if isinstance(given, Sequence) and given:
        if all(isinstance(one, Sentence) for one in given):
            return _of_sentences(tuple(given))
        if all(isinstance(one, str | PathLikeOfOs) for one in given):
            return _treebank(given)
    raise UsageError(
        f"the corpus is {_named(given)}; it must come from read_conllu, read_text or read_pairs, "
        "or be the path of a treebank, or a list of Sentence"
    )


def _treebank(paths: Sequence[PathLike]) -> Corpus:
    for path in paths:
        if isinstance(path, str) and kind_of(path) not in SUFFIXES and not _may_exist(path):
            raise UsageError(
                f"the corpus is the text {shortened(path, 40)!r}, and no file has that name; text "
                "must be parsed: write it to a file, and give read_text(FILE, parser=PIPELINE)"
            )
    return open_corpus(paths, CorpusOptions())


def _may_exist(path: str) -> bool:
    try:
        return path == STANDARD_INPUT or Path(path).exists()
    except OSError:  # a text longer than any name of a file
        return False


def _of_sentences(sentences: tuple[Sentence, ...]) -> Corpus:
    source: dict[str, Any] = {"format": "sentences", "files": []}
    return Corpus(source=source, read=lambda skipped: iter(sentences))


def _named(given: object) -> str:
    if isinstance(given, Sequence) and not isinstance(given, bytes):
        kinds = listed(sorted({type(one).__name__ for one in given}))
        return (
            f"a {type(given).__name__} of {kinds}" if given else f"an empty {type(given).__name__}"
        )
    return f"a {type(given).__name__}"
