"""Control of roles of pairs: the arcs of another sentence with as many words.

A head that follows syntax attends along the arcs of a sentence, and not along arcs between the same
places of another tree. Each sentence borrows the arcs of a sentence of another document that has as
many words (of another sentence, if the corpus is one document). Arcs between two words that a real
arc joins, in either direction, are skipped: such words attend to each other for syntactic reasons.
A sentence without a lender has no such arcs.

The lender depends on the sentence and the corpus alone, and on no seed: of each length, the
sentences with the smallest digests lend, and the digest of a sentence chooses among them. So it is
the same in each part of a corpus, after an interruption, and on any machine.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from operator import itemgetter
from sys import intern
from typing import ClassVar

from headroles.corpus import Sentence
from headroles.role_names import contrast_of, is_contrast, other_trees_of
from headroles.roles.pairs import FindLinks, Link, Pairs
from headroles.roles.role import Role

MOST_LENDERS = 16
"""Sentences of each length that lend their arcs, which bounds memory."""


class Lenders:
    """The sentences of a corpus that lend their arcs, by number of words.

    ``n_without`` sentences of the corpus find no lender.
    """

    def __init__(self, sentences: Iterable[Sentence]) -> None:
        self._of_length: dict[int, list[tuple[int, Sentence]]] = {}
        keys = []
        for sentence in sentences:
            n_words, digest, _ = key = _key(sentence)
            keys.append(key)
            lenders = self._of_length.setdefault(n_words, [])
            if len(lenders) < MOST_LENDERS or digest < lenders[-1][0]:
                if digest not in map(itemgetter(0), lenders):
                    insort(lenders, (digest, sentence), key=itemgetter(0))
                del lenders[MOST_LENDERS:]
        self._has_documents = len({document for _, _, document in keys}) > 1
        self.n_without = sum(self._lender(*key) is None for key in keys)

    def lender_of(self, sentence: Sentence) -> Sentence | None:
        """Return the sentence that lends its arcs to a sentence; None if there is none."""
        return self._lender(*_key(sentence))

    def _lender(self, n_words: int, own: int, document: str) -> Sentence | None:
        lenders = self._of_length.get(n_words, [])
        first = own % max(len(lenders), 1)
        for digest, lender in lenders[first:] + lenders[:first]:
            if digest != own and not (self._has_documents and lender.document == document):
                return lender
        return None


def _key(sentence: Sentence) -> tuple[int, int, str]:
    """Return the number of words, their digest, and the document, which sentences share."""
    content = "\0".join(sentence.words).encode("utf-8", "surrogatepass")
    digest = int.from_bytes(blake2b(content, digest_size=8).digest(), "little")
    return len(sentence.words), digest, intern(str(sentence.document))


@dataclass(frozen=True)
class BorrowedLinks(FindLinks):
    """Finder of the links that the sentences of examples borrow."""

    is_control: ClassVar[bool] = True

    find: FindLinks
    lenders: Lenders

    def of_sentence(self, sentence: Sentence) -> list[Link]:
        """Return the links of the lender, without those between words that a link joins."""
        lender = self.lenders.lender_of(sentence)
        if lender is None:
            return []
        joined = self.find.joined_in(sentence)
        return [link for link in self.find.of_sentence(lender) if frozenset(link[:2]) not in joined]

    def of_pair(self, first: Sentence, second: Sentence) -> list[Link]:
        """Return the links to a lender in the place of the second sentence, without real ones."""
        lender = self.lenders.lender_of(second)
        if lender is None:
            return []
        real = self.find.joined_across(first, second)
        return [link for link in self.find.of_pair(first, lender) if link[:2] not in real]

    def joined_in(self, sentence: Sentence) -> set[frozenset[int]]:
        """Return the pairs of words that a borrowed link or one of their own joins."""
        return super().joined_in(sentence) | self.find.joined_in(sentence)

    def joined_across(self, first: Sentence, second: Sentence) -> set[tuple[int, int]]:
        """Return such pairs of a word of each sentence."""
        return super().joined_across(first, second) | self.find.joined_across(first, second)


def with_other_trees(
    roles: Iterable[Role], sentences: Iterable[Sentence]
) -> tuple[tuple[Role, ...], int]:
    """Return for each role of pairs, and each contrast, its control with borrowed arcs.

    The number is that of the sentences that find no lender.
    """
    of_pairs = [(role, role.sieve) for role in roles if isinstance(role.sieve, Pairs)]
    if not of_pairs:
        return (), 0
    lenders = Lenders(sentences)
    return tuple(_controls_of(of_pairs, lenders)), lenders.n_without


def _controls_of(of_pairs: Iterable[tuple[Role, Pairs]], lenders: Lenders) -> Iterator[Role]:
    for role, sieve in of_pairs:
        name = other_trees_of(role.id.removesuffix(contrast_of("")))
        yield replace(
            role,
            id=contrast_of(name) if is_contrast(role.id) else name,
            sieve=replace(sieve, find=BorrowedLinks(sieve.find, lenders)),
        )
