"""Controls: pairs of words as far apart as the ends of some link that no arc joins.

Of links that are no arcs of the tree, such as pairs of a user's own role, controls are pairs of
words that no such link joins.

`headroles.roles.contrasts` compares links with them. If (i, j) is a control, so is (j, i), since an
arc joins two words in either direction; each pair is listed once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from headroles.arrays import BoolArray, FloatArray, IntArray
from headroles.encoding import SPECIAL, EncodedExample, pad
from headroles.roles.arithmetic import expand
from headroles.roles.batch import PADDING, PaddedBatch
from headroles.roles.links import FindLinks, LinkTable


@dataclass(frozen=True)
class Controls:
    """The controls of the B examples of a batch, in cells.

    A cell is one distance, in tokens, between the ends of links of one sentence. The S cells are
    ordered by example, sentence and distance, given by ``owners`` (the example), ``sentences`` (0
    or 1) and ``distances``, all (S,). Second sentences begin at the tokens ``boundaries`` (B,).

    The P controls are ordered by cell and given by ``cells``, the tokens ``firsts``, the later
    tokens ``seconds``, and ``weights``, all (P,). A pair of words counts once, however many pieces
    the words have: ``totals`` (S,) are numbers of pairs of words, 0 in cells without controls.
    """

    batch: PaddedBatch
    boundaries: IntArray
    owners: IntArray
    sentences: IntArray
    distances: IntArray
    totals: FloatArray
    cells: IntArray
    firsts: IntArray
    seconds: IntArray
    weights: FloatArray

    def cells_of(self, owners: IntArray, queries: IntArray, keys: IntArray) -> IntArray:
        """Return the cell of each pair of pieces of a link, -1 for pairs across two sentences."""
        in_second = queries >= self.boundaries[owners]
        across = in_second != (keys >= self.boundaries[owners])
        width = self.batch.width
        # cells are in ascending order; pairs across sentences find another cell, and are reset
        cells = np.searchsorted(
            _cell_ids(self.owners, self.sentences, self.distances, width),
            _cell_ids(owners, in_second.astype(np.int64), np.abs(keys - queries), width),
        )
        return np.where(across, -1, cells)

    def lack(self, cells: IntArray) -> BoolArray:
        """Tell for each cell whether it has no control; cell -1 has none."""
        totals = np.append(self.totals, 0)  # index -1 reads this 0
        return np.asarray(totals[cells] == 0)


def find_controls(batch: PaddedBatch, find: FindLinks) -> Controls:
    """Find the controls at the distances of all links."""
    boundaries = np.array([_boundary(example) for example in batch.examples])
    table = batch.of(find)
    owners, sentences, distances = _cells_of_links(table, boundaries, batch.width)
    cells, firsts, weights = _control_pairs(batch, table, owners, sentences, distances)
    return Controls(
        batch=batch,
        boundaries=boundaries,
        owners=owners,
        sentences=sentences,
        distances=distances,
        totals=np.bincount(cells, weights=weights, minlength=len(owners)).astype(np.float64),
        cells=cells,
        firsts=firsts,
        seconds=firsts + distances[cells],
        weights=weights,
    )


def _boundary(example: EncodedExample) -> int:
    """Return the first token of the second sentence; without one, the number of tokens."""
    in_second = example.segments == 1
    return int(in_second.argmax()) if in_second.any() else len(example)


def _cell_ids(owners: IntArray, sentences: IntArray, distances: IntArray, width: int) -> IntArray:
    """Number the cells, ascending by example, sentence and distance."""
    return (2 * owners + sentences) * width + distances


def _cells_of_links(
    table: LinkTable, boundaries: IntArray, width: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Return owner, sentence and distance of each cell; links across sentences have no cell."""
    in_second = table.first[:, 0] >= boundaries[table.owners]
    inside = in_second == (table.second[:, 0] >= boundaries[table.owners])
    (first, first_size), (second, second_size) = table.first[inside].T, table.second[inside].T
    owners, sentences = table.owners[inside], in_second[inside].astype(np.int64)
    link, within = expand(first_size * second_size)
    offsets = second[link] + within % second_size[link]
    offsets -= first[link] + within // second_size[link]
    ids = np.unique(_cell_ids(owners[link], sentences[link], np.abs(offsets), width))
    return ids // (2 * width), ids // width % 2, ids % width


def _control_pairs(
    batch: PaddedBatch, table: LinkTable, owners: IntArray, sentences: IntArray, distances: IntArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return cell, first token and weight of all controls in the S cells."""
    examples, segments = batch.examples, batch.segments
    words = pad([example.words for example in examples], PADDING)
    sizes = pad([_of_pieces(example, example.sizes) for example in examples], PADDING)
    first = np.broadcast_to(np.arange(batch.width), (len(distances), batch.width))
    beyond = first + distances[:, None]
    second, row = beyond.clip(0, batch.width - 1), owners[:, None]
    # within the batch, two words of the sentence of the cell, neither the governor of the other
    is_control = (
        (beyond == second)
        & (words[row, first] >= 0)
        & (words[row, second] >= 0)
        & (segments[row, first] == sentences[:, None])
        & (segments[row, second] == sentences[:, None])
        & (words[row, first] != words[row, second])
        & ~_joined(batch, table, words, row, first, second)
    )
    cells, firsts = np.nonzero(is_control)
    seconds = firsts + distances[cells]
    # pieces of long words must not outvote short words
    return cells, firsts, 1 / (sizes[owners[cells], firsts] * sizes[owners[cells], seconds])


def _joined(
    batch: PaddedBatch,
    table: LinkTable,
    words: IntArray,
    row: IntArray,
    first: IntArray,
    second: IntArray,
) -> BoolArray:
    """Tell which words of the tokens ``first`` and ``second`` an arc joins, or a link."""
    if table.beside is not None:
        beside = _joined(batch, table.beside, words, row, first, second)
        return beside | _joined(batch, replace(table, beside=None), words, row, first, second)
    ends = words[row, first], words[row, second]
    if table.in_tree:
        governors = pad([_of_pieces(one, one.governors) for one in batch.examples], PADDING)
        return np.asarray((governors[row, first] == ends[1]) | (governors[row, second] == ends[0]))
    linked = np.zeros((batch.size, *[words.max() + 1] * 2), dtype=np.bool_)
    one, other = (words[table.owners, end[:, 0]] for end in (table.first, table.second))
    linked[table.owners, one, other] = linked[table.owners, other, one] = True
    return np.asarray(linked[row, np.maximum(ends[0], 0), np.maximum(ends[1], 0)])


def _of_pieces(example: EncodedExample, of_words: IntArray) -> IntArray:
    """Return, as (n,), the entry of ``of_words`` (W,) for each piece; -1 for special tokens."""
    return np.where(example.words < 0, SPECIAL, of_words[example.words])
