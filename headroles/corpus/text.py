"""Text parsed by spaCy pipelines: files of text, and sentence pairs in tables."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from os import PathLike as OsPathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar

from msgspec import Meta

from headroles.corpus.files import PathLike, find_files
from headroles.corpus.sentence import (
    MISSING,
    ROOT,
    Corpus,
    CorpusSource,
    Sentence,
    Skipped,
    recognise_scheme,
)
from headroles.corpus.spacing import SpacingOptions, with_spacing
from headroles.corpus.tables import TABLES, named_columns, read_columns
from headroles.corpus.treebanks import NO_WORDS, save_parses
from headroles.errors import ParserError, UsageError
from headroles.options import CIRCUMSTANCE, Convert, takes
from headroles.wording import in_one_line

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Span, Token

T = TypeVar("T")
# Pipes that a dependency parse does not need; all others run as the pipeline's author intended.
_UNNEEDED_PIPES = ("ner", "entity_linker", "textcat", "textcat_multilabel")


def _as_path(value: PathLike) -> Path:
    if not isinstance(value, str | OsPathLike):
        raise UsageError(f"keep_parses is {value!r}; pass the name of a file")
    return Path(value)


@dataclass(frozen=True, kw_only=True)
class ParsingOptions(SpacingOptions):
    """Options of parsing text."""

    title: ClassVar[str] = "Corpus"

    parser_processes: Annotated[int, Meta(ge=1), CIRCUMSTANCE] = 1
    """Number of processes that parse text."""
    keep_parses: Annotated[Path | None, Convert(_as_path), CIRCUMSTANCE] = None
    """CoNLL-U file to save parsed text in; later runs can read it instead of the text."""


@dataclass(frozen=True, kw_only=True)
class TextOptions(ParsingOptions):
    """Options of reading plain text."""

    lines: bool = False
    """Read every line of text as one sentence, not as part of a paragraph."""


@dataclass(frozen=True, kw_only=True)
class PairsOptions(ParsingOptions):
    """Options of reading tab-separated text."""

    header: bool | None = None
    """Whether tab-separated text has a header line; by default yes, if it looks like one."""
    separator: Literal["tab", "comma", "semicolon"] | None = None
    """Separator of columns; by default tab, in .csv files the one of the first line."""


@takes(TextOptions)
def read_text(
    paths: PathLike | Iterable[PathLike], parser: PathLike | Language, options: TextOptions
) -> Corpus:
    r"""Return a corpus of plain text, split and parsed by the spaCy pipeline ``parser``.

    Each file (or each ``*.txt`` file of a folder) is one document; blank lines separate paragraphs,
    and line breaks inside a paragraph count as spaces. With ``lines`` every line that is not blank
    is one sentence, even if the pipeline finds several. Files may be compressed, and ``-`` is
    standard input. ``parser`` is a pipeline, or the name or path of one. Nothing is parsed before
    the corpus is iterated.

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
    ...     _ = Path(folder, "pets.txt").write_text("Dogs bark.\nCats sleep.\n")
    ...     [one.words for one in read_text(f"{folder}/pets.txt", untrained, lines=True)]
    [('Dogs', 'bark', '.'), ('Cats', 'sleep', '.')]
    """
    files, origin = find_files(paths, ".txt")
    pipeline = load_pipeline(parser)

    def read(skipped: Skipped) -> Iterator[Sentence]:
        for file in files:
            lines = (" ".join(line.split()) for line in file.lines() if line.strip())
            texts = lines if options.lines else paragraphs(file.lines())
            position = 0
            for sentence, _ in pipeline.parse(
                ((text, None) for text in texts), options.lines, options.parser_processes
            ):
                if sentence is not None:
                    name = f"{file.name}-{position + 1}"
                    yield replace(sentence, id=name, document=file.name, position=position)
                    position += 1

    corpus = pipeline.corpus("text", read, {**origin, "lines": options.lines})
    return with_spacing(save_parses(corpus, options.keep_parses), options)


@takes(PairsOptions)
def read_pairs(
    paths: PathLike | Iterable[PathLike],
    parser: PathLike | Language,
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
    ...     _ = Path(folder, "pets.tsv").write_text("one\tother\nDogs bark.\tCats sleep.\n")
    ...     corpus = read_pairs(f"{folder}/pets.tsv", untrained, ["one", "other"])
    ...     [sentence.words for sentence in corpus]
    [('Dogs', 'bark', '.'), ('Cats', 'sleep', '.')]
    """
    columns = named_columns(columns)
    files, origin = find_files(paths, *TABLES)
    pipeline = load_pipeline(parser)
    layout: dict[str, Any] = {"header": options.header, "separator": options.separator}

    def read(skipped: Skipped) -> Iterator[Sentence]:
        for file in files:
            rows = (cells for _, cells in read_columns(file, lambda _: columns, **layout))
            for row, sentence in pipeline.parse_rows(
                rows, file.name, skipped, options.parser_processes
            ):
                yield replace(sentence, document=f"{file.name}#{row + 1}")

    corpus = pipeline.corpus("pairs", read, {**origin, "text_columns": list(columns)})
    return with_spacing(save_parses(corpus, options.keep_parses), options)


# Pipelines


@dataclass(frozen=True)
class Pipeline:
    """A pipeline with a dependency parser; ``name`` includes its language and version."""

    nlp: Language
    name: str
    scheme: str

    def corpus(
        self, kind: str, read: Callable[[Skipped], Iterator[Sentence]], source: CorpusSource
    ) -> Corpus:
        """Return a corpus of this kind that the pipeline parses when it is read."""
        parser = {"parser": self.name, "language": self.nlp.lang, "scheme": self.scheme}
        frequent = frozenset(self.nlp.Defaults.stop_words)
        frequent = frequent if len(frequent) >= 100 else frozenset()  # too few tell no language
        return Corpus({"format": kind, **source, **parser}, read, frequent=frequent)

    def parse(
        self, texts: Iterable[tuple[str, T]], whole: bool, n_processes: int = 1
    ) -> Iterator[tuple[Sentence | None, T]]:
        """Parse texts; yield the sentences of each, or each as one, with its context."""
        for doc, context in self.nlp.pipe(texts, as_tuples=True, n_process=n_processes):
            yield from ((sentence_of(span), context) for span in ([doc] if whole else doc.sents))

    def parse_rows(
        self, rows: Iterable[Sequence[str]], prefix: str, skipped: Skipped, n_processes: int = 1
    ) -> Iterator[tuple[int, Sentence]]:
        """Parse every cell as one sentence, whatever trees are in it; yield (row, sentence)."""
        cells = (
            (" ".join(cell.split()), (row, (f".{place + 1}" if len(texts) > 1 else ""), place))
            for row, texts in enumerate(rows)
            for place, cell in enumerate(texts)
        )
        for sentence, (row, end, place) in self.parse(cells, True, n_processes):
            if sentence is None:
                skipped[NO_WORDS] += 1
            else:
                yield row, replace(sentence, id=f"{prefix}-{row + 1}{end}", position=place)


def load_pipeline(parser: PathLike | Language) -> Pipeline:
    """Load a pipeline by the name of an installed one or by path, or take a loaded one.

    Raises ParserError if it cannot be loaded or does not parse, UsageError for another object.
    """
    nlp = _load(parser) if isinstance(parser, str | OsPathLike) else parser
    if not is_from_spacy(nlp, "language", "Language"):
        raise UsageError(
            f"the parser is a {type(parser).__name__}; give a spaCy pipeline, or the name or path "
            "of one"
        )
    full_name = f"{nlp.meta['lang']}_{nlp.meta['name']} {nlp.meta['version']}"
    labels = [
        str(label)
        for pipe in nlp.pipe_names
        if "parser" in nlp.get_pipe_meta(pipe).factory
        for label in getattr(nlp.get_pipe(pipe), "labels", ())
    ]
    if not labels:
        shown = parser if isinstance(parser, str) else full_name
        raise ParserError(
            f"the spaCy pipeline {shown!r} has no dependency parser (it has: "
            f"{', '.join(nlp.pipe_names) or 'nothing'}); give a pipeline that parses"
        )
    return Pipeline(nlp, full_name, recognise_scheme(labels))


def is_from_spacy(value: object, module: str, name: str) -> bool:
    """Tell whether ``value`` is an instance of a spaCy class, without importing spaCy."""
    return isinstance(value, getattr(sys.modules.get(f"spacy.{module}"), name, ()))


def is_spacys_own(name: str) -> bool:
    """Tell whether spaCy publishes a pipeline of this name."""
    return bool(re.fullmatch(r"[a-z]{2,3}_[a-z]+_[a-z]+_(sm|md|lg|trf)", name))


def _load(name: str | OsPathLike[str]) -> Language:
    advised = str(name) if is_spacys_own(str(name)) else "en_core_web_sm"
    try:
        import spacy
    except ImportError as error:
        raise ParserError(
            'parsing text needs spaCy and a pipeline; install them: pip install "spacy>=3.8" '
            f"&& python -m spacy download {advised}"
        ) from error
    try:
        return spacy.load(
            Path(name) if isinstance(name, OsPathLike) else name, exclude=list(_UNNEEDED_PIPES)
        )
    except Exception as error:  # a package of that name may be anything, spaCy itself for one
        installed = ", ".join(sorted(spacy.util.get_installed_models())) or "none is installed"
        raise ParserError(
            f"the spaCy pipeline {str(name)!r} cannot be loaded ({in_one_line(error)}); name an "
            f"installed pipeline ({installed}) or the path of one. spaCy's own, for example: "
            f"python -m spacy download {advised}"
        ) from error


def paragraphs(lines: Iterable[str]) -> Iterator[str]:
    """Join the lines between blank ones with single spaces."""
    for is_text, together in groupby(lines, lambda line: bool(line.strip())):
        if is_text:
            yield " ".join(" ".join(together).split())


def sentence_of(span: Span | Doc) -> Sentence | None:
    """Convert ``span`` to a sentence without a name, and without spaCy's white-space tokens.

    None if no other token is left.
    """
    tokens = [token for token in span if not token.is_space]
    if not tokens:
        return None
    index = {token.i: k for k, token in enumerate(tokens)}
    columns: dict[str, Iterable[Any]] = {
        "lemma": (token.lemma_ for token in tokens),
        "upos": (token.pos_ for token in tokens),
        "xpos": (token.tag_ for token in tokens),
        "feats": (str(token.morph) for token in tokens),
    }
    return Sentence(
        id="",
        document="",
        position=0,
        words=tuple(token.text for token in tokens),
        governors=tuple(index.get(_governor(token), ROOT) for token in tokens),
        relations=tuple(token.dep_ for token in tokens),
        annotations={name: tuple(x or MISSING for x in texts) for name, texts in columns.items()},
        spaces=tuple(map(_has_space, tokens)),
    )


def _has_space(token: Token) -> bool:
    """Tell whether white space follows a token, also as a token of its own."""
    following = token.i + 1
    return bool(token.whitespace_) or (
        following < len(token.doc) and bool(token.doc[following].is_space)
    )


def _governor(token: Token) -> int:
    """Return the document index of the first governor that is a word, -1 for a root."""
    while token.head.i != token.i:
        token = token.head
        if not token.is_space:
            return int(token.i)
    return -1
