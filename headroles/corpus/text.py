"""Reading of raw text and sentence pairs, parsed by a spaCy pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat

from headroles.corpus.files import CorpusFile, PathLike, find_files
from headroles.corpus.options import PairsOptions, TextOptions
from headroles.corpus.parsing import load_pipeline, paragraphs, sentence_of, spans
from headroles.corpus.saved_parses import save_parses
from headroles.corpus.sentence import Corpus, Sentence, Skipped
from headroles.corpus.tables import TABLES, check_text_columns, read_columns
from headroles.errors import UsageError
from headroles.options import takes


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
    files, found = find_files(paths, ".txt")
    pipeline = load_pipeline(parser)

    def read(skipped: Skipped) -> Iterator[Sentence]:
        for file in files:
            lines = (" ".join(line.split()) for line in file.lines() if line.strip())
            texts = zip(lines if options.lines else paragraphs(file.lines()), repeat(None))
            position = 0
            for span, _ in spans(
                pipeline, texts, whole=options.lines, n_processes=options.parser_processes
            ):
                name = f"{file.stem}-{position + 1}"
                if sentence := sentence_of(span, name, file.stem, position):
                    yield sentence
                    position += 1

    source = pipeline.source("text", found)
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
    files, found = find_files(paths, *TABLES)
    pipeline = load_pipeline(parser)

    def read(skipped: Skipped) -> Iterator[Sentence]:
        for file in files:
            cells = _cells(file, columns, options)
            for doc, (row, place) in spans(
                pipeline, cells, whole=True, n_processes=options.parser_processes
            ):
                name = f"{file.stem}-{row}" + (f".{place + 1}" if len(columns) > 1 else "")
                if sentence := sentence_of(doc, name, f"{file.stem}#{row}", place):
                    yield sentence
                else:
                    skipped["cells without words"] += 1

    source = pipeline.source("pairs", found)
    corpus = Corpus({**source, "text_columns": list(columns)}, read, frequent=pipeline.frequent)
    return save_parses(corpus, options.keep_parses)


def _cells(
    file: CorpusFile, columns: Sequence[str | int], options: PairsOptions
) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the chosen cells as (text, (row, place among the columns)); rows count from 1."""
    rows = read_columns(file, lambda _: columns, header=options.header, separator=options.separator)
    for row, (_, cells) in enumerate(rows, start=1):
        yield from ((" ".join(cell.split()), (row, k)) for k, cell in enumerate(cells))
