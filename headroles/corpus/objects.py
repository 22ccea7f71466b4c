"""Corpora from objects in memory: texts, columns of tables, spaCy documents, trees."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, TypeGuard

from headroles.corpus.arcs import KEY, ArcsOptions, checked_spaces, sequence_of
from headroles.corpus.bitext import BITEXT, Place, as_pair, sentence_of_words
from headroles.corpus.rows import has_trees, rows_of, sentence_of_row
from headroles.corpus.sentence import (
    OTHER,
    ROOT,
    Corpus,
    Positions,
    Sentence,
    Skipped,
    is_label,
    tree_defect,
)
from headroles.corpus.spacing import SpacingOptions, with_spacing
from headroles.corpus.text import Pipeline, is_from_spacy, load_pipeline, paragraphs, sentence_of
from headroles.corpus.withheld import WithheldText
from headroles.errors import CorpusError, UsageError
from headroles.wording import has_halves, listed, not_among, shortened

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

Items = Iterator[tuple[int, Sentence]]
"""Sentences with the number of their item, not yet assigned to documents."""

_WANTED = (
    "come from read_conllu, read_text, read_pairs or make_corpus, or be the path of a treebank, "
    "a list of spaCy documents, of triples (words, governors, relations), of Sentence, of tokens "
    "and arcs ({'tokens': [...], 'arcs': [[from, to, label], ...]}), of rows of a treebank "
    "({'tokens': [...], 'head': [...], 'deprel': [...]}) or of pairs ({'source': ..., 'target': "
    "..., 'links': '0-0 1p2'}), or, with a parser, texts"
)
_TREE_ROW = "tree row"
_PAIR, _SIDES, _LINKS = "pair", ("source", "target"), "links"
"""Kind of pairs of a source and a target, and the keys of their mappings."""
_PARSED = {
    "doc": "a spaCy document",
    "tree": "a triple (words, governors, relations)",
    "sentence": "a Sentence",
    KEY: "a mapping with tokens and arcs",
    _TREE_ROW: "a row with tokens, head and deprel",
    _PAIR: "a mapping with source and target",
}
"""Kinds of objects that are parsed, in the words of messages."""
_HALVES = (
    "halves of characters (surrogates), which UTF-8 cannot encode; decode it from its bytes again"
)


def make_corpus(
    data: Iterable[Any],
    *,
    parser: str | Language | None = None,
    text_columns: Sequence[str] | None = None,
    documents: Iterable[str | int] | None = None,
    lines: bool = False,
    least_distance: int = 1,
    links_from: Literal[0, 1] = 0,
    spacing: Literal["text", "words"] = "text",
    join_spaces: str | None = None,
) -> Corpus:
    """Make a corpus of objects in memory; no file is read or written.

    Every item is a document of its own, unless ``documents`` names the document of each: sentences
    are paired within documents, and documents are clusters of tests.

    Args:
        data: one of

            - texts, to be parsed: a list, or a column of a `datasets.Dataset` or a data frame.
              They are read as `read_text` reads files.
            - a `datasets.Dataset` or a data frame, with ``text_columns``. Rows are read as
              `read_pairs` reads them.
            - parsed spaCy documents (`Doc`), as ``nlp.pipe`` yields them.
            - triples (words, governors, relations), one for each sentence. ``governors`` has for
              each word the place of its governor, from 0, and -1 for the root. A fourth entry
              ``spaces`` tells of each word whether a space follows it in the text.
            - mappings with ``tokens`` and ``arcs``, as `read_arcs` reads them.
            - rows of a treebank with ``tokens``, ``head`` (from 1, and 0 for the root, as numbers
              or texts) and ``deprel``: mappings, or a `datasets.Dataset` of Universal Dependencies
              or a data frame, whose columns ``lemmas``, ``upos``, ``xpos``, ``feats`` and ``misc``
              are read too.
            - mappings with ``source`` and ``target``, or a `datasets.Dataset` or a data frame with
              these columns: pairs of a bitext, as `read_bitext` reads them. Either is a text whose
              words blanks separate, a list of words, or a sentence with its tree, in any of the
              forms above. ``links`` are a text, ``"0-0 1p2"``, or a list of such links and of pairs
              (word of the source, word of the target), which are sure ones.
            - `Sentence` objects, which name their documents themselves.
        parser: a spaCy pipeline, or the name or path of one, for texts.
        text_columns: the columns of a table that hold the text: one, or two for pairs.
        documents: names, as many as ``data`` has items.
        lines: whether every text is one sentence, even if the pipeline finds several.
        least_distance: of arcs that are read from mappings, in tokens.
        links_from: number of the first word in the links of pairs.
        spacing: ``"text"``, or ``"words"`` for a space before every word, as in `read_conllu`.
        join_spaces: text in place of spaces inside words, such as ``_``.

    Raises:
        UsageError: objects of another kind, or arguments that contradict each other.
        CorpusError: a document without a parse, a triple that is not a tree, or sentences whose
            text is withheld. Errors in a text show when the corpus is read.
        ParserError: the pipeline cannot be loaded or does not parse.

    >>> corpus = make_corpus([(("Dogs", "bark"), (1, -1), ("nsubj", "root"))])
    >>> [sentence.words for sentence in corpus]
    [('Dogs', 'bark')]
    """
    kind, items = _kind_of(data, text_columns)
    _check_arguments(kind, parser, documents, lines)
    if links_from != 0 and kind != _PAIR:
        raise UsageError(f"links_from applies to pairs, but these are {kind}s; omit links_from")
    names = None if documents is None else _document_names(documents, len(items))
    options = SpacingOptions(spacing=spacing, join_spaces=join_spaces)
    if parser is None:
        how: dict[str, Any] = {"format": "docs" if kind == "doc" else "sentences"}
        if kind == KEY:
            arcs = ArcsOptions(least_distance=least_distance)
            how = {"format": KEY, "scheme": OTHER, "least_distance": arcs.least_distance}
        if kind == _PAIR:
            sentences = tuple(_of_pairs(items, links_from, names))
            how = {"format": BITEXT, "links_from": links_from}
            if all(governor == ROOT for one in sentences for governor in one.governors):
                how["scheme"] = OTHER
        else:
            read_items = (
                (number, sentence)
                for number, item in enumerate(items)
                for sentence in _sentences_of(item, kind, number + 1, least_distance)
            )
            sentences = tuple(_placed(read_items, kind, names))
        text = WithheldText("the corpus")
        for sentence in sentences:
            text.count(sentence.words)
        text.check()
        source = {"files": [], **how}
        corpus = Corpus(source, lambda skipped: iter(sentences), sentences=sentences)
        return with_spacing(corpus, options)
    pipeline = load_pipeline(parser)

    def read(skipped: Skipped) -> Iterator[Sentence]:
        if kind == "row":
            rows = ([_checked(cell, "row", k) for cell in row] for k, row in enumerate(items))
            return _placed(pipeline.parse_rows(rows, "row", skipped), kind, names)
        return _placed(_of_texts(pipeline, items, skipped, lines), kind, names)

    reading = {"text_columns": list(text_columns or ())} if kind == "row" else {"lines": lines}
    parsed = pipeline.corpus(f"{kind}s", read, {"files": [], **reading})
    return with_spacing(parsed, options)


def _of_texts(pipeline: Pipeline, texts: Sequence[Any], skipped: Skipped, whole: bool) -> Items:
    """Yield the sentences of every text, whose paragraphs blank lines end; or each text whole."""

    def parts() -> Iterator[tuple[str, int]]:
        for item, text in enumerate(texts):
            checked = _checked(text, "text", item)
            some = list(paragraphs([checked] if whole else checked.split("\n")))
            if not some:
                skipped["texts without words"] += 1
            yield from ((part, item) for part in some)

    for item, parsed in groupby(pipeline.parse(parts(), whole), itemgetter(1)):
        sentences = (sentence for sentence, _ in parsed if sentence is not None)
        for number, sentence in enumerate(sentences, start=1):
            of_item = "" if whole else f".{number}"
            yield item, replace(sentence, id=f"text-{item + 1}{of_item}")


def _sentences_of(item: Any, kind: str, number: int, least_distance: int) -> Iterable[Sentence]:
    """Return the sentences of an object that is parsed; raises CorpusError for a defective one."""
    if _kind_of_item(item) != kind:
        raise CorpusError(
            f"item {number} ({type(item).__name__}) is not {_PARSED[kind]}, as item 1 is; give "
            "items of one kind"
        )
    return _parsed(item, kind, f"{kind}-{number}".replace(" ", "-"), least_distance)


def _parsed(item: Any, kind: str, name: str, least_distance: int = 1) -> Iterable[Sentence]:
    """Return the sentences of an object of a kind, which is called ``name`` in messages."""
    if kind == _TREE_ROW:
        return [sentence_of_row(item, name)]
    if kind == KEY:
        return [sequence_of({"id": name, "document": name, **item}, name, least_distance)]
    if kind == "tree":
        return [_tree_of(item, name)]
    if kind == "doc":
        return sentences_of_doc(item, name)
    if any(map(has_halves, (item.id, item.document, *item.words))):
        raise CorpusError(f"{name} has {_HALVES}")
    return [item]


def _of_pairs(
    items: Iterable[Any], links_from: int, names: tuple[str, ...] | None
) -> Iterator[Sentence]:
    """Yield the source and the target of each pair."""
    positions = Positions()
    for number, item in enumerate(items, start=1):
        if _kind_of_item(item) != _PAIR:
            raise CorpusError(f"item {number} ({type(item).__name__}) is not {_PARSED[_PAIR]}")
        name = f"pair-{number}"
        source, target = (_side_of(item[key], f"{name}.{key}") for key in _SIDES)
        links = _links_of(item.get(_LINKS), name)
        pair = as_pair(source, target, links, Place(name, name, links_from))
        document = name if names is None else names[number - 1]
        position = 2 * positions.next(document)
        for side, sentence in enumerate(pair):
            yield replace(sentence, document=document, position=position + side)


def _side_of(side: Any, name: str) -> Sentence:
    """Return a source or a target. Raises CorpusError for a value that is not one sentence."""
    kind = "" if isinstance(side, str) else _kind_of_item(side)
    if kind and kind not in ("text", _PAIR):
        if len(sentences := [*_parsed(side, kind, name)]) == 1:
            return sentences[0]
        raise CorpusError(f"{name} has {len(sentences)} sentences; give one")
    words = side.split() if isinstance(side, str) else [*side] if _is_many(side) else [side]
    for word in words:
        if not isinstance(word, str) or not word.strip() or has_halves(word):
            raise CorpusError(
                f"{name}: {shortened(repr(word))} is no word; give a text whose words blanks "
                "separate, a list of words, or a sentence with its tree"
            )
    if not words:
        raise CorpusError(f"{name} has no words; remove the pair")
    return sentence_of_words(words)


def _links_of(links: Any, name: str) -> list[str]:
    """Return links in the form of bitexts: those of a text, or of a list of texts and pairs."""
    is_empty = links is None or (isinstance(links, float) and math.isnan(links))
    if is_empty or isinstance(links, str):
        return [] if is_empty else links.split()
    if not isinstance(links, Iterable) or isinstance(links, bytes | Mapping):
        raise CorpusError(
            f"{name}: links is {shortened(repr(links))}; give a text, as '0-0 1p2', or a list of "
            "such links and of pairs of words"
        )
    return ["-".join(map(str, link)) if _is_many(link) else str(link) for link in links]


def sentences_of_doc(doc: Doc, name: str) -> Iterator[Sentence]:
    """Yield the sentences of a `Doc`, as spaCy divided it."""
    words = [token for token in doc if not token.is_space]
    if not all(token.dep_ for token in words):
        raise CorpusError(
            f"{name} has words without a dependency relation; parse it with a pipeline that has a "
            "dependency parser"
        )
    sentences = filter(None, map(sentence_of, doc.sents)) if words else ()
    for number, sentence in enumerate(sentences, start=1):
        yield replace(sentence, id=f"{name}.{number}")


def _tree_of(triple: Any, name: str) -> Sentence:
    """Return the sentence of a triple (words, governors, relations), maybe with its spaces."""
    words, governors, relations, *rest = map(tuple, triple)
    if not words or not len(words) == len(governors) == len(relations):
        raise CorpusError(
            f"{name} has {len(words)} words, {len(governors)} governors and {len(relations)} "
            "relations; give one of each for every word"
        )
    spaces = checked_spaces(rest[0] if rest else None, len(words), name)
    for place, (word, label) in enumerate(zip(words, relations, strict=True)):
        if not isinstance(word, str) or not word.strip() or has_halves(word):
            raise CorpusError(f"{name}: the word at place {place} is {word!r}; give a text")
        if not is_label(label):
            raise CorpusError(f"{name}: the relation at place {place} is {label!r}; give a label")
    advice = "give governors as places of words from 0, and -1 for the root"
    try:
        governors = tuple(map(operator.index, governors))
    except TypeError:
        raise CorpusError(f"{name} has governors that are not integers; {advice}") from None
    if defect := tree_defect(governors):
        raise CorpusError(f"{name} {defect} (words numbered from 1); {advice}")
    return Sentence(name, "", 0, words, governors, relations, spaces=spaces)


def _checked(text: Any, kind: str, item: int) -> str:
    if not isinstance(text, str):
        raise CorpusError(
            f"{kind} {item + 1} is a {type(text).__name__}; give a text, or remove it"
        )
    if has_halves(text):
        raise CorpusError(f"{kind} {item + 1} has {_HALVES}")
    return text


def _placed(items: Items, kind: str, names: tuple[str, ...] | None) -> Iterator[Sentence]:
    """Yield sentences with their documents, and their positions there."""
    positions, before = Positions(), -1
    for item, sentence in items:
        if kind == "sentence":
            yield sentence
        else:
            document = sentence.document or f"{kind} {item + 1}"
            document = document if names is None else names[item]
            # rows of a document are not adjacent
            position = positions.next(document, is_apart=kind == "row" and item != before)
            yield replace(sentence, document=document, position=position)
        before = item


# What was given


def _kind_of(data: object, text_columns: Sequence[str] | None) -> tuple[str, Sequence[Any]]:
    """Return the kind of objects, and the objects, which can be iterated repeatedly."""
    columns = _columns_of(data)
    if text_columns is None and {*_SIDES} <= {*(columns or ())}:
        table: Any = data
        names = [name for name in (*_SIDES, _LINKS) if name in (columns or ())]
        cells = zip(*(table[name] for name in names), strict=True)
        return _PAIR, [dict(zip(names, row, strict=True)) for row in cells]
    if text_columns is None and has_trees(columns or ()):
        return _TREE_ROW, rows_of(data, columns or ())
    if text_columns is not None or columns is not None:
        return "row", _rows(data, text_columns)
    if _is_many(data):
        data = data if isinstance(data, Sequence) else tuple(data)
        if len(data) and (kind := _kind_of_item(data[0])):
            return kind, data
    raise UsageError(f"the corpus is {_described(data)}; it must {_WANTED}")


def _kind_of_item(item: object) -> str:
    """Return the kind of an object in a list; empty for one that holds no text."""
    if isinstance(item, str):
        return "text"
    if isinstance(item, Sentence):
        return "sentence"
    if is_from_spacy(item, "tokens", "Doc"):
        return "doc"
    if isinstance(item, Mapping) and {*_SIDES} <= item.keys():
        return _PAIR
    if isinstance(item, Mapping) and "tokens" in item:
        return KEY if KEY in item or not has_trees(item) else _TREE_ROW
    is_triple = isinstance(item, tuple | list) and len(item) in (3, 4) and all(map(_is_many, item))
    return "tree" if is_triple else ""


def _is_many(value: object) -> TypeGuard[Iterable[Any]]:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping | Set)


def _columns_of(table: object) -> list[str] | None:
    """Return the column names of a `datasets.Dataset` or a data frame; None for other objects."""
    names: Any = getattr(table, "column_names", getattr(table, "columns", None))
    return list(map(str, names)) if _is_many(names) and hasattr(table, "__getitem__") else None


def _rows(table: Any, wanted: Sequence[str] | None) -> list[tuple[Any, ...]]:
    """Return the cells of the wanted columns, row by row. Raises UsageError."""
    names = _columns_of(table)
    if names is None:
        raise UsageError(
            f"text_columns need a table, but the corpus is {_described(table)}; omit text_columns"
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
    return list(zip(*(table[name] for name in wanted), strict=True))


def _described(value: object) -> str:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return f"a {type(value).__name__}"
    kinds = listed(sorted({type(item).__name__ for item in value}))
    return f"a {type(value).__name__} of {kinds}" if value else f"an empty {type(value).__name__}"


def _check_arguments(kind: str, parser: object, documents: object, lines: bool) -> None:
    """Raise UsageError for arguments that contradict the kind of objects."""
    if parser is None and kind not in _PARSED:
        raise UsageError(
            "texts must be parsed; name a spaCy pipeline: make_corpus(TEXTS, parser=PIPELINE)"
        )
    if parser is not None and kind in _PARSED:
        raise UsageError(f"{kind}s are parsed already; omit parser, or give texts")
    if lines and kind != "text":
        raise UsageError(f"lines applies to texts, but these are {kind}s; omit lines")
    if documents is not None and kind == "sentence":
        raise UsageError("a Sentence names its document itself; omit documents")


def _document_names(values: Iterable[Any], n_items: int) -> tuple[str, ...]:
    names = tuple(values)
    for place, name in enumerate(names):
        is_text = isinstance(name, str) and name and not has_halves(name)
        if not is_text and not hasattr(name, "__index__"):
            raise UsageError(
                f"the document at place {place} is {name!r}; give a name or a whole number"
            )
    if len(names) != n_items:
        raise UsageError(f"documents has {len(names)} names for {n_items} items; give one for each")
    return tuple(map(str, names))
