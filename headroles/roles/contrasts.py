"""Contrasts: attention along links minus attention to other words at the same distance.

Most arcs are short, so a head that only looks one position back or ahead scores high on syntax. To
correct for this, the contrast of a role subtracts from the attention of every pair of pieces (i, j)
of a link the mean attention of the same head over the controls, pairs of words of the same sentence
at the same offset j - i that no arc joins:

    contrast = sum over pairs of w_ij * (A[i, j] - C[j - i])

with the weights w of the role. Attention that depends on the offset alone scores exactly 0. A
contrast is a difference of two sieves, and so a sieve with negative weights.

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

from headroles.arrays import BoolArray, Float32Array, IntArray
from headroles.roles.arithmetic import divide, expand, slots
from headroles.roles.batch import Scope
from headroles.roles.controls import Controls, find_controls
from headroles.roles.links import Links, LinkWeights, Pieces, find_link_weights, find_pieces
from headroles.roles.sieve import Array, KeySetList, Layer, SieveReadout
from headroles.rounding import MODEL_TERMS, rounding_bound

PAIRS, PAIRS_WITHOUT_CONTROLS = "pairs of pieces", "pairs of pieces without controls"
ARCS, ARCS_LEFT_OUT = "arcs", "arcs left out"

RUN = 8
"""Length of a run, the controls of one cell that are summed together. The hundreds of controls of a
sentence share the weights of a few cells; runs, unlike cells, are of similar size, so padding them
wastes little.
"""


@dataclass(frozen=True)
class BeyondOffset(Links):
    """Contrast of the links with some labels."""

    def readout(self, alike: Sequence[Links], scope: Scope, key_sets: KeySetList) -> SieveReadout:
        """Find the weights of the pairs of pieces of all links with controls, and of their
        controls.
        """
        batch = scope.batch
        table, controls = batch.of(self.find), batch.of(find_controls, self.find)
        pieces = scope.of(find_pieces, self.find)
        cells = controls.cells_of(pieces.owners, pieces.queries, pieces.keys)
        lacks_control = controls.lack(cells)
        is_scored = pieces.is_scored.copy()
        is_scored[pieces.directions[lacks_control], pieces.links[lacks_control]] = False
        weights = find_link_weights(alike, table, pieces, is_scored, batch.size)
        runs = _Runs.from_controls(controls)
        of_cells = _weights_of_cells(weights, pieces, cells, controls)
        return ContrastReadout(
            pairs=pieces.pairs(batch),
            weights=weights.padded(pieces),
            control_pairs=_pairs_in_runs(controls, runs),
            control_weights=_weights_in_runs(controls, runs),
            run_weights=_weights_of_runs(of_cells, runs, batch.size),
            roundings=_roundings(weights, pieces, of_cells, controls),
            # the score's constant is part of both sides of the difference and cancels
            constants=np.zeros_like(weights.constants),
            counts=weights.counts,
            lows=-_total_weights(weights, pieces),
            highs=weights.highs - weights.constants,
            controls=_count_controls(pieces, is_scored, lacks_control)
            if table.beside is None
            else Counter(),
        )


@dataclass(frozen=True, kw_only=True)
class ContrastReadout(SieveReadout):
    """Contrasts of r roles: pairs of links with their weights, and controls to subtract.

    ``pairs`` (B, P) of links have ``weights`` (B, P, r). ``control_pairs`` (B, 2 * RUN * C), as
    query * N + key, are in C runs: first with the later word as key, then as query; within each,
    place by place, all runs. The controls of a run are summed with ``control_weights`` (B, RUN, C);
    these sums times ``run_weights`` (B, 2 * C, r) are subtracted. Contrasts smaller than
    ``roundings`` (B, r), relative to the attention to links and controls together, are set to 0.
    """

    pairs: IntArray
    weights: Float32Array
    control_pairs: IntArray
    control_weights: Float32Array
    run_weights: Float32Array
    roundings: Float32Array

    def read(self, layer: Layer) -> Array:
        """Return the attention along links minus the attention to their controls."""
        given = layer.at(self.pairs).bmm(self.weights)
        batch, heads, _ = given.shape
        _, length, n_runs = self.control_weights.shape
        picked = layer.at(self.control_pairs).view(batch, heads, 2, length, n_runs)
        # in place: these are the largest arrays of a layer
        runs = picked.mul_(self.control_weights[:, None, None]).sum(dim=3)
        taken = runs.view(batch, heads, -1).bmm(self.run_weights)
        contrasts = given - taken
        bounds = taken.add_(given).mul_(self.roundings[:, None])
        return contrasts.masked_fill_(contrasts.abs() < bounds, 0)


@dataclass(frozen=True)
class _Runs:
    """Runs in the order of their ``cells``, and the run of each of the P controls.

    A run belongs to the example ``owners`` and has one of ``most`` ``places`` in it. Each control
    is in the run ``of_control``, at the place ``within``, from 0.
    """

    cells: IntArray
    owners: IntArray
    places: IntArray
    most: int
    of_control: IntArray
    within: IntArray

    @classmethod
    def from_controls(cls, controls: Controls) -> _Runs:
        sizes = np.bincount(controls.cells, minlength=len(controls.owners))
        # rounded up: the last run of a cell may be shorter
        n_runs = -(-sizes // RUN)
        first = np.cumsum(n_runs) - n_runs
        cells, _ = expand(n_runs)
        cell_of_control, rank = expand(sizes)
        owners = controls.owners[cells]
        places, most = slots(owners, controls.batch.size)
        of_control = first[cell_of_control] + rank // RUN
        return cls(cells, owners, places, most, of_control, rank % RUN)


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


def _roundings(
    weights: LinkWeights, pieces: Pieces, of_cells: Float32Array, controls: Controls
) -> Float32Array:
    """Return, as (B, r), the rounding error of each contrast relative to the sum of its terms."""
    terms = np.full(weights.counts.shape, MODEL_TERMS)
    np.add.at(terms, (pieces.owners[weights.pairs], weights.roles), 1)
    sizes = np.bincount(controls.cells, minlength=len(controls.owners))
    np.add.at(terms, controls.owners, (of_cells != 0).sum(axis=1) * sizes[:, None])
    return rounding_bound(1, terms).astype(np.float32)


def _total_weights(weights: LinkWeights, pieces: Pieces) -> Float32Array:
    """Return, as (B, r), the most that each contrast can subtract: all attention on controls."""
    totals = np.zeros(weights.counts.shape)
    np.add.at(totals, (pieces.owners[weights.pairs], weights.roles), weights.weights)
    return totals.astype(np.float32)


def _weights_of_runs(of_cells: Float32Array, runs: _Runs, n_examples: int) -> Float32Array:
    """Return the weights of runs as (B, 2 * C, r); each run has the weight of its cell."""
    n_roles = of_cells.shape[-1]
    weights = np.zeros((n_examples, 2, runs.most, n_roles), dtype=np.float32)
    weights[runs.owners, :, runs.places] = of_cells[runs.cells]
    return weights.reshape(n_examples, -1, n_roles)


def _pairs_in_runs(controls: Controls, runs: _Runs) -> IntArray:
    """Return the controls in both directions as (B, 2 * RUN * C)."""
    owner, place = runs.owners[runs.of_control], runs.places[runs.of_control]
    batch = controls.batch
    pairs = np.zeros((batch.size, 2, RUN, runs.most), dtype=np.int64)
    pairs[owner, 0, runs.within, place] = controls.firsts * batch.width + controls.seconds
    pairs[owner, 1, runs.within, place] = controls.seconds * batch.width + controls.firsts
    return pairs.reshape(batch.size, -1)


def _weights_in_runs(controls: Controls, runs: _Runs) -> Float32Array:
    """Return, as (B, RUN, C), the weight of each control in the sum of its run."""
    owner, place = runs.owners[runs.of_control], runs.places[runs.of_control]
    weights = np.zeros((controls.batch.size, RUN, runs.most), dtype=np.float32)
    weights[owner, runs.within, place] = controls.weights
    return weights


def _count_controls(pieces: Pieces, is_scored: BoolArray, lacks_control: BoolArray) -> Counter[str]:
    """Count links and pairs of pieces in both directions, and how many of them lack controls."""
    return Counter(
        {
            PAIRS: len(lacks_control),
            PAIRS_WITHOUT_CONTROLS: int(lacks_control.sum()),
            ARCS: int(pieces.is_scored.sum()),
            ARCS_LEFT_OUT: int(pieces.is_scored.sum() - is_scored.sum()),
        }
    )
