"""One door to every kind of corpus, for callers that know paths and options only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headroles.corpus.conllu_files import check_policy, read_conllu
from headroles.corpus.corpus import Corpus
from headroles.corpus.text import read_pairs, read_text
from headroles.errors import UsageError


def open_corpus(
    paths: Sequence[str | Path],
    parser: str | None = None,
    text_columns: Sequence[str | int] | None = None,
    header: bool = True,
    on_bad_sentence: str = "error",
) -> Corpus:
    """A treebank, or text or sentence pairs to be parsed, as the options say.

    Without ``parser`` the paths are CoNLL-U; with it they are text, or with ``text_columns``
    tab-separated files. Raises UsageError where paths and options contradict each other, and
    the errors of `read_conllu`, `read_text` and `read_pairs`.
    """
    check_policy(on_bad_sentence)
    suffixes = {Path(path).suffix.lower() for path in paths}
    if parser is None:
        if text_columns is not None:
            raise UsageError("text columns must be parsed: name a spaCy pipeline with --parser")
        if suffixes & {".txt", ".tsv", ".csv"}:
            raise UsageError("text must be parsed: name a spaCy pipeline with --parser")
        return read_conllu(paths, on_bad_sentence)
    if suffixes & {".conllu", ".conll"}:
        raise UsageError("a treebank is parsed already: leave --parser out, or give text")
    if text_columns is not None:
        return read_pairs(paths, parser, text_columns, header)
    if suffixes & {".tsv", ".csv"}:
        raise UsageError("name the columns that hold the text with --text-columns, from 0")
    return read_text(paths, parser)
