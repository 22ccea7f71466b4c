"""Punctuation heads: attention to punctuation marks."""

from __future__ import annotations

from collections.abc import Iterator
from unicodedata import category

import numpy as np

from headroles.corpus import MISSING
from headroles.encoding import EncodedExample
from headroles.errors import CorpusError
from headroles.options import Options
from headroles.roles.batch import PaddedBatch
from headroles.roles.key_sets import Shared
from headroles.roles.role import Context, Role
from headroles.roles.word_sets import WordSets


def roles(options: Options, context: Context) -> Iterator[Role]:
    """Yield the punctuation role. Raises CorpusError for a corpus without parts of speech."""
    if all(upos == MISSING for sentence in context.sentences for upos in sentence.upos):
        raise CorpusError(
            "no word of the corpus has a part of speech (UPOS), which the role punctuation needs; "
            "remove the role from roles (--roles), or give a treebank with that column"
        )
    words = "punctuation marks"
    yield Role("punctuation", words, unit="words", needs=words, sieve=WordSets(find_marks))


def find_marks(batch: PaddedBatch) -> list[Shared]:
    """Find punctuation marks as the keys of all words."""
    marks = np.zeros((batch.size, batch.width), dtype=bool)
    for row, example in enumerate(batch.examples):
        is_mark = np.array(marks_in(example), dtype=bool)
        words = batch.words[row]
        marks[row] = (words >= 0) & is_mark[np.maximum(words, 0)]
    return [Shared(batch.in_words, marks)]


def marks_in(example: EncodedExample) -> list[bool]:
    """Tell of each word whether it is punctuation: by its part of speech, else its characters."""
    return [
        upos == "PUNCT" if upos != MISSING else all(category(one).startswith("P") for one in word)
        for sentence in example.sentences
        for word, upos in zip(sentence.words, sentence.upos, strict=True)
    ]
