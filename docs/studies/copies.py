"""A bitext whose targets are copies: to find heads that copy, where no gold alignment is at hand.

The source of each pair are two neighbouring sentences of a treebank, its target the second of them;
each word of the target is linked to its own copy. As the first sentences differ in length, no place
in the source finds the copies, and words of the first sentence that are spelled alike are no links.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import headroles as hr
from headroles.corpus import Corpus, Sentence
from headroles.corpus.sentence import MISSING, ROOT


def copies(treebank: Path) -> Corpus:
    """Return the bitext; its pairs are of the documents of the treebank, and share no sentence."""
    pairs = [*pairs_in(hr.read_conllu(treebank))]
    return hr.make_corpus(
        [
            {"source": joined(first, second), "target": second, "links": links_to(first, second)}
            for first, second in pairs
        ],
        documents=[first.document for first, _ in pairs],
    )


def pairs_in(corpus: Corpus) -> Iterator[tuple[Sentence, Sentence]]:
    """Yield neighbouring sentences, each sentence once."""
    before: Sentence | None = None
    for sentence in corpus:
        if before and is_next(before, sentence):
            yield before, sentence
            before = None
        else:
            before = sentence


def is_next(before: Sentence, sentence: Sentence) -> bool:
    """Tell whether a sentence follows another in the same document."""
    return before.document == sentence.document and before.position + 1 == sentence.position


def joined(first: Sentence, second: Sentence) -> Sentence:
    """Return both sentences as one text without a tree."""
    n_words = len(first.words) + len(second.words)
    columns = first.annotations.keys() & second.annotations.keys()
    return replace(
        first,
        words=first.words + second.words,
        governors=(ROOT,) * n_words,
        relations=(MISSING,) * n_words,
        annotations={name: first.column(name) + second.column(name) for name in columns},
        n_multiword=first.n_multiword + second.n_multiword,
        spaces=(*first.spaces[:-1], True, *second.spaces) if first.spaces and second.spaces else (),
    )


def links_to(first: Sentence, second: Sentence) -> list[tuple[int, int]]:
    """Return links (word of both sentences, word of the second)."""
    return [(len(first.words) + place, place) for place in range(len(second.words))]
