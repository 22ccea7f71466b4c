"""Reading of raw text and sentence pairs, parsed by a spaCy pipeline."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from headroles.corpus.files import CorpusFile, PathLike, find_files
from headroles.corpus.options import PairsOptions, TextOptions
from headroles.corpus.parsing import load_pipeline, sentence_of
from headroles.corpus.saved_parses import save_parses
from headroles.corpus.sentence import Corpus, Sentence, Skipped
from headroles.corpus.table_files import (
    TABLES,
    check_text_columns,
    check_width,
    has_names,
    place_of,
    read_rows,
)
from headroles.errors import UsageError
from headroles.options import takes
from headroles.wording import shortened


@takes(TextOptions)
def read_text(paths: PathLike | Iterable[PathLike], parser: str, options: TextOptions) -> Corpus:
    r"""Return a corpus of plain text, split and parsed by the spaCy pipeline ``parser``.

    Each file (or each ``*.txt`` file of a folder) is one document; blank lines separate paragraphs,
    and line breaks inside a paragraph count as spaces. With ``lines`` every line that is not blank
    is one sentence, even if the pipeline finds several. Files may be compressed, and ``-`` is
    standard input. ``parser`` is the name of an installed pipeline or the path of one. Nothing is
    parsed before the corpus is iterated.

    With ``keep_parses``, reading the corpus to its end also writes the parses to that file.

    Raises:
        CorpusError: a path does not exist, or a folder has no text file.
        ParserError: the pipeline cannot be loaded or does not parse.

    >>> import spacy
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> untrained = spacy.blank("en")  # in place of a trained pipeline, such as "en_core_web_sm"
    >>> _ = untrained.add_pipe("parser").add_label("root"), untrained.initialize()
    >>> with TemporaryDirectory() as folder:
    ...     untrained.to_disk(f"{folder}/parser")
    ...     _ = Path(folder, "pets.txt").write_text("Dogs bark.\nCats sleep.\n")
    ...     corpus = read_text(f"{folder}/pets.txt", f"{folder}/parser", lines=True)
    ...     [sentence.words for sentence in corpus]
    [('Dogs', 'bark', '.'), ('Cats', 'sleep', '.')]
    """
    found = find_files(paths, ".txt")
    pipeline = load_pipeline(parser)
    texts = _lines if options.lines else paragraphs

    def read(skipped: Skipped) -> Iterator[Sentence]:
        for file in found.files:
            position = 0
            for doc in pipeline.nlp.pipe(texts(file.lines()), n_process=options.parser_processes):
                for span in [doc] if options.lines else doc.sents:
                    name = f"{file.stem}-{position + 1}"
                    sentence = sentence_of(span, name, file.stem, position)
                    if sentence is not None:
                        yield sentence
                        position += 1

    source = pipeline.source("text", found.source)
    corpus = Corpus({**source, "lines": options.lines}, read, frequent=pipeline.frequent)
    return save_parses(corpus, options.keep_parses)


@takes(PairsOptions)
def read_pairs(
    paths: PathLike | Iterable[PathLike],
    parser: str,
    columns: Sequence[str | int],
    options: PairsOptions,
) -> Corpus:
    r"""Return a corpus of sentence pairs (GLUE style), parsed by the spaCy pipeline ``parser``.

    Files are tab-separated or CSV, JSON lines (``.jsonl``) or Parquet; folders that a data set of
    Hugging Face was saved in, and ``hf:NAME:SPLIT`` for one of the hub, are read with datasets.
    ``columns`` names one or two columns, by number from 0 or by name in the header line; the two
    cells of a row are the two segments of one example, and every row is a document of its own.
    In files with tabs quotation marks are ordinary characters. A cell may hold several sentences:
    it stays one segment, with the trees of all of them. ``header=False`` says that the first line
    is data; without ``header``, numbered columns and a first line that looks like data are an
    error.

    Raises:
        CorpusError: a path does not exist, or a folder has no ``*.tsv`` file.
        ParserError: the pipeline cannot be loaded or does not parse.
        UsageError: not one or two columns, a column named in a file without a header, or a header
            that looks like data.

    >>> import spacy
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> untrained = spacy.blank("en")  # in place of a trained pipeline, such as "en_core_web_sm"
    >>> _ = untrained.add_pipe("parser").add_label("root"), untrained.initialize()
    >>> with TemporaryDirectory() as folder:
    ...     untrained.to_disk(f"{folder}/parser")
    ...     _ = Path(folder, "pets.tsv").write_text("one\tother\nDogs bark.\tCats sleep.\n")
    ...     corpus = read_pairs(f"{folder}/pets.tsv", f"{folder}/parser", ["one", "other"])
    ...     [sentence.words for sentence in corpus]
    [('Dogs', 'bark', '.'), ('Cats', 'sleep', '.')]
    """
    check_text_columns(columns)
    if len(set(map(str, columns))) < len(columns):
        raise UsageError(f"the text column {columns[0]!r} was given twice; give two columns")
    found = find_files(paths, *TABLES)
    pipeline = load_pipeline(parser)

    def read(skipped: Skipped) -> Iterator[Sentence]:
        for file in found.files:
            cells = _cells(file, columns, options.header, options.separator)
            for doc, (row, position) in pipeline.nlp.pipe(
                cells, as_tuples=True, n_process=options.parser_processes
            ):
                name = f"{file.stem}-{row}" + (f".{position + 1}" if len(columns) > 1 else "")
                sentence = sentence_of(doc, name, f"{file.stem}#{row}", position)
                if sentence is None:
                    skipped["cells without words"] += 1
                else:
                    yield sentence

    source = pipeline.source("pairs", found.source)
    corpus = Corpus({**source, "text_columns": list(columns)}, read, frequent=pipeline.frequent)
    return save_parses(corpus, options.keep_parses)


def _lines(lines: Iterable[str]) -> Iterator[str]:
    return (" ".join(line.split()) for line in lines if line.strip())


def paragraphs(lines: Iterable[str]) -> Iterator[str]:
    """Join the lines between blank ones with single spaces."""
    together: list[str] = []
    for line in lines:
        if line.strip():
            together.append(" ".join(line.split()))
        elif together:
            yield " ".join(together)
            together = []
    if together:
        yield " ".join(together)


def _cells(
    file: CorpusFile, columns: Sequence[str | int], header: bool | None, separator: str | None
) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the chosen cells as (text, (row, place among the columns)); rows count from 1."""
    rows = read_rows(file, separator)
    number, first = next(rows)
    names = first if header or header is None or has_names(file) else None
    width = len(first)
    chosen = [place_of(file, column, names, width) for column in columns]
    if header is None and not has_names(file):
        _ask_about_header(file, first, columns, chosen)
    if names is None:
        rows = chain([(number, first)], rows)
    for row, (line, cells) in enumerate(rows, start=1):
        check_width(file, line, cells, width)
        for position, column in enumerate(chosen):
            yield " ".join(cells[column].split()), (row, position)


def _ask_about_header(
    file: CorpusFile, first: list[str], columns: Sequence[str | int], chosen: list[int]
) -> None:
    """Raise UsageError for a first line that looks like data, unless columns are named by it."""
    if any(isinstance(column, str) and not column.isdecimal() for column in columns):
        return
    suspect = [cell for cell in first if _A_NUMBER.fullmatch(cell.strip())]
    suspect += [first[column] for column in chosen if _A_SENTENCE.search(first[column].strip())]
    if suspect:
        raise UsageError(
            f"{file}, line 1: {shortened(suspect[-1])!r} looks like data, not like a column name; "
            "pass header=False (--no-header) if this is the first row, or header=True (--header) "
            "if it is a header"
        )


_A_NUMBER = re.compile(r"[-+]?\d+([.,]\d+)?")
_A_SENTENCE = re.compile(r"(\S+\s+){3}\S|[.?!\u3002\uff1f\uff01]$")
