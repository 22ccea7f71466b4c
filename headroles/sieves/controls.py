"""What a head gives to pairs of words at the same offset that are no arcs.

Most arcs are short, so a head that only looks a position back or ahead scores high on syntax. The
contrast of a syntactic role takes from every pair of pieces (i, j) of an arc what the same head
gives, on average, to pairs at the same offset j - i of the same sentence, between words that no
arc joins:

    contrast = sum over pairs of w_ij * (A[i, j] - C[j - i])

with the weights w of the role itself. Attention that depends on the offset alone scores exactly 0.
The contrast is a difference of two sieves, and so a sieve with negative weights.

A sentence may have no control at some offset: in one of five words nothing compares with an arc
from the last to the first. The contrast then lacks a part that other sentences may lend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headroles.sieves.batch import PADDING
from headroles.sieves.pairs import ArcPairs
from headroles.sieves.rows import FloatArray, divide, expand
from headroles.tokens import SPECIAL, EncodedExample, IntArray, pad


@dataclass(frozen=True, slots=True)
class ExampleControls:
    """The controls of one example, for each of the S offsets that the arcs of a sentence have.

    ``sentences`` (S,) are 0 or 1 and ``offsets`` (S,) ascend within them; the second sentence
    begins at token ``boundary``. ``n_arc_pairs`` (S,) counts the pairs of pieces of arcs. Control
    pairs (P,): ``queries``, ``keys``, their ``places`` among the S, and their ``weights``. Two
    words count once, in however many pieces: ``totals`` (S,) are the numbers of pairs of words,
    0 where there are no controls.
    """

    boundary: int
    sentences: IntArray
    offsets: IntArray
    n_arc_pairs: IntArray
    totals: NDArray[np.float64]
    queries: IntArray
    keys: IntArray
    places: IntArray
    weights: NDArray[np.float64]

    @property
    def lacking(self) -> IntArray:
        """Offsets at which a sentence has no controls."""
        return np.asarray(self.offsets[self.totals == 0])


def find_controls(examples: Sequence[EncodedExample]) -> list[ExampleControls]:
    """Controls of each of ``examples``; fastest if their lengths are alike."""
    boundaries = np.array([_boundary(example) for example in examples])
    owner, sentence, offset, n_arc_pairs = _cells_of_arcs(examples, boundaries)
    which, query, key, weight = _control_pairs(examples, owner, sentence, offset)
    totals = np.bincount(which, weights=weight, minlength=len(owner)).astype(np.float64)
    first = np.searchsorted(owner, np.arange(len(examples) + 1))
    first_pair = np.searchsorted(which, first)
    return [
        ExampleControls(
            boundary=int(boundary),
            sentences=sentence[a:b],
            offsets=offset[a:b],
            n_arc_pairs=n_arc_pairs[a:b],
            totals=totals[a:b],
            queries=query[c:d],
            keys=key[c:d],
            places=which[c:d] - a,
            weights=weight[c:d],
        )
        for boundary, a, b, c, d in zip(
            boundaries, first, first[1:], first_pair, first_pair[1:], strict=False
        )
    ]


def _boundary(example: EncodedExample) -> int:
    """The first token of the second sentence, or the number of tokens."""
    in_second = example.segments == 1
    return int(in_second.argmax()) if in_second.any() else len(example)


def _cell_ids(owner: IntArray, sentence: IntArray, offset: IntArray, width: int) -> IntArray:
    """A number for each example, sentence and offset, ascending in this order."""
    return (2 * owner + sentence) * (2 * width) + offset + width


def _cells_of_arcs(
    examples: Sequence[EncodedExample], boundaries: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Owner, sentence and offset that arcs have, in either direction, and how many pairs have."""
    width = max(len(example) for example in examples)
    arcs = np.concatenate([example.arcs for example in examples])
    owner = np.repeat(np.arange(len(examples)), [len(example.arcs) for example in examples])
    dependent, dependent_size, governor, governor_size, _ = arcs.T
    arc, within = expand(dependent_size * governor_size)
    offset = governor[arc] + within % governor_size[arc]
    offset -= dependent[arc] + within // governor_size[arc]
    sentence = (dependent >= boundaries[owner]).astype(np.int64)
    both = [_cell_ids(owner[arc], sentence[arc], o, width) for o in (offset, -offset)]
    ids, n_pairs = np.unique(np.concatenate(both), return_counts=True)
    sentences, offsets = ids // (2 * width), ids % (2 * width) - width
    return sentences // 2, sentences % 2, offsets, n_pairs


def _control_pairs(
    examples: Sequence[EncodedExample], owner: IntArray, sentence: IntArray, offset: IntArray
) -> tuple[IntArray, IntArray, IntArray, NDArray[np.float64]]:
    """For offsets (S,), each of one sentence: which of them, query, key and weight of all pairs."""
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
        & (segments[row, query] == sentence[:, None])
        & (segments[row, key] == sentence[:, None])
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
    what the example can lend at each of W offsets at which some sentence lacks controls, the
    attention summed over ``totals`` (B, W) pairs of words. ``lacks`` (B, W, R) is the weight with
    which each contrast has still to take away the mean at each of these offsets.
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
    taken = _weights_of_cells(arcs, controls, width)
    found = np.concatenate([of_one.totals for of_one in controls])
    is_lacking = offset[:, None] == lacking
    columns = np.hstack([-divide(taken, found[:, None]), is_lacking])
    pairs, weights = _padded_pairs(controls, np.cumsum(sizes) - sizes, columns, width)
    totals = np.zeros((n_examples, len(lacking)))
    lacks = np.zeros((n_examples, len(lacking), n_roles), dtype=np.float32)
    cell, column = np.nonzero(is_lacking)
    np.add.at(totals, (owner[cell], column), found[cell])
    np.add.at(lacks, (owner[cell], column), taken[cell] * (found[cell] == 0)[:, None])
    return ContrastWeights(pairs, weights, totals, lacks)


def _weights_of_cells(
    arcs: ArcPairs, controls: Sequence[ExampleControls], width: int
) -> NDArray[np.float64]:
    """(S, R): summed weights of the arcs' pairs at each offset of each sentence."""
    owner, _ = expand(np.array([len(of_one.offsets) for of_one in controls]))
    sentence = np.concatenate([of_one.sentences for of_one in controls])
    offset = np.concatenate([of_one.offsets for of_one in controls])
    boundary = np.array([of_one.boundary for of_one in controls])[arcs.example]
    own_sentence = (arcs.query >= boundary).astype(np.int64)
    place = np.searchsorted(
        _cell_ids(owner, sentence, offset, width),
        _cell_ids(arcs.example, own_sentence, arcs.key - arcs.query, width),
    )
    n_roles = arcs.counts.shape[1]
    sums = np.bincount(
        (place[:, None] * n_roles + arcs.roles).ravel(),
        weights=arcs.weights.ravel(),
        minlength=len(offset) * n_roles,
    )
    return sums.astype(np.float64).reshape(len(offset), n_roles)


def _padded_pairs(
    controls: Sequence[ExampleControls],
    first_cells: IntArray,
    columns: NDArray[np.float64],
    width: int,
) -> tuple[IntArray, FloatArray]:
    """Pairs (B, P), and weights (B, P, C): those of pairs times ``columns`` (S, C) of places."""
    sizes = np.array([len(of_one.queries) for of_one in controls])
    owner, slot = expand(sizes)
    place = np.concatenate([of_one.places for of_one in controls]) + first_cells[owner]
    pairs = np.zeros((len(controls), int(sizes.max(initial=0))), dtype=np.int64)
    pairs[owner, slot] = np.concatenate([c.queries * width + c.keys for c in controls])
    weights = np.zeros((*pairs.shape, columns.shape[1]), dtype=np.float32)
    own_weights = np.concatenate([of_one.weights for of_one in controls])
    weights[owner, slot] = own_weights[:, None] * columns[place]
    return pairs, weights
