"""Classes of words: what a head may look for without any tree, such as the nearest verb.

The class of a word is its universal part of speech, with names (PROPN) as nouns; a user may name
another column or feature. In a corpus without parts of speech the class of a word is its form.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headroles.arrays import IntArray
from headroles.corpus import MISSING, OPEN_CLASSES, Sentence
from headroles.encoding import pad
from headroles.errors import UsageError
from headroles.roles.batch import PaddedBatch, placed_sentences

UPOS = "upos"
"""The column of the classes of words, if a user names no other."""
COLUMNS = (UPOS, "xpos", "lemma")
KEYED = ("feats", "misc")
_SAME = {"PROPN": "NOUN"}
"""Parts of speech that stand where those of another class stand."""


def check_classes(source: str) -> str:
    """Return the source of classes if it names a column or feature. Raises UsageError otherwise."""
    name = str(source)
    column, _, key = name.partition(":")
    if name not in COLUMNS and not (column in KEYED and key):
        raise UsageError(
            f"`classes={name!r}` is no source of classes of words; pass {', '.join(COLUMNS)}, "
            "feats:KEY or misc:KEY"
        )
    return name


def classes_in(sentence: Sentence, source: str = UPOS) -> list[str]:
    """Return the class of each word of a sentence.

    ``source`` is the name of a column (``upos``, ``xpos``, ``lemma``), ``feats:KEY`` or
    ``misc:KEY``. A word that has nothing there is of the class of its form, without case.
    """
    column, _, key = source.partition(":")
    if key:
        entries = sentence.feats if column == "feats" else sentence.misc
        texts = tuple(of_word.get(key, MISSING) for of_word in entries)
    else:
        texts = sentence.column(column)
    if source == UPOS:
        texts = tuple(_SAME.get(text, text) for text in texts)
    return [
        f"{MISSING} {word.casefold()}" if text == MISSING else text
        for text, word in zip(texts, sentence.words, strict=True)
    ]


class Words(NamedTuple):
    """The words of a batch (B, W): numbers of classes and sentences, first pieces, piece counts.

    Beyond the end of an example, classes and sentences are -1 and pieces 0. ``numbers`` are those
    of classes, by name.
    """

    numbers: dict[str, int]

    classes: IntArray
    sentences: IntArray
    starts: IntArray
    sizes: IntArray


def find_words(batch: PaddedBatch, source: str) -> Words:
    """Find the words of all examples, with their classes."""
    numbers: dict[str, int] = {}
    classes, sentences = [], []
    for example in batch.examples:
        texts = [text for part in example.sentences for text in classes_in(part, source)]
        classes.append(np.array([numbers.setdefault(text, len(numbers)) for text in texts]))
        lengths = [len(sentence.words) for _, sentence in placed_sentences(example)]
        sentences.append(np.repeat(np.arange(len(lengths)), lengths))
    return Words(
        numbers,
        pad(classes, -1),
        pad(sentences, -1),
        pad([example.starts for example in batch.examples], 0),
        pad([example.sizes for example in batch.examples], 0),
    )


def find_open(batch: PaddedBatch) -> IntArray:
    """Return (B, W) 1 for the words of open classes, such as nouns and verbs, and 0 for others."""
    words = batch.of(find_words, UPOS)
    numbers = [number for name, number in words.numbers.items() if name in OPEN_CLASSES]
    return np.isin(words.classes, numbers).astype(np.int64)
