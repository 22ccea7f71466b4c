"""Every kind of corpus from paths and options, for callers that know paths and options only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headroles.corpus.conllu_files import read_conllu
from headroles.corpus.corpus import Corpus
from headroles.corpus.options import ON_BAD_SENTENCE, CorpusOptions
from headroles.corpus.text import read_pairs, read_text
from headroles.errors import UsageError


def open_corpus(paths: Sequence[str | Path], options: CorpusOptions) -> Corpus:
    """A treebank, or text or sentence pairs to be parsed, as the options say.

    Without a parser the paths are CoNLL-U; with it they are text, or with columns tab-separated
    files. Raises UsageError where paths and options contradict each other, and the errors of
    `read_conllu`, `read_text` and `read_pairs`.
    """
    _refuse_idle(options)
    suffixes = {Path(path).suffix.lower() for path in paths}
    if options.parser is None:
        if options.text_columns is not None:
            raise UsageError("text columns must be parsed: name a spaCy pipeline with --parser")
        if suffixes & {".txt", ".tsv", ".csv"}:
            raise UsageError("text must be parsed: name a spaCy pipeline with --parser")
        return read_conllu(paths, on_bad_sentence=options.on_bad_sentence)
    if suffixes & {".conllu", ".conll"}:
        raise UsageError("a treebank is parsed already: leave --parser out, or give text")
    if options.text_columns is not None:
        return read_pairs(paths, options.parser, options.text_columns, header=options.header)
    if suffixes & {".tsv", ".csv"}:
        raise UsageError("name the columns that hold the text with --text-columns, from 0")
    return read_text(paths, options.parser)


def _refuse_idle(options: CorpusOptions) -> None:
    """Raise UsageError for options that say how to read what is not read."""
    if not options.header and options.text_columns is None:
        raise UsageError(
            "a header is that of tab-separated text: name its columns with --text-columns, "
            "or leave --no-header out"
        )
    if options.parser is not None and options.on_bad_sentence != ON_BAD_SENTENCE[0]:
        raise UsageError(
            "bad sentences are those of treebanks, and text is parsed: leave --on-bad-sentence out"
        )
