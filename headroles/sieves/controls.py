"""Pairs of words that stand as far apart as the ends of some arc, and that no arc joins.

They are the controls of `headroles.sieves.contrasts`. Whether (i, j) joins two words does not
depend on the direction, so (j, i) is a control where (i, j) is one: each is listed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headroles.sieves.batch import PADDING
from headroles.sieves.rows import expand
from headroles.tokens import SPECIAL, EncodedExample, IntArray, pad


@dataclass(frozen=True)
class Controls:
    """The controls of B examples of ``lengths`` (B,).

    Every distance in tokens between the ends of arcs is a cell of its own in each sentence; the
    second sentences begin at the tokens ``boundaries`` (B,). The S cells are ordered by example,
    sentence and distance: all (S,), their ``owners`` (the example), ``sentences`` (0 or 1),
    ``distances``, and ``n_arc_pairs``, how many pairs of pieces of arcs they have.

    The controls (P,), ordered by cell: ``cells``, the tokens ``firsts`` and ``seconds``, which
    come later by the distance, and ``weights``. Two words count once, in however many pieces:
    ``totals`` (S,) are the numbers of pairs of words, 0 in cells without controls.
    """

    lengths: IntArray
    boundaries: IntArray
    owners: IntArray
    sentences: IntArray
    distances: IntArray
    n_arc_pairs: IntArray
    totals: NDArray[np.float64]
    cells: IntArray
    firsts: IntArray
    seconds: IntArray
    weights: NDArray[np.float64]

    def cells_of(self, owners: IntArray, queries: IntArray, keys: IntArray) -> IntArray:
        """The cell of each pair of tokens of an example; there must be one."""
        in_second = queries >= self.boundaries[owners]
        width = int(self.lengths.max())
        return np.searchsorted(
            _cell_ids(self.owners, self.sentences, self.distances, width),
            _cell_ids(owners, in_second.astype(np.int64), np.abs(keys - queries), width),
        )


def find_controls(examples: Sequence[EncodedExample]) -> Controls:
    """Controls of ``examples``; fastest if their lengths are alike."""
    lengths = np.array([len(example) for example in examples])
    boundaries = np.array([_boundary(example) for example in examples])
    owners, sentences, distances, n_arc_pairs = _cells_of_arcs(examples, lengths, boundaries)
    cells, firsts, weights = _control_pairs(examples, owners, sentences, distances)
    return Controls(
        lengths=lengths,
        boundaries=boundaries,
        owners=owners,
        sentences=sentences,
        distances=distances,
        n_arc_pairs=n_arc_pairs,
        totals=np.bincount(cells, weights=weights, minlength=len(owners)).astype(np.float64),
        cells=cells,
        firsts=firsts,
        seconds=firsts + distances[cells],
        weights=weights,
    )


def _boundary(example: EncodedExample) -> int:
    """The first token of the second sentence, or the number of tokens."""
    in_second = example.segments == 1
    return int(in_second.argmax()) if in_second.any() else len(example)


def _cell_ids(owners: IntArray, sentences: IntArray, distances: IntArray, width: int) -> IntArray:
    """A number for each example, sentence and distance, ascending in this order."""
    return (2 * owners + sentences) * width + distances


def _cells_of_arcs(
    examples: Sequence[EncodedExample], lengths: IntArray, boundaries: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Owner, sentence and distance of each cell, and how many pairs of pieces of arcs it has."""
    width = int(lengths.max())
    arcs = np.concatenate([example.arcs for example in examples])
    owners = np.repeat(np.arange(len(examples)), [len(example.arcs) for example in examples])
    dependent, dependent_size, governor, governor_size, _ = arcs.T
    arc, within = expand(dependent_size * governor_size)
    offsets = governor[arc] + within % governor_size[arc]
    offsets -= dependent[arc] + within // governor_size[arc]
    sentences = (dependent >= boundaries[owners]).astype(np.int64)
    ids = _cell_ids(owners[arc], sentences[arc], np.abs(offsets), width)
    ids, n_pairs = np.unique(ids, return_counts=True)
    return ids // (2 * width), ids // width % 2, ids % width, n_pairs


def _control_pairs(
    examples: Sequence[EncodedExample], owners: IntArray, sentences: IntArray, distances: IntArray
) -> tuple[IntArray, IntArray, NDArray[np.float64]]:
    """Cell, first token and weight of all pairs, for cells (S,)."""
    words = pad([example.words for example in examples], PADDING)
    segments = pad([example.segments for example in examples], PADDING)
    governors = pad([_governors_of_pieces(example) for example in examples], PADDING)
    sizes = pad([_sizes_of_words(example) for example in examples], 1)
    width = words.shape[1]
    first = np.broadcast_to(np.arange(width), (len(distances), width))
    beyond = first + distances[:, None]
    second, row = beyond.clip(0, width - 1), owners[:, None]
    is_control = (
        (beyond == second)
        & (words[row, first] >= 0)
        & (words[row, second] >= 0)
        & (segments[row, first] == sentences[:, None])
        & (segments[row, second] == sentences[:, None])
        & (words[row, first] != words[row, second])
        & (governors[row, first] != words[row, second])
        & (governors[row, second] != words[row, first])
    )
    cells, firsts = np.nonzero(is_control)
    seconds = firsts + distances[cells]
    # pieces of long words must not outvote short words
    return cells, firsts, 1 / (sizes[owners[cells], firsts] * sizes[owners[cells], seconds])


def _governors_of_pieces(example: EncodedExample) -> IntArray:
    """(n,): the word that the word of each piece depends on, -1 if there is none."""
    return np.where(example.words < 0, SPECIAL, example.governors[example.words])


def _sizes_of_words(example: EncodedExample) -> IntArray:
    """(n,): how many pieces the word of each piece has; 1 for special tokens."""
    sizes = np.bincount(example.words[example.words >= 0], minlength=1)
    return np.where(example.words < 0, 1, sizes[example.words])
