"""Controls of roles of pairs: other words at the same distance, and the trees of other sentences.

Most arcs are short, so a head that only looks one position back or ahead scores high on syntax. To
correct for this, the contrast of a role subtracts from the attention of every pair of pieces (i, j)
of a link the mean attention of the same head over the controls, pairs of words of the same sentence
at the same offset y - x in words that no arc joins:

    contrast = sum over pairs of w_ij * (A[i, j] - C[y - x])

with the weights w of the role. Attention that depends on the offset of words alone scores exactly
0. A contrast is a difference of two sieves, and so a sieve with negative weights. Of links that are
no arcs of the tree, such as pairs of a user's own role, controls are pairs of words that no such
link joins. Of links across the two sentences of an example, controls are all such pairs across
them, within the reach of the layer.

A head may give the next word more attention from pronouns than from other words. So if a relation
is divided by the class of the dependent (``nsubj/function``), the controls of its arcs have a word
of the same class, open or closed, in the place of the dependent. Attention that depends on the
offset and on this class alone scores exactly 0.

A contrast smaller than the rounding error of its two sums is set to 0, because a head that looks at
positions alone leaves only rounding error.

A sentence may have no control at some distance: in a sentence of five words, no other pair is as
far apart as the first word and the last. A link with such a pair is skipped, and the count of the
score says how many links remain. The score of an example thus depends on that example alone.

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
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from hashlib import blake2b
from operator import itemgetter
from sys import intern
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from headroles.arrays import MODEL_TERMS, Float32Array, FloatArray, IntArray, rounding_bound
from headroles.corpus import Sentence
from headroles.role_names import BEYOND_OFFSET, OTHER_TREES, contrast_of, other_trees_of
from headroles.roles.batch import PaddedBatch, Scope
from headroles.roles.pairs import (
    FindLinks,
    Link,
    Pairs,
    find_pieces,
    find_weights,
    in_product,
)
from headroles.roles.role import Role
from headroles.roles.score import divide
from headroles.roles.sieve import Array, KeySets, Layer, SieveReadout
from headroles.roles.weights import PairsOfExamples, Weights, spread
from headroles.roles.word_classes import find_open

COUNTED_PAIRS, PAIRS_WITHOUT_CONTROLS = "pairs of pieces", "pairs of pieces without controls"
COUNTED_ARCS, ARCS_LEFT_OUT = "arcs", "arcs left out"


@dataclass(frozen=True)
class BeyondOffset(Pairs):
    """Contrast of the links with some labels."""

    def readout(self, alike: Sequence[Pairs], scope: Scope, key_sets: KeySets) -> SieveReadout:
        """Find the weights of all links with controls, and of their controls."""
        pieces = scope.of(find_pieces, self.find)
        controls = find_controls(scope, self.find)
        batch = scope.batch
        n_cells, n_groups = controls.totals.shape
        cells = controls.numbers[cells_of(batch, *pieces.at)]
        groups = cells * n_groups + groups_of(batch, self.find)[pieces.links]
        lacks_control = controls.totals.ravel()[groups] == 0
        is_scored = pieces.is_scored.copy()
        is_scored[pieces.links[lacks_control]] = False
        weights, limits, counts = find_weights(alike, scope, pieces, is_scored)
        # the mean of a group has the weights of all pairs of links in it
        sums = weights.sums_by(groups, n_cells * n_groups).reshape(n_cells, n_groups, len(alike))
        means = divide(sums, controls.totals[..., None])
        of_kinds = np.einsum("cgr,gk->ckr", means, kinds_of_groups(self.find))
        taken = of_kinds.reshape(-1, len(alike)).astype("f4")
        of_links = {
            COUNTED_PAIRS: len(lacks_control),
            PAIRS_WITHOUT_CONTROLS: int(lacks_control.sum()),
            COUNTED_ARCS: int(pieces.is_scored.sum()),
            ARCS_LEFT_OUT: int(pieces.is_scored.sum() - is_scored.sum()),
        }
        return contrast_readout(
            batch,
            (pieces.at, weights),
            (controls.at, spread(taken, controls.cells_by_kind, controls.weights)),
            limits,
            counts,
            Counter() if self.find.is_control else Counter(of_links),
        )


Side: TypeAlias = tuple[PairsOfExamples, Weights]
"""One side of a contrast: pairs, and their weights."""


def contrast_readout(
    batch: PaddedBatch,
    links: Side,
    controls: Side,
    limits: Float32Array,
    counts: IntArray,
    tally: Counter[str] | None = None,
) -> SieveReadout:
    """Return the readout of the attention along ``links`` less that to their ``controls``.

    ``limits`` (3, B, r) and ``counts`` (B, r) are those of the roles; ``tally`` counts controls.
    """
    (at, weights), n = links, batch.size
    totals = weights.sums_by(at.owners, n).astype(np.float32)
    n_terms = MODEL_TERMS + sum(
        side.counts_by(pairs.owners, n) for pairs, side in (links, controls)
    )
    return SieveReadout(
        function=read_contrasts,
        arrays=(
            *at.padded(batch, weights),
            *controls[0].padded(batch, controls[1]),
            rounding_bound(1, n_terms).astype(np.float32),
        ),
        # the score's constant is part of both sides of the difference and cancels; all attention
        # can be on controls
        limits=np.stack([0 * totals, -totals, limits[2] - limits[0]]),
        counts=counts,
        controls=tally or Counter(),
    )


def read_contrasts(
    layer: Layer,
    pairs: Array,
    weights: Array,
    control_pairs: Array,
    control_weights: Array,
    roundings: Array,
) -> Array:
    """Return the attention along links minus the attention to their controls, for r roles.

    ``pairs`` (B, P) of links have ``weights`` (B, P, r), and so have controls. Contrasts smaller
    than ``roundings`` (B, r), relative to the attention to links and controls together, are set
    to 0.
    """
    product = in_product(layer, pairs, weights)
    taken = in_product(layer, control_pairs, control_weights)
    contrasts = product - taken
    bounds = taken.add_(product).mul_(roundings[:, None])
    return contrasts.masked_fill_(contrasts.abs() < bounds, 0)


def beyond_offset(role: Role) -> Role:
    """Return the contrast of a role of pairs with other words at the same offset.

    That of a role without a sieve has none.
    """
    pairs = role.sieve
    assert pairs is None or isinstance(pairs, Pairs)
    is_divided = pairs is not None and bool(pairs.labels & pairs.find.labels_by_class)
    of_class = {"dependents": "of the same class"} if is_divided else {}
    return contrast_with(
        role,
        BEYOND_OFFSET,
        words="distance",
        needs="other words at the offset of an arc",
        sieve=pairs and BeyondOffset(pairs.find, pairs.labels, pairs.direction),
        meaning={"offsets": "words", **of_class},
    )


def contrast_with(
    role: Role,
    contrast: str,
    *,
    words: str,
    needs: str,
    sieve: Pairs | None,
    meaning: Mapping[str, Any] | None = None,
) -> Role:
    """Return the contrast of a role of pairs, in ``words`` that say what it goes beyond.

    ``meaning`` are facts that define the contrast, beside those of the role.
    """
    return replace(
        role,
        id=contrast_of(role.id, contrast),
        parent=role.id,
        contrast=contrast,
        meaning={**role.meaning, **(meaning or {})},
        words=f"{role.words}, beyond {words}",
        baseline=0.0,
        needs=needs,
        sieve=sieve,
    )


KINDS_OF_GROUPS = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]])
"""The kinds of controls that each group of links has.

Kinds of pairs of words: both closed, the key open, the query open, both open. Groups of links: any;
of divided relations, from a closed and an open dependent, to a closed and an open one.
"""


def kinds_of_groups(find: FindLinks) -> IntArray:
    """Return the kinds of controls of each group; a single one without divided relations."""
    kinds: IntArray = KINDS_OF_GROUPS if find.labels_by_class else KINDS_OF_GROUPS[:1, :1]
    return kinds


def groups_of(batch: PaddedBatch, find: FindLinks) -> IntArray:
    """Return the group of each link (2 L,), forth and after them back."""
    table = batch.of(find)
    if not find.labels_by_class:
        return np.zeros(2 * len(table.owners), dtype=np.int64)
    is_divided = np.isin(table.labels, list(find.labels_by_class))
    dependents = batch.words[table.owners, table.first[:, 0]]
    of_dependents = batch.of(find_open)[table.owners, dependents]
    forth, back = 1 + of_dependents, 3 + of_dependents
    return np.concatenate([forth, back]) * np.tile(is_divided, 2)


class Controls(NamedTuple):
    """The controls of a batch, each in a cell: one offset in a sentence, or all across two.

    The controls (C,) are the pairs ``at``, with their ``weights``. ``cells_by_kind`` are the
    numbers of their cells, times the number of kinds, plus that of their kind. The cells in which
    links are (S,) have ``totals`` (S, groups), numbers of pairs of words that are controls of each
    group of links. A pair of words counts once, however many pieces the words have. ``numbers`` are
    the numbers of the cells of `cells_of` among these.
    """

    at: PairsOfExamples
    cells_by_kind: IntArray
    weights: Float32Array
    totals: FloatArray
    numbers: IntArray


def cells_of(batch: PaddedBatch, owners: IntArray, queries: IntArray, keys: IntArray) -> IntArray:
    """Return the cells of pairs of pieces of words, ascending by example.

    Of an example, cells ahead come before cells back. Pairs across sentences, whatever their
    offset, are in the cell of the offset 0.
    """
    segments = batch.segments[owners, queries]
    is_within = segments == batch.segments[owners, keys]
    of_examples = 2 * (2 * owners + (keys < queries)) + segments * is_within
    offsets = np.abs(batch.words[owners, keys] - batch.words[owners, queries])
    cells: IntArray = of_examples * batch.width + offsets * is_within
    return cells


def find_controls(scope: Scope, find: FindLinks) -> Controls:
    """Find the controls in the cells of all links."""
    batch, pieces = scope.batch, scope.of(find_pieces, find)
    words, n_pieces = batch.words, batch.n_pieces
    of_links = np.zeros(4 * batch.size * batch.width, dtype=bool)
    of_links[cells_of(batch, *pieces.at)] = True
    numbers = np.cumsum(of_links) - 1
    # two words, neither the governor of the other
    place = np.arange(batch.width)
    unjoined = (words[:, :, None] != words[:, None]) & ~batch.of(find.joined)
    unjoined &= batch.in_words[:, :, None] & batch.in_words[:, None] & (place[:, None] < place)
    if not of_links.reshape(-1, batch.width)[:, 0].any():  # no link is across sentences
        unjoined &= batch.segments[:, :, None] == batch.segments[:, None]
    owners, first, second = np.nonzero(unjoined)
    # what is a control ahead is one back, in a cell of its own
    ahead = cells_of(batch, owners, first, second)
    back = ahead + 2 * batch.width
    of_ahead, of_back = np.flatnonzero(of_links[ahead]), np.flatnonzero(of_links[back])
    at = PairsOfExamples(
        np.concatenate([owners[of_ahead], owners[of_back]]),
        np.concatenate([first[of_ahead], second[of_back]]),
        np.concatenate([second[of_ahead], first[of_back]]),
    )
    cells = numbers[np.concatenate([ahead[of_ahead], back[of_back]])]
    # across two sentences, a cell has pairs at any distance
    seen = np.flatnonzero(scope.sees(*at))
    at, cells = PairsOfExamples(*(ends[seen] for ends in at)), cells[seen]
    # pieces of long words must not outvote short words
    weights = 1 / (n_pieces[at.owners, at.queries] * n_pieces[at.owners, at.keys])
    groups = kinds_of_groups(find)
    kinds = find_kinds(batch, at) if find.labels_by_class else np.zeros_like(cells)
    totals = [
        np.bincount(cells, weights=weights * of_group[kinds], minlength=numbers[-1] + 1)
        for of_group in groups
    ]
    return Controls(
        at,
        cells * groups.shape[1] + kinds,
        weights.astype(np.float32),
        np.stack(totals, axis=1).astype(np.float64),
        numbers,
    )


def find_kinds(batch: PaddedBatch, at: PairsOfExamples) -> IntArray:
    """Return the kind of each pair of pieces, by whether its words are of open classes."""
    words, is_open = batch.words, batch.of(find_open)
    queries, keys = (is_open[at.owners, words[at.owners, ends]] for ends in at[1:])
    kinds: IntArray = 2 * queries + keys
    return kinds


# The trees of other sentences

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

    def _lender(self, n_words: int, digest: int, document: str) -> Sentence | None:
        lenders = self._of_length.get(n_words, [])
        first = digest % max(len(lenders), 1)
        for other, lender in lenders[first:] + lenders[:first]:
            if other != digest and not (self._has_documents and lender.document == document):
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

    @property
    def labels_by_class(self) -> frozenset[int]:
        """Labels of borrowed links, as of real ones; the class is that of the word they reach."""
        return self.find.labels_by_class

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

    def joined_in(self, sentence: Sentence) -> Set[frozenset[int]]:
        """Return the pairs of words that a borrowed link or a link of the sentence joins."""
        return super().joined_in(sentence) | self.find.joined_in(sentence)

    def joined_across(self, first: Sentence, second: Sentence) -> set[tuple[int, int]]:
        """Return such pairs with one word in each sentence."""
        return super().joined_across(first, second) | self.find.joined_across(first, second)


def with_other_trees(
    roles: Iterable[Role], sentences: Iterable[Sentence]
) -> tuple[tuple[Role, ...], int]:
    """Return for each role of pairs, and its contrast with the offset, a control of borrowed arcs.

    The number is that of the sentences that find no lender.
    """
    of_pairs = [
        (role, role.sieve)
        for role in roles
        if isinstance(role.sieve, Pairs)
        and role.contrast in ("", BEYOND_OFFSET)
        and not role.measure_of
    ]
    if not of_pairs:
        return (), 0
    lenders = Lenders(sentences)
    controls = []
    for role, sieve in of_pairs:
        parent = role.parent or role.id
        control = replace(
            role,
            id=contrast_of(other_trees_of(parent), role.contrast),
            parent=parent,
            control=OTHER_TREES,
            words=f"{role.words}, in other trees",
            sieve=replace(sieve, find=BorrowedLinks(sieve.find, lenders)),
        )
        controls.append(control)
    return tuple(controls), lenders.n_without
