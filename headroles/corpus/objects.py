"""Corpora from objects in memory: texts, columns of tables, spaCy documents, trees."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from headroles.corpus.items import (
    Items,
    of_docs,
    of_sentences,
    of_trees,
    parse_cells,
    parse_lines,
    parse_texts,
)
from headroles.corpus.parsing import is_from_spacy, load_pipeline
from headroles.corpus.sentence import Corpus, Sentence, Skipped
from headroles.errors import UsageError
from headroles.wording import has_halves, listed, not_among

if TYPE_CHECKING:
    from spacy.language import Language

_WANTED = (
    "come from read_conllu, read_text, read_pairs or make_corpus, or be the path of a treebank, "
    "a list of spaCy documents, of triples (words, governors, relations) or of Sentence, or, with "
    "a parser, texts"
)


def make_corpus(
    given: Iterable[Any],
    *,
    parser: str | Language | None = None,
    text_columns: Sequence[str] | None = None,
    documents: Iterable[str | int] | None = None,
    lines: bool = False,
) -> Corpus:
    """Make a corpus of objects in memory; no file is read or written.

    Every item is a document of its own, unless ``documents`` names the document of each: sentences
    are paired within documents, and documents are clusters of tests.

    Args:
        given: one of

            - texts, to be parsed: a list, or a column of a `datasets.Dataset` or a data frame.
              They are read as `read_text` reads files.
            - a `datasets.Dataset` or a data frame, with ``text_columns``. Rows are read as
              `read_pairs` reads them.
            - parsed spaCy documents (`Doc`), as ``nlp.pipe`` yields them.
            - triples (words, governors, relations), one for each sentence. ``governors`` has for
              each word the place of its governor, from 0, and -1 for the root.
            - `Sentence` objects, which name their documents themselves.
        parser: a spaCy pipeline, or the name or path of one, for texts.
        text_columns: the columns of a table that hold the text: one, or two for pairs.
        documents: names, as many as ``given`` has items.
        lines: whether every text is one sentence, even if the pipeline finds several.

    Raises:
        UsageError: objects of another kind, or arguments that contradict each other.
        CorpusError: a document without a parse, or a triple that is not a tree. Errors in a text
            show when the corpus is read.
        ParserError: the pipeline cannot be loaded or does not parse.

    >>> corpus = make_corpus([(("Dogs", "bark"), (1, -1), ("nsubj", "root"))])
    >>> [sentence.words for sentence in corpus]
    [('Dogs', 'bark')]
    """
    if text_columns is not None or _columns_of(given) is not None:
        given, kind = _rows(given, text_columns), _ROWS
    else:
        given = _held(given)
        kind = _kind_of(given)
    _refuse_contradictions(kind, parser, documents, lines)
    names = None if documents is None else _document_names(documents, len(given))
    if kind.parsed is not None:
        sentences = tuple(_placed(kind.parsed(given, Counter()), kind, names))
        return Corpus(
            source={"format": kind.format, "files": []}, read=lambda skipped: iter(sentences)
        )
    assert parser is not None
    pipeline = load_pipeline(parser)
    parse = parse_cells if kind is _ROWS else (parse_lines if lines else parse_texts)

    def read(skipped: Skipped) -> Iterator[Sentence]:
        return _placed(parse(pipeline, given, skipped), kind, names)

    source = pipeline.source(kind.format, {"files": []})
    if kind is _ROWS:
        source["text_columns"] = list(text_columns or ())
    else:
        source["lines"] = lines
    return Corpus(source, read)


@dataclass(frozen=True)
class _Kind:
    """A kind of items: its name, its format, and the function that yields its sentences."""

    name: str
    format: str
    parsed: Callable[[Sequence[Any], Skipped], Items] | None = None
    apart: bool = False
    """Whether sentences of two items are never adjacent."""


_TEXTS = _Kind("text", "texts")
_ROWS = _Kind("row", "rows", apart=True)
_DOCS = _Kind("doc", "docs", of_docs)
_TREES = _Kind("tree", "sentences", of_trees)
_SENTENCES = _Kind("sentence", "sentences", of_sentences)


def _kind_of(given: Sequence[Any]) -> _Kind:
    first = given[0] if len(given) else None
    if isinstance(first, str):
        return _TEXTS
    if isinstance(first, Sentence):
        return _SENTENCES
    if is_from_spacy(first, "tokens", "Doc"):
        return _DOCS
    if _is_triple(first):
        return _TREES
    raise UsageError(f"the corpus is {named(given)}; it must {_WANTED}")


def _is_triple(given: object) -> bool:
    return (
        isinstance(given, tuple | list) and len(given) == 3 and all(_is_many(one) for one in given)
    )


def _is_many(given: object) -> bool:
    return isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping | Set)


def _held(given: object) -> Sequence[Any]:
    """Return items that can be iterated repeatedly. Raises UsageError for other objects."""
    if not _is_many(given):
        raise UsageError(f"the corpus is {named(given)}; it must {_WANTED}")
    assert isinstance(given, Iterable)
    return given if isinstance(given, Sequence) else tuple(given)


def _columns_of(given: object) -> list[str] | None:
    """Return the column names of a `datasets.Dataset` or a data frame; None for other objects."""
    names: Any = getattr(given, "column_names", getattr(given, "columns", None))
    return list(map(str, names)) if _is_many(names) and hasattr(given, "__getitem__") else None


def _rows(given: Any, wanted: Sequence[str] | None) -> list[tuple[Any, ...]]:
    """Return the cells of the wanted columns, row by row. Raises UsageError."""
    names = _columns_of(given)
    if names is None:
        raise UsageError(
            f"text_columns need a table, but the corpus is {named(given)}; omit text_columns"
        )
    wanted = [wanted] if isinstance(wanted, str) else list(wanted or ())
    if not 1 <= len(wanted) <= 2 or len(set(wanted)) < len(wanted):
        raise UsageError(
            f"text_columns is {wanted}; give one column of the table, or two for pairs, out of "
            f"{listed(names, 12)}"
        )
    for name in wanted:
        if name not in names:
            raise UsageError(not_among("column", name, names))
    return list(zip(*(given[name] for name in wanted), strict=True))


def named(given: object) -> str:
    """Describe an object that was given as a corpus, for messages."""
    if isinstance(given, Sequence) and not isinstance(given, str | bytes):
        kinds = listed(sorted({type(one).__name__ for one in given}))
        return (
            f"a {type(given).__name__} of {kinds}" if given else f"an empty {type(given).__name__}"
        )
    return f"a {type(given).__name__}"


def _refuse_contradictions(kind: _Kind, parser: object, documents: object, lines: bool) -> None:
    if kind.parsed is None and parser is None:
        raise UsageError(
            "texts must be parsed; name a spaCy pipeline: make_corpus(TEXTS, parser=PIPELINE)"
        )
    if kind.parsed is not None and parser is not None:
        raise UsageError(f"{kind.name}s are parsed already; omit parser, or give texts")
    if lines and kind is not _TEXTS:
        raise UsageError(f"lines applies to texts, but these are {kind.name}s; omit lines")
    if documents is not None and kind is _SENTENCES:
        raise UsageError("a Sentence names its document itself; omit documents")


def _document_names(given: Iterable[Any], n_items: int) -> tuple[str, ...]:
    names = tuple(given)
    for place, name in enumerate(names):
        if isinstance(name, str) and name and not has_halves(name):
            continue
        try:
            operator.index(name)
        except TypeError:
            raise UsageError(
                f"the document at place {place} is {name!r}; give a name or a whole number"
            ) from None
    if len(names) != n_items:
        raise UsageError(f"documents has {len(names)} names for {n_items} items; give one for each")
    return tuple(map(str, names))


def _placed(items: Items, kind: _Kind, names: tuple[str, ...] | None) -> Iterator[Sentence]:
    """Yield sentences with their documents, and their positions there."""
    last: dict[str, int] = {}
    before: tuple[int, str] | None = None
    for item, sentence in items:
        if kind is _SENTENCES:
            yield sentence
            continue
        document = f"{kind.name} {item + 1}" if names is None else names[item]
        position = last.get(document, -1) + 1
        # a gap in positions separates a sentence from one it does not follow
        if position and before != (item, document):
            position += kind.apart or before is None or before[1] != document
        last[document], before = position, (item, document)
        yield replace(sentence, document=document, position=position)
