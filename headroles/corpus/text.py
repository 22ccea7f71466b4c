"""Raw text and sentence pairs, parsed by a spaCy pipeline -> sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headroles.corpus.corpus import Corpus, Skipped
from headroles.corpus.files import PathLike, find_files, read_lines
from headroles.corpus.options import PairsOptions
from headroles.corpus.schemes import recognise_scheme
from headroles.corpus.sentence import ROOT, Sentence
from headroles.errors import CorpusError, ParserError, UsageError
from headroles.options import takes

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Span, Token

# What a dependency parse does not need; everything else of the pipeline runs as its author meant.
_UNNEEDED_PIPES = ("ner", "entity_linker", "lemmatizer", "textcat", "textcat_multilabel")


def read_text(paths: PathLike | Iterable[PathLike], parser: str) -> Corpus:
    """Plain text, split into sentences and parsed by the spaCy pipeline ``parser``.

    Each file (or each ``*.txt`` file of a folder) is one document; blank lines separate
    paragraphs, and line breaks inside a paragraph count as spaces. ``parser`` is the name of an
    installed pipeline or the path of one. Nothing is parsed before the corpus is iterated.

    Raises:
        CorpusError: a path does not exist, or a folder has no text file.
        ParserError: the pipeline cannot be loaded or does not parse.
    """
    files = _differently_named(find_files(paths, suffix=".txt"))
    pipeline = _load_pipeline(parser)

    def read(skipped: Skipped) -> Iterator[Sentence]:
        for file in files:
            position = 0
            for doc in pipeline.nlp.pipe(_paragraphs(file)):
                for span in doc.sents:
                    name = f"{file.stem}-{position + 1}"
                    sentence = _sentence(span, name, str(file), position)
                    if sentence is not None:
                        yield sentence
                        position += 1

    return Corpus(source=pipeline.source("text", files), read=read)


@takes(PairsOptions)
def read_pairs(
    paths: PathLike | Iterable[PathLike],
    parser: str,
    columns: Sequence[str | int],
    options: PairsOptions,
) -> Corpus:
    """Tab-separated sentence pairs (GLUE style), each cell parsed by the spaCy pipeline ``parser``.

    ``columns`` names one or two columns, by number from 0 or by name in the header line; the two
    cells of a row are the two segments of one example, and every row is a document of its own.
    Quotation marks are ordinary characters. A cell may hold several sentences: it stays one
    segment, with the trees of all of them. ``header=False`` says that the first line is data.

    Raises:
        CorpusError: a path does not exist, or a folder has no ``*.tsv`` file.
        ParserError: the pipeline cannot be loaded or does not parse.
        UsageError: not one or two columns, or a column named in a file without a header.
    """
    if not 1 <= len(columns) <= 2:
        raise UsageError(f"{len(columns)} text columns were named; name one, or two for pairs")
    if len(set(map(str, columns))) < len(columns):
        raise UsageError(f"the text column {columns[0]!r} was named twice")
    files = _differently_named(find_files(paths, suffix=".tsv"))
    pipeline = _load_pipeline(parser)

    def read(skipped: Skipped) -> Iterator[Sentence]:
        for file in files:
            cells = _cells(file, columns, options.header)
            for doc, (row, position) in pipeline.nlp.pipe(cells, as_tuples=True):
                name = f"{file.stem}-{row}" + (f".{position + 1}" if len(columns) > 1 else "")
                sentence = _sentence(doc, name, f"{file}#{row}", position)
                if sentence is None:
                    skipped["cells without words"] += 1
                else:
                    yield sentence

    source = pipeline.source("pairs", files)
    return Corpus(source={**source, "text_columns": list(columns)}, read=read)


@dataclass(frozen=True)
class _Pipeline:
    nlp: Language
    name: str
    scheme: str

    def source(self, kind: str, files: list[Path]) -> dict[str, Any]:
        return {
            "format": kind,
            "files": [str(file) for file in files],
            "parser": self.name,
            "scheme": self.scheme,
        }


def _differently_named(files: list[Path]) -> list[Path]:
    """``files``; sentences are called after their file, so no two may share a name."""
    seen: dict[str, Path] = {}
    for file in files:
        if file.stem in seen:
            raise CorpusError(
                f"{seen[file.stem]} and {file} would give their sentences the same ids; rename one"
            )
        seen[file.stem] = file
    return files


def _load_pipeline(name: str) -> _Pipeline:
    try:
        import spacy
    except ImportError as error:
        raise ParserError(
            'parsing text needs spaCy; install it with: pip install "headroles[spacy]"'
        ) from error
    try:
        nlp = spacy.load(name, exclude=list(_UNNEEDED_PIPES))
    except (OSError, ValueError, ImportError) as error:
        raise ParserError(
            f"the spaCy pipeline {name!r} cannot be loaded; give the name of an installed "
            f"pipeline or the path of one ({str(error).splitlines()[0]})"
        ) from error
    labels = [label for pipe in nlp.pipe_names for label in _dependency_labels(nlp, pipe)]
    if not labels:
        raise ParserError(
            f"the spaCy pipeline {name!r} has no dependency parser "
            f"(it has: {', '.join(nlp.pipe_names) or 'nothing'}); give one that parses"
        )
    full_name = f"{nlp.meta['lang']}_{nlp.meta['name']} {nlp.meta['version']}"
    return _Pipeline(nlp, full_name, recognise_scheme(labels))


def _dependency_labels(nlp: Language, pipe: str) -> list[str]:
    if "parser" not in nlp.get_pipe_meta(pipe).factory:
        return []
    return [str(label) for label in getattr(nlp.get_pipe(pipe), "labels", ())]


def _paragraphs(file: Path) -> Iterator[str]:
    lines: list[str] = []
    for line in read_lines(file):
        if line.strip():
            lines.append(" ".join(line.split()))
        elif lines:
            yield " ".join(lines)
            lines = []
    if lines:
        yield " ".join(lines)


def _cells(
    file: Path, columns: Sequence[str | int], header: bool
) -> Iterator[tuple[str, tuple[int, int]]]:
    """The chosen cells as (text, (row, place among the columns)); rows count from 1."""
    # Not the csv module: it takes a carriage return or a very long cell for an error.
    rows = (line.split("\t") for line in read_lines(file))
    names = next(rows) if header else None
    chosen: list[int] | None = None
    width = 0
    for row, cells in enumerate(rows, start=1):
        if chosen is None:
            width = len(names or cells)
            chosen = [_column(file, column, names, width) for column in columns]
        if len(cells) != width:
            raise CorpusError(
                f"{file}, line {row + header}: {len(cells)} tab-separated columns instead of "
                f"{width}; correct the line"
            )
        for position, column in enumerate(chosen):
            yield " ".join(cells[column].split()), (row, position)


def _column(file: Path, column: str | int, names: list[str] | None, width: int) -> int:
    if isinstance(column, str) and not column.isdecimal():
        if names is None:
            raise UsageError(f"column {column!r} is a name, but {file} was said to have no header")
        if column not in names:
            raise CorpusError(f"{file} has no column {column!r}; it has: {', '.join(names)}")
        return names.index(column)
    if not 0 <= int(column) < width:
        listed = f": {', '.join(names)}" if names else ""
        raise CorpusError(f"{file} has no column {column}; it has {width}, counted from 0{listed}")
    return int(column)


def _sentence(span: Span | Doc, name: str, document: str, position: int) -> Sentence | None:
    """The words of ``span`` without the white-space tokens that spaCy makes; None without any."""
    tokens = [token for token in span if not token.is_space]
    if not tokens:
        return None
    index = {token.i: k for k, token in enumerate(tokens)}
    return Sentence(
        id=name,
        document=document,
        position=position,
        words=tuple(token.text for token in tokens),
        governors=tuple(index.get(_governor(token), ROOT) for token in tokens),
        relations=tuple(token.dep_ for token in tokens),
    )


def _governor(token: Token) -> int:
    """Document index of the first governor that is a word, -1 for a root."""
    while token.head.i != token.i:
        token = token.head
        if not token.is_space:
            return int(token.i)
    return -1
