"""What a head gives to pairs of words at the same offset that are no arcs.

Most arcs are short, so a head that only looks a position back or ahead scores high on syntax. The
contrast of a syntactic role takes from every pair of pieces (i, j) of an arc what the same head
gives, on average, to pairs at the same offset j - i between words that no arc joins, of one
sentence, in the same example:

    contrast = sum over pairs of w_ij * (A[i, j] - C[j - i])

with the weights w of the role itself. Attention that depends on the offset alone scores exactly 0.
The contrast is a difference of two sieves, and so a sieve with negative weights.

An example may have no control at some offset: in a sentence of five words nothing compares with an
arc from the last to the first. Its contrast then lacks a part that other examples may lend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headroles.sieves.batch import PADDING, pad
from headroles.sieves.pairs import ArcPairs
from headroles.sieves.rows import FloatArray, expand
from headroles.tokens import SPECIAL, EncodedExample, IntArray


@dataclass(frozen=True, slots=True)
class ExampleControls:
    """The controls of one example, at the S offsets that its arcs have, in ascending order.

    ``offsets`` (S,); ``n_arc_pairs`` (S,) counts the pairs of pieces of arcs at each. Control
    pairs (P,): ``queries``, ``keys``, the ``places`` of their offsets, and their ``shares``,
    which sum to 1 at each offset. Two words count once, in however many pieces: ``totals`` (S,)
    are the numbers of pairs of words, 0 at an offset without controls.
    """

    offsets: IntArray
    n_arc_pairs: IntArray
    totals: NDArray[np.float64]
    queries: IntArray
    keys: IntArray
    places: IntArray
    shares: NDArray[np.float64]

    @property
    def lacking(self) -> IntArray:
        """The offsets without controls."""
        return np.asarray(self.offsets[self.totals == 0])


def find_controls(examples: Sequence[EncodedExample]) -> list[ExampleControls]:
    """Controls of each of ``examples``; fastest if their lengths are alike."""
    owner, offset, n_arc_pairs = _offsets_of_arcs(examples)
    which, query, key, weight = _control_pairs(examples, owner, offset)
    totals = np.bincount(which, weights=weight, minlength=len(owner)).astype(np.float64)
    shares = weight / totals[which]
    first = np.searchsorted(owner, np.arange(len(examples) + 1))
    first_pair = np.searchsorted(which, first)
    return [
        ExampleControls(
            offsets=offset[a:b],
            n_arc_pairs=n_arc_pairs[a:b],
            totals=totals[a:b],
            queries=query[c:d],
            keys=key[c:d],
            places=which[c:d] - a,
            shares=shares[c:d],
        )
        for a, b, c, d in zip(first, first[1:], first_pair, first_pair[1:], strict=False)
    ]


def _offsets_of_arcs(examples: Sequence[EncodedExample]) -> tuple[IntArray, IntArray, IntArray]:
    """Distinct offsets of the arcs of each example, in both directions: owner, offset, count."""
    width = max(len(example) for example in examples)
    arcs = np.concatenate([example.arcs for example in examples])
    owner = np.repeat(np.arange(len(examples)), [len(example.arcs) for example in examples])
    dependent, dependent_size, governor, governor_size, _ = arcs.T
    arc, within = expand(dependent_size * governor_size)
    offset = governor[arc] + within % governor_size[arc]
    offset -= dependent[arc] + within // governor_size[arc]
    both = np.concatenate([offset, -offset])
    ids, n_pairs = np.unique((2 * np.tile(owner[arc], 2) + 1) * width + both, return_counts=True)
    return ids // (2 * width), ids % (2 * width) - width, n_pairs


def _control_pairs(
    examples: Sequence[EncodedExample], owner: IntArray, offset: IntArray
) -> tuple[IntArray, IntArray, IntArray, NDArray[np.float64]]:
    """For offsets (S,), each of one example: which of them, query, key and weight of all pairs."""
    words = pad([example.words for example in examples], PADDING)
    segments = pad([example.segments for example in examples], PADDING)
    governors = pad([_governors_of_pieces(example) for example in examples], PADDING)
    sizes = pad([_sizes_of_words(example) for example in examples], 1)
    width = words.shape[1]
    query = np.broadcast_to(np.arange(width), (len(offset), width))
    beyond = query + offset[:, None]
    key, row = beyond.clip(0, width - 1), owner[:, None]
    is_control = (
        (beyond == key)
        & (words[row, query] >= 0)
        & (words[row, key] >= 0)
        & (segments[row, query] == segments[row, key])
        & (words[row, query] != words[row, key])
        & (governors[row, query] != words[row, key])
        & (governors[row, key] != words[row, query])
    )
    which, queries = np.nonzero(is_control)
    keys = queries + offset[which]
    # pieces of long words must not outvote short words
    return which, queries, keys, 1 / (sizes[owner[which], queries] * sizes[owner[which], keys])


def _governors_of_pieces(example: EncodedExample) -> IntArray:
    """(n,): the word that the word of each piece depends on, -1 if there is none."""
    return np.where(example.words < 0, SPECIAL, example.governors[example.words])


def _sizes_of_words(example: EncodedExample) -> IntArray:
    """(n,): how many pieces the word of each piece has; 1 for special tokens."""
    sizes = np.bincount(example.words[example.words >= 0], minlength=1)
    return np.where(example.words < 0, 1, sizes[example.words])


@dataclass(frozen=True)
class ContrastWeights:
    """What contrasts take away, for B examples with R syntactic roles.

    ``pairs`` (B, P), as query * N + key, with ``weights`` (B, P, R + W): the last W columns give
    the mean attention of the controls at each of W offsets at which some example lacks them.
    ``totals`` (B, W) are the numbers of pairs of words behind these means; ``lacks`` (B, W, R) is
    the weight that each contrast still has to take of the mean at each of these offsets.
    """

    pairs: IntArray
    weights: FloatArray
    totals: NDArray[np.float64]
    lacks: FloatArray


def contrast_weights(
    arcs: ArcPairs, controls: Sequence[ExampleControls], width: int, lacking: IntArray
) -> ContrastWeights:
    """Weights for examples padded to ``width``; ``lacking`` (W,) are distinct offsets."""
    n_examples, n_roles = arcs.counts.shape
    sizes = np.array([len(of_one.offsets) for of_one in controls])
    owner, _ = expand(sizes)
    offset = np.concatenate([of_one.offsets for of_one in controls])
    taken = _weights_at_offsets(arcs, owner, offset, width)
    is_lacking = offset[:, None] == lacking
    pairs, weights = _padded_pairs(
        controls, np.cumsum(sizes) - sizes, np.hstack([-taken, is_lacking]), width
    )
    totals = np.zeros((n_examples, len(lacking)))
    lacks = np.zeros((n_examples, len(lacking), n_roles), dtype=np.float32)
    cell, column = np.nonzero(is_lacking)
    found = np.concatenate([of_one.totals for of_one in controls])[cell]
    totals[owner[cell], column] = found
    lacks[owner[cell], column] = taken[cell] * (found == 0)[:, None]
    return ContrastWeights(pairs, weights, totals, lacks)


def _weights_at_offsets(
    arcs: ArcPairs, owner: IntArray, offset: IntArray, width: int
) -> NDArray[np.float64]:
    """(S, R): summed weights of the arcs' pairs at S offsets, each of one example."""
    # owners ascend, and within them offsets: a pair's place can be searched for
    ids = (2 * owner + 1) * width + offset
    place = np.searchsorted(ids, (2 * arcs.example + 1) * width + arcs.key - arcs.query)
    n_roles = arcs.counts.shape[1]
    sums = np.bincount(
        (place[:, None] * n_roles + arcs.roles).ravel(),
        weights=arcs.weights.ravel(),
        minlength=len(ids) * n_roles,
    )
    return sums.astype(np.float64).reshape(len(ids), n_roles)


def _padded_pairs(
    controls: Sequence[ExampleControls],
    first_cells: IntArray,
    columns: NDArray[np.float64],
    width: int,
) -> tuple[IntArray, FloatArray]:
    """Pairs (B, P), and weights (B, P, C): shares times the ``columns`` (S, C) of the offset."""
    sizes = np.array([len(of_one.queries) for of_one in controls])
    owner, slot = expand(sizes)
    place = np.concatenate([of_one.places for of_one in controls]) + first_cells[owner]
    pairs = np.zeros((len(controls), int(sizes.max(initial=0))), dtype=np.int64)
    pairs[owner, slot] = np.concatenate([c.queries * width + c.keys for c in controls])
    weights = np.zeros((*pairs.shape, columns.shape[1]), dtype=np.float32)
    shares = np.concatenate([of_one.shares for of_one in controls])
    weights[owner, slot] = shares[:, None] * columns[place]
    return pairs, weights
