"""Contrasts with competitors: words that would attract attention to a partner without grammar.

A head that looks for the nearest verb finds the verb of many subjects, and attention that depends
on the offset alone does not explain it. To tell such a head from one that follows arcs, a contrast
subtracts from the attention between two words that a link joins the mean attention to their
competitors. Of a query x and its partner y these are

    near       words k of the class of y no farther from x than y, on either side: A[x, k]
    near:back  words k of the class of x no farther from y than x, on either side: A[k, y]
    between    words k of the class of y between x and y: A[x, k]

in the sentence of both, without k that a link joins, in either direction, to the word at which the
distance is measured: x, or y under near:back. Attention to the nearest word of a class on either
side has no positive contrast *near*, attention to the nearest one on one side no positive contrast
*between*, and a word that attracts all words of a class none by columns.

The weights of a link are those of its role (`headroles.roles.pairs`). Its competitors together have
their sum, each competitor the same share, and so has each of its pairs of pieces: uniform attention
has the contrast 0. A link without competitors is skipped, and the count of the score says how many
links remain.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from headroles.arrays import BoolArray, FloatArray, IntArray
from headroles.role_names import BETWEEN, NEAR, NEAR_BACK
from headroles.roles.batch import Scope
from headroles.roles.contrasts import (
    beyond_offset,
    contrast_readout,
    contrast_with,
)
from headroles.roles.pairs import (
    FindLinks,
    Pairs,
    find_pieces,
    find_weights,
    pairs_in_reach,
)
from headroles.roles.role import Role
from headroles.roles.rules import find_homes
from headroles.roles.sieve import KeySets, SieveReadout
from headroles.roles.weights import PairsOfExamples, spread
from headroles.roles.word_classes import UPOS, Words, find_words

COMPETITORS = {
    NEAR: "nearer words of the same class as the partner",
    NEAR_BACK: "nearer words of the same class as the query",
    BETWEEN: "words of the same class as the partner in between",
}
"""The competitors of each contrast, in words."""


class Competitors(NamedTuple):
    """The competitors of the links of a batch.

    Their pairs of pieces (P,) are ``at``, belong to ``links`` and have ``shares`` in the mean over
    the competitors of their link. ``n_of_links`` (2 L,) counts the competitors of each link, forth
    and after them back.
    """

    at: PairsOfExamples
    links: IntArray
    shares: FloatArray
    n_of_links: IntArray


def find_competitors(scope: Scope, find: FindLinks, contrast: str, source: str) -> Competitors:
    """Find the competitors of all links that have any within reach of their query."""
    batch = scope.batch
    table, words = batch.of(find), batch.of(find_words, source)
    n_links = 2 * len(table.owners)
    owners = np.tile(table.owners, 2)
    first, second = (batch.words[table.owners, end[:, 0]] for end in (table.first, table.second))
    attending, attended = np.concatenate([first, second]), np.concatenate([second, first])
    is_back = contrast == NEAR_BACK
    centre, partner = (attended, attending) if is_back else (attending, attended)
    competes = _competing(scope, find, words, owners, centre, partner)
    if contrast == BETWEEN:
        place = np.arange(competes.shape[1])
        low, high = np.minimum(centre, partner), np.maximum(centre, partner)
        competes &= (place > low[:, None]) & (place < high[:, None])
    link, word = np.nonzero(competes)
    owner = owners[link]
    of_competitors = np.stack([words.starts[owner, word], words.sizes[owner, word]], axis=1)
    fixed = np.stack([words.starts[owner, centre[link]], words.sizes[owner, centre[link]]], axis=1)
    ends = (of_competitors, fixed) if is_back else (fixed, of_competitors)
    number, query, key = pairs_in_reach(scope, owner, *ends)
    n_pairs = np.bincount(number, minlength=len(link))
    n_of_links = np.bincount(link[n_pairs > 0], minlength=n_links)
    return Competitors(
        PairsOfExamples(owner[number], query, key),
        link[number],
        1 / (n_pairs[number] * n_of_links[link[number]]),
        n_of_links,
    )


def _competing(
    scope: Scope,
    find: FindLinks,
    words: Words,
    owners: IntArray,
    centre: IntArray,
    partner: IntArray,
) -> BoolArray:
    """Mark (L, W) the words of the partner's class and sentence no farther from the centre.

    Between a source and a target, distances are from the word at the same part of the sentence.
    """
    place, home = np.arange(words.classes.shape[1]), find_homes(scope, owners, centre)
    competes: BoolArray = words.classes[owners] == words.classes[owners, partner][:, None]
    competes &= words.sentences[owners] == words.sentences[owners, partner][:, None]
    competes &= np.abs(place - home[:, None]) <= np.abs(partner - home)[:, None]
    competes &= ~scope.batch.of(find.joined_words)[owners, centre, : len(place)]
    # neither the word that distances are measured at nor the partner is a competitor
    competes &= (place != centre[:, None]) & (place != partner[:, None])
    return competes


@dataclass(frozen=True)
class BeyondCompetitors(Pairs):
    """Contrast of the links with some labels with competitors of a kind, by classes of words."""

    contrast: str = NEAR
    classes: str = UPOS

    @property
    def kind(self) -> Hashable:
        """Kind of the sieve; contrasts of the same links are read together."""
        return type(self), self.find, self.contrast, self.classes

    def readout(self, alike: Sequence[Pairs], scope: Scope, key_sets: KeySets) -> SieveReadout:
        """Find the weights of all links with competitors, and of these."""
        batch, pieces = scope.batch, scope.of(find_pieces, self.find)
        rivals = scope.of(find_competitors, self.find, self.contrast, self.classes)
        is_scored = pieces.is_scored & (rivals.n_of_links > 0)
        weights, limits, counts = find_weights(alike, scope, pieces, is_scored)
        is_read = is_scored[pieces.links]
        of_links = weights.sums_by(pieces.links, len(is_scored))
        return contrast_readout(
            batch,
            (pieces.at.chosen(is_read), weights.chosen(is_read)),
            (rivals.at, spread(of_links, rivals.links, rivals.shares)),
            limits,
            counts,
        )


def contrasts_of(role: Role, classes: str = UPOS) -> Iterator[Role]:
    """Yield all contrasts of a role of pairs: with other words at the offset, with competitors.

    ``classes`` names the column or feature that gives words their classes. Links across the two
    sentences of an example have no competitors, as there is no distance between their ends.
    """
    yield beyond_offset(role)
    pairs = role.sieve
    assert pairs is None or isinstance(pairs, Pairs)
    if pairs is not None and pairs.find.is_across:
        return
    for contrast in COMPETITORS:
        yield beyond_competitors(role, contrast, classes)


def beyond_competitors(role: Role, contrast: str, classes: str) -> Role:
    """Return the contrast of a role of pairs with competitors; without a sieve if it has none."""
    pairs, words = role.sieve, COMPETITORS[contrast]
    assert pairs is None or isinstance(pairs, Pairs)
    return contrast_with(
        role,
        contrast,
        words=words,
        needs=words,
        sieve=pairs
        and BeyondCompetitors(
            pairs.find, pairs.labels, pairs.direction, contrast=contrast, classes=classes
        ),
        meaning={} if classes == UPOS else {"classes": classes},
    )
