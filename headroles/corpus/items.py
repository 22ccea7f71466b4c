"""Items that are in memory -> sentences: texts, rows of a table, spaCy's documents, trees."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from headroles.corpus.corpus import Skipped
from headroles.corpus.parsing import Pipeline, is_from_spacy, sentence_of
from headroles.corpus.sentence import MISSING, Sentence, tree_defect
from headroles.corpus.text import paragraphs
from headroles.errors import CorpusError
from headroles.wording import has_halves

if TYPE_CHECKING:
    from spacy.tokens import Doc

Items = Iterator[tuple[int, Sentence]]
"""Sentences with the place of the item that they are from, not yet placed in documents."""

WITHOUT_WORDS = "texts without words"
_HALVES = (
    "halves of characters (surrogates), which UTF-8 cannot write; decode it from its bytes again"
)


# Texts, parsed when they are read


def parse_texts(pipeline: Pipeline, texts: Sequence[Any], skipped: Skipped) -> Items:
    """The sentences of every text, whose blank lines end paragraphs."""

    def parts() -> Iterator[tuple[str, int]]:
        for item, text in enumerate(texts):
            some = list(paragraphs(_checked(text, "text", item).split("\n")))
            if not some:
                skipped[WITHOUT_WORDS] += 1
            yield from ((part, item) for part in some)

    counts: Counter[int] = Counter()
    for doc, item in pipeline.nlp.pipe(parts(), as_tuples=True):
        for span in doc.sents:
            sentence = sentence_of(span, f"text-{item + 1}.{counts[item] + 1}", "", 0)
            if sentence is not None:
                counts[item] += 1
                yield item, sentence


def parse_lines(pipeline: Pipeline, texts: Sequence[Any], skipped: Skipped) -> Items:
    """Every text as one sentence."""
    lines = ((_checked(text, "text", item), item) for item, text in enumerate(texts))
    return _parse_whole(pipeline, ((t, (k, f"text-{k + 1}")) for t, k in lines), skipped)


def parse_cells(pipeline: Pipeline, rows: Sequence[Any], skipped: Skipped) -> Items:
    """Every cell of a row as one sentence."""

    def cells() -> Iterator[tuple[str, tuple[int, str]]]:
        for item, row in enumerate(rows):
            for place, cell in enumerate(row):
                name = f"row-{item + 1}" + (f".{place + 1}" if len(row) > 1 else "")
                yield _checked(cell, "row", item), (item, name)

    return _parse_whole(pipeline, cells(), skipped)


def _parse_whole(
    pipeline: Pipeline, texts: Iterator[tuple[str, tuple[int, str]]], skipped: Skipped
) -> Items:
    """Each text as one sentence, with the trees of all that the pipeline finds in it."""
    one_line = ((" ".join(text.split()), named) for text, named in texts)
    for doc, (item, name) in pipeline.nlp.pipe(one_line, as_tuples=True):
        sentence = sentence_of(doc, name, "", 0)
        if sentence is None:
            skipped[WITHOUT_WORDS] += 1
        else:
            yield item, sentence


def _checked(text: Any, what: str, item: int) -> str:
    if not isinstance(text, str):
        raise CorpusError(
            f"{what} {item + 1} holds a {type(text).__name__} in the place of a text; leave it out"
        )
    if has_halves(text):
        raise CorpusError(f"{what} {item + 1} has {_HALVES}")
    return text


# What is parsed already


def of_docs(docs: Sequence[Any], skipped: Skipped) -> Items:
    """The sentences of every `Doc`, as its own boundaries have them."""
    for item, doc in enumerate(docs):
        if not is_from_spacy(doc, "tokens", "Doc"):
            raise CorpusError(f"item {item + 1} is a {type(doc).__name__} among documents of spaCy")
        yield from ((item, sentence) for sentence in _of_doc(doc, f"doc-{item + 1}"))


def _of_doc(doc: Doc, name: str) -> Iterator[Sentence]:
    if all(token.is_space for token in doc):
        return
    if any(not token.dep_ for token in doc if not token.is_space):
        raise CorpusError(
            f"{name} has words without a dependency relation; parse it with a pipeline that has a "
            "dependency parser"
        )
    n_sentences = 0
    for span in doc.sents:
        sentence = sentence_of(span, f"{name}.{n_sentences + 1}", "", 0)
        if sentence is not None:
            n_sentences += 1
            yield sentence


def of_trees(triples: Sequence[Any], skipped: Skipped) -> Items:
    """A sentence of each triple (words, governors, relations)."""
    for item, triple in enumerate(triples):
        name = f"tree-{item + 1}"
        try:
            words, governors, relations = map(tuple, triple)
        except (TypeError, ValueError) as error:
            raise CorpusError(f"{name} is no triple (words, governors, relations)") from error
        yield item, _of_tree(name, words, governors, relations)


def _of_tree(
    name: str, words: tuple[Any, ...], governors: tuple[Any, ...], relations: tuple[Any, ...]
) -> Sentence:
    lengths = [len(words), len(governors), len(relations)]
    if len(set(lengths)) > 1:
        raise CorpusError(
            f"{name} has {lengths[0]} words, {lengths[1]} governors and {lengths[2]} relations; "
            "each word has one of both"
        )
    if not words:
        raise CorpusError(f"{name} has no words; leave it out")
    for place, (word, relation) in enumerate(zip(words, relations, strict=True)):
        if not isinstance(word, str) or not word.strip() or has_halves(word):
            raise CorpusError(f"{name}: the word at place {place} is {word!r}; it must be a text")
        if not isinstance(relation, str) or relation in ("", MISSING) or not relation.isprintable():
            raise CorpusError(
                f"{name}: the relation at place {place} is {relation!r}; it must be a label"
            )
    return Sentence(name, "", 0, words, _tree(name, governors), relations)


def _tree(name: str, given: tuple[Any, ...]) -> tuple[int, ...]:
    try:
        governors = tuple(map(operator.index, given))
    except TypeError:
        raise CorpusError(
            f"{name} has governors that are no whole numbers; they are places of words from 0, "
            "and -1 for the root"
        ) from None
    if defect := tree_defect(governors):
        raise CorpusError(
            f"{name} {defect}, when words are numbered from 1; governors are given as places of "
            "words from 0, and -1 for the root"
        )
    return governors


def of_sentences(sentences: Sequence[Any], skipped: Skipped) -> Items:
    """The sentences themselves."""
    for item, sentence in enumerate(sentences):
        if not isinstance(sentence, Sentence):
            raise CorpusError(f"item {item + 1} is a {type(sentence).__name__} among Sentences")
        if any(map(has_halves, (sentence.id, sentence.document, *sentence.words))):
            raise CorpusError(f"sentence {item + 1} has {_HALVES}")
        yield item, sentence
