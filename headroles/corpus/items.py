"""Sentences from items in memory: texts, rows of a table, spaCy documents, trees."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from headroles.corpus.parsing import Pipeline, is_from_spacy, sentence_of
from headroles.corpus.sentence import MISSING, Sentence, Skipped, tree_defect
from headroles.corpus.text import paragraphs
from headroles.errors import CorpusError
from headroles.wording import has_halves

if TYPE_CHECKING:
    from spacy.tokens import Doc

Items = Iterator[tuple[int, Sentence]]
"""Sentences with the place of their item, not yet assigned to documents."""

WITHOUT_WORDS = "texts without words"
_HALVES = (
    "halves of characters (surrogates), which UTF-8 cannot encode; decode it from its bytes again"
)


# Texts, parsed when they are read


def parse_texts(pipeline: Pipeline, texts: Sequence[Any], skipped: Skipped) -> Items:
    """Yield the sentences of every text; blank lines end paragraphs."""

    def parts() -> Iterator[tuple[str, int]]:
        for item, text in enumerate(texts):
            some = list(paragraphs(_checked(text, "text", item).split("\n")))
            if not some:
                skipped[WITHOUT_WORDS] += 1
            yield from ((part, item) for part in some)

    counts: Counter[int] = Counter()
    for doc, item in pipeline.nlp.pipe(parts(), as_tuples=True):
        for span in doc.sents:
            sentence = sentence_of(span, f"text-{item + 1}.{counts[item] + 1}")
            if sentence is not None:
                counts[item] += 1
                yield item, sentence


def parse_lines(pipeline: Pipeline, texts: Sequence[Any], skipped: Skipped) -> Items:
    """Yield every text as one sentence."""
    lines = ((_checked(text, "text", item), item) for item, text in enumerate(texts))
    return _parse_whole(pipeline, ((t, (k, f"text-{k + 1}")) for t, k in lines), skipped)


def parse_cells(pipeline: Pipeline, rows: Sequence[Any], skipped: Skipped) -> Items:
    """Yield every cell of a row as one sentence."""

    def cells() -> Iterator[tuple[str, tuple[int, str]]]:
        for item, row in enumerate(rows):
            for place, cell in enumerate(row):
                name = f"row-{item + 1}" + (f".{place + 1}" if len(row) > 1 else "")
                yield _checked(cell, "row", item), (item, name)

    return _parse_whole(pipeline, cells(), skipped)


def _parse_whole(
    pipeline: Pipeline, texts: Iterator[tuple[str, tuple[int, str]]], skipped: Skipped
) -> Items:
    """Yield each text as one sentence, with the trees of all that the pipeline finds in it."""
    one_line = ((" ".join(text.split()), named) for text, named in texts)
    for doc, (item, name) in pipeline.nlp.pipe(one_line, as_tuples=True):
        sentence = sentence_of(doc, name)
        if sentence is None:
            skipped[WITHOUT_WORDS] += 1
        else:
            yield item, sentence


def _checked(text: Any, kind: str, item: int) -> str:
    if not isinstance(text, str):
        raise CorpusError(
            f"{kind} {item + 1} is a {type(text).__name__}; give a text, or remove it"
        )
    if has_halves(text):
        raise CorpusError(f"{kind} {item + 1} has {_HALVES}")
    return text


# Items that are parsed already


def of_docs(docs: Sequence[Any], skipped: Skipped) -> Items:
    """Yield the sentences of every `Doc`, by its own sentence boundaries."""
    for item, doc in enumerate(docs):
        if not is_from_spacy(doc, "tokens", "Doc"):
            raise CorpusError(
                f"item {item + 1} is a {type(doc).__name__} among spaCy documents; remove it"
            )
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
        sentence = sentence_of(span, f"{name}.{n_sentences + 1}")
        if sentence is not None:
            n_sentences += 1
            yield sentence


def of_trees(triples: Sequence[Any], skipped: Skipped) -> Items:
    """Yield a sentence for each triple (words, governors, relations)."""
    for item, triple in enumerate(triples):
        name = f"tree-{item + 1}"
        try:
            words, governors, relations = map(tuple, triple)
        except (TypeError, ValueError) as error:
            raise CorpusError(
                f"{name} is not a triple; give (words, governors, relations)"
            ) from error
        yield item, _of_tree(name, words, governors, relations)


def _of_tree(
    name: str, words: tuple[Any, ...], governors: tuple[Any, ...], relations: tuple[Any, ...]
) -> Sentence:
    lengths = [len(words), len(governors), len(relations)]
    if len(set(lengths)) > 1:
        raise CorpusError(
            f"{name} has {lengths[0]} words, {lengths[1]} governors and {lengths[2]} relations; "
            "give one of each for every word"
        )
    if not words:
        raise CorpusError(f"{name} has no words; remove it")
    for place, (word, relation) in enumerate(zip(words, relations, strict=True)):
        if not isinstance(word, str) or not word.strip() or has_halves(word):
            raise CorpusError(f"{name}: the word at place {place} is {word!r}; give a text")
        if not isinstance(relation, str) or relation in ("", MISSING) or not relation.isprintable():
            raise CorpusError(
                f"{name}: the relation at place {place} is {relation!r}; give a label"
            )
    return Sentence(name, "", 0, words, _tree(name, governors), relations)


def _tree(name: str, given: tuple[Any, ...]) -> tuple[int, ...]:
    try:
        governors = tuple(map(operator.index, given))
    except TypeError:
        raise CorpusError(
            f"{name} has governors that are not integers; give places of words from 0, and -1 "
            "for the root"
        ) from None
    if defect := tree_defect(governors):
        raise CorpusError(
            f"{name} {defect} (words numbered from 1); give governors as places of words from 0, "
            "and -1 for the root"
        )
    return governors


def of_sentences(sentences: Sequence[Any], skipped: Skipped) -> Items:
    """Yield the sentences themselves. Raises CorpusError for other items."""
    for item, sentence in enumerate(sentences):
        if not isinstance(sentence, Sentence):
            raise CorpusError(
                f"item {item + 1} is a {type(sentence).__name__} among Sentences; remove it"
            )
        if any(map(has_halves, (sentence.id, sentence.document, *sentence.words))):
            raise CorpusError(f"sentence {item + 1} has {_HALVES}")
        yield item, sentence
