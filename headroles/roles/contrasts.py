"""Contrasts: attention along links minus attention to other words at the same distance.

Most arcs are short, so a head that only looks one position back or ahead scores high on syntax. To
correct for this, the contrast of a role subtracts from the attention of every pair of pieces (i, j)
of a link the mean attention of the same head over the controls, pairs of words of the same sentence
at the same offset j - i that no arc joins:

    contrast = sum over pairs of w_ij * (A[i, j] - C[j - i])

with the weights w of the role. Attention that depends on the offset alone scores exactly 0. A
contrast is a difference of two sieves, and so a sieve with negative weights. Of links that are no
arcs of the tree, such as pairs of a user's own role, controls are pairs of words that no such link
joins. If (i, j) is a control, so is (j, i), since an arc joins two words in either direction.

A contrast smaller than the rounding error of its two sums is set to 0, because a head that looks at
positions alone leaves only rounding error.

A sentence may have no control at some distance: in a sentence of five words, no other pair is as
far apart as the first word and the last. A link with such a pair is skipped, and the count of the
score says how many links remain. The score of an example thus depends on that example alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headroles.arrays import Float32Array, FloatArray, IntArray
from headroles.roles.batch import PaddedBatch, Scope
from headroles.roles.pairs import (
    FindLinks,
    LinkTable,
    LinkWeights,
    Pairs,
    Pieces,
    expand,
    find_link_weights,
    find_pieces,
    in_product,
    slots,
)
from headroles.roles.scores import divide
from headroles.roles.sieve import Array, KeySets, Layer, SieveReadout
from headroles.rounding import MODEL_TERMS, rounding_bound

PAIRS, PAIRS_WITHOUT_CONTROLS = "pairs of pieces", "pairs of pieces without controls"
ARCS, ARCS_LEFT_OUT = "arcs", "arcs left out"

RUN = 8
"""Length of a run, the controls of one cell that are summed together. The hundreds of controls of a
sentence share the weights of a few cells; runs, unlike cells, are of similar size, so padding them
wastes little.
"""


@dataclass(frozen=True)
class BeyondOffset(Pairs):
    """Contrast of the links with some labels."""

    def readout(self, alike: Sequence[Pairs], scope: Scope, key_sets: KeySets) -> SieveReadout:
        """Find the weights of the pairs of pieces of all links with controls, and of their
        controls.
        """
        batch = scope.batch
        controls = batch.of(find_controls, self.find)
        pieces = scope.of(find_pieces, self.find)
        cells = controls.cells_of(pieces.owners, pieces.queries, pieces.keys)
        lacks_control = np.append(controls.totals, 0)[cells] == 0  # cell -1 has none
        is_scored = pieces.is_scored.copy()
        is_scored[pieces.directions[lacks_control], pieces.links[lacks_control]] = False
        counts = {
            PAIRS: len(lacks_control),
            PAIRS_WITHOUT_CONTROLS: int(lacks_control.sum()),
            ARCS: int(pieces.is_scored.sum()),
            ARCS_LEFT_OUT: int(pieces.is_scored.sum() - is_scored.sum()),
        }
        weights = find_link_weights(alike, batch, pieces, is_scored)
        of_cells = _weights_of_cells(weights, pieces, cells, controls)
        totals, roundings = _totals(weights, pieces, of_cells, controls)
        own = pieces.pairs(batch), weights.padded(pieces)
        return SieveReadout(
            function=_contrasts,
            arrays=(*own, *_in_runs(controls, of_cells), roundings),
            # the score's constant is part of both sides of the difference and cancels
            limits=np.stack([0 * totals, -totals, weights.limits[2] - weights.limits[0]]),
            counts=weights.counts,
            controls=Counter() if self.find.is_control else Counter(counts),
        )


def _contrasts(
    layer: Layer,
    pairs: Array,
    weights: Array,
    control_pairs: Array,
    control_weights: Array,
    run_weights: Array,
    roundings: Array,
) -> Array:
    """Return the attention along links minus the attention to their controls, for r roles.

    ``pairs`` (B, P) of links have ``weights`` (B, P, r). ``control_pairs`` (B, 2 * RUN * C), as
    query * N + key, are in C runs: first with the later word as key, then as query; within each,
    place by place, all runs. The controls of a run are summed with ``control_weights`` (B, RUN, C);
    these sums times ``run_weights`` (B, 2 * C, r) are subtracted. Contrasts smaller than
    ``roundings`` (B, r), relative to the attention to links and controls together, are set to 0.
    """
    given = in_product(layer, pairs, weights)
    batch, heads, _ = given.shape
    _, length, n_runs = control_weights.shape
    picked = layer.at(control_pairs).view(batch, heads, 2, length, n_runs)
    # in place: these are the largest arrays of a layer
    runs = picked.mul_(control_weights[:, None, None]).sum(dim=3)
    taken = runs.view(batch, heads, -1).bmm(run_weights)
    contrasts = given - taken
    bounds = taken.add_(given).mul_(roundings[:, None])
    return contrasts.masked_fill_(contrasts.abs() < bounds, 0)


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


def find_controls(batch: PaddedBatch, find: FindLinks) -> Controls:
    """Find the controls at the distances of all links."""
    in_second = batch.segments == 1
    boundaries = np.where(in_second.any(axis=1), in_second.argmax(axis=1), batch.lengths)
    owners, sentences, distances = _cells_of_links(batch.of(find), boundaries, batch.width)
    first = np.broadcast_to(np.arange(batch.width), (len(distances), batch.width))
    beyond = first + distances[:, None]
    second, row = beyond.clip(0, batch.width - 1), owners[:, None]
    # within the batch, two words of the sentence of the cell, neither the governor of the other
    is_control = (
        (beyond == second)
        & batch.in_words[row, first]
        & batch.in_words[row, second]
        & (batch.segments[row, first] == sentences[:, None])
        & (batch.segments[row, second] == sentences[:, None])
        & (batch.words[row, first] != batch.words[row, second])
        & ~find.joins(batch, row, first, second)
    )
    cells, firsts = np.nonzero(is_control)
    seconds = firsts + distances[cells]
    # pieces of long words must not outvote short words
    weights = 1 / (batch.n_pieces[owners[cells], firsts] * batch.n_pieces[owners[cells], seconds])
    totals = np.bincount(cells, weights=weights, minlength=len(owners)).astype(np.float64)
    of_cells = (batch, boundaries, owners, sentences, distances, totals)
    return Controls(*of_cells, cells, firsts, seconds, weights)


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


def _weights_of_cells(
    weights: LinkWeights, pieces: Pieces, cells: IntArray, controls: Controls
) -> Float32Array:
    """Return, as (S, 2, r), the weights of each cell's mean; pairs with later keys first."""
    n_cells, n_roles = len(controls.owners), weights.counts.shape[1]
    # a cell has both directions: attention back differs from attention ahead
    rows = 2 * cells + (pieces.keys < pieces.queries)
    sums = np.bincount(
        rows[weights.pairs] * n_roles + weights.roles,
        weights=weights.weights,
        minlength=2 * n_cells * n_roles,
    )
    taken = sums.astype(np.float64).reshape(n_cells, 2, n_roles)
    return divide(taken, controls.totals[:, None, None]).astype(np.float32)


def _totals(
    weights: LinkWeights, pieces: Pieces, of_cells: Float32Array, controls: Controls
) -> tuple[Float32Array, Float32Array]:
    """Return of each contrast the most that it can subtract, and its rounding error, as (B, r).

    It can subtract all attention, if that is on controls. The error is relative to the sum of its
    terms.
    """
    scores = (pieces.owners[weights.pairs], weights.roles)
    totals = np.zeros(weights.counts.shape)
    np.add.at(totals, scores, weights.weights)
    terms = np.full(weights.counts.shape, MODEL_TERMS)
    np.add.at(terms, scores, 1)
    sizes = np.bincount(controls.cells, minlength=len(controls.owners))
    np.add.at(terms, controls.owners, (of_cells != 0).sum(axis=1) * sizes[:, None])
    return totals.astype(np.float32), rounding_bound(1, terms).astype(np.float32)


def _in_runs(
    controls: Controls, of_cells: Float32Array
) -> tuple[IntArray, Float32Array, Float32Array]:
    """Return the pairs and weights of controls in runs, and of runs, as `_contrasts` takes them.

    Each run has the weight of its cell, ``of_cells`` (S, 2, r).
    """
    batch = controls.batch
    sizes = np.bincount(controls.cells, minlength=len(controls.owners))
    n_runs = -(-sizes // RUN)  # rounded up: the last run of a cell may be shorter
    cells, _ = expand(n_runs)
    owners = controls.owners[cells]
    places, most = slots(owners, batch.size)
    n_roles = of_cells.shape[-1]
    run_weights = np.zeros((batch.size, 2, most, n_roles), dtype=np.float32)
    run_weights[owners, :, places] = of_cells[cells]
    # of each control: its run, and its place in it
    cell, rank = expand(sizes)
    run, within = (np.cumsum(n_runs) - n_runs)[cell] + rank // RUN, rank % RUN
    owner, place = owners[run], places[run]
    pairs = np.zeros((batch.size, 2, RUN, most), dtype=np.int64)
    pairs[owner, 0, within, place] = controls.firsts * batch.width + controls.seconds
    pairs[owner, 1, within, place] = controls.seconds * batch.width + controls.firsts
    weights = np.zeros((batch.size, RUN, most), dtype=np.float32)
    weights[owner, within, place] = controls.weights
    return pairs.reshape(batch.size, -1), weights, run_weights.reshape(batch.size, -1, n_roles)
