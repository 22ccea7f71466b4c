"""Corpora from what is in memory: texts, columns of tables, spaCy's documents, trees."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from headroles.corpus.corpus import Corpus, Skipped
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
from headroles.corpus.sentence import Sentence
from headroles.errors import UsageError
from headroles.wording import has_halves, listed, not_among

if TYPE_CHECKING:
    from spacy.language import Language

_WANTED = (
    "come from read_conllu, read_text, read_pairs or make_corpus, or be the path of a treebank, or "
    "a list of spaCy documents, of triples (words, governors, relations), of Sentence, or with a "
    "parser of texts"
)


def make_corpus(
    given: Iterable[Any],
    *,
    parser: str | Language | None = None,
    text_columns: Sequence[str] | None = None,
    documents: Iterable[str | int] | None = None,
    lines: bool = False,
) -> Corpus:
    """A corpus of what is in memory; no file is read or written.

    Every item is a document of its own, unless ``documents`` has the name of the document of
    each: sentences are paired within documents, and documents are clusters of tests.

    Args:
        given: one of

            - texts, to be parsed: a list, or a column of a `datasets.Dataset` or a data frame.
              They are read as `read_text` reads files.
            - a `datasets.Dataset` or a data frame, with ``text_columns``. Rows are read as
              `read_pairs` reads them.
            - documents of spaCy (`Doc`), parsed, as ``nlp.pipe`` gives them.
            - triples (words, governors, relations), one for each sentence. ``governors`` has for
              each word the place of its governor, from 0, and -1 for the root.
            - `Sentence` objects, which name their documents themselves.
        parser: a spaCy pipeline, or the name or path of one, for texts.
        text_columns: the columns of a table that hold the text: one, or two for pairs.
        documents: names, as many as ``given`` has items.
        lines: whether every text is one sentence, whatever the pipeline takes it for.

    Raises:
        UsageError: things of another kind, or arguments that contradict them.
        CorpusError: a document without a parse, a triple that is no tree. What is wrong with a
            text shows when the corpus is read.
        ParserError: the pipeline cannot be loaded or does not parse.
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

    own: dict[str, Any] = {"text_columns": list(text_columns or ())}
    source = pipeline.source(kind.format, {"files": []})
    return Corpus(source | (own if kind is _ROWS else {"lines": lines}), read)


@dataclass(frozen=True)
class _Kind:
    """A kind of items: what it is called, and how sentences are made of what is parsed."""

    name: str
    format: str
    parsed: Callable[[Sequence[Any], Skipped], Items] | None = None
    apart: bool = False
    """Whether sentences of two items are never neighbours."""


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
    """Items that can be gone through more than once."""
    if not _is_many(given):
        raise UsageError(f"the corpus is {named(given)}; it must {_WANTED}")
    assert isinstance(given, Iterable)
    return given if isinstance(given, Sequence) else tuple(given)


def _columns_of(given: object) -> list[str] | None:
    """Names of the columns of a `datasets.Dataset` or a data frame; None of anything else."""
    names: Any = getattr(given, "column_names", getattr(given, "columns", None))
    return list(map(str, names)) if _is_many(names) and hasattr(given, "__getitem__") else None


def _rows(given: Any, wanted: Sequence[str] | None) -> list[tuple[Any, ...]]:
    """The cells of the columns wanted, row by row."""
    names = _columns_of(given)
    if names is None:
        raise UsageError(
            f"text_columns are those of a table, and the corpus is {named(given)}; leave them out"
        )
    wanted = [wanted] if isinstance(wanted, str) else list(wanted or ())
    if not 1 <= len(wanted) <= 2 or len(set(wanted)) < len(wanted):
        raise UsageError(
            f"text_columns is {wanted}; name one column of the table, or two for pairs: it has "
            f"{listed(names, 12)}"
        )
    for name in wanted:
        if name not in names:
            raise UsageError(not_among("column", name, names))
    return list(zip(*(given[name] for name in wanted), strict=True))


def named(given: object) -> str:
    """What was given in the place of a corpus, for messages."""
    if isinstance(given, Sequence) and not isinstance(given, str | bytes):
        kinds = listed(sorted({type(one).__name__ for one in given}))
        return (
            f"a {type(given).__name__} of {kinds}" if given else f"an empty {type(given).__name__}"
        )
    return f"a {type(given).__name__}"


def _refuse_contradictions(kind: _Kind, parser: object, documents: object, lines: bool) -> None:
    if kind.parsed is None and parser is None:
        raise UsageError(
            "texts must be parsed: name a spaCy pipeline, make_corpus(TEXTS, parser=PIPELINE)"
        )
    if kind.parsed is not None and parser is not None:
        raise UsageError(f"{kind.name}s are parsed already: leave parser out, or give texts")
    if lines and kind is not _TEXTS:
        raise UsageError(f"lines is of texts, and these are {kind.name}s: leave it out")
    if documents is not None and kind is _SENTENCES:
        raise UsageError("a Sentence names its document itself: leave documents out")


def _document_names(given: Iterable[Any], n_items: int) -> tuple[str, ...]:
    names = tuple(given)
    for place, name in enumerate(names):
        if isinstance(name, str) and name and not has_halves(name):
            continue
        try:
            operator.index(name)
        except TypeError:
            raise UsageError(
                f"the document at place {place} is {name!r}; it must be a name or a whole number"
            ) from None
    if len(names) != n_items:
        raise UsageError(
            f"documents has {len(names)} names, and there are {n_items} items; name that of each"
        )
    return tuple(map(str, names))


def _placed(items: Items, kind: _Kind, names: tuple[str, ...] | None) -> Iterator[Sentence]:
    """Sentences with their documents, and their positions there."""
    last: dict[str, int] = {}
    before: tuple[int, str] | None = None
    for item, sentence in items:
        if kind is _SENTENCES:
            yield sentence
            continue
        document = f"{kind.name} {item + 1}" if names is None else names[item]
        position = last.get(document, -1) + 1
        # A gap keeps apart what does not follow what was last in its document.
        if position and before != (item, document):
            position += kind.apart or before is None or before[1] != document
        last[document], before = position, (item, document)
        yield replace(sentence, document=document, position=position)
