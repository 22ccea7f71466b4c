"""What a head gives to the ends of links, less what it gives to other words just as far apart.

Most arcs are short, so a head that only looks a position back or ahead scores high on syntax. The
contrast of a role takes from every pair of pieces (i, j) of a link what the same head gives, on
average, to the controls at the same offset j - i of the same sentence:

    contrast = sum over pairs of w_ij * (A[i, j] - C[j - i])

with the weights w of the role. Attention that depends on the offset alone scores exactly 0. The
contrast is a difference of two sieves, and so a sieve with negative weights.

A contrast within the rounding of the two sums that it is the difference of is 0: nothing else is
left of a head that looks at positions alone.

A sentence may have no control at some distance: in one of five words nothing compares with an arc
from the last to the first. A link with such a pair is left out, and the count of the score says how
many links are left: a score depends on its own example and on nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headroles.encoding import IntArray
from headroles.roles.batch import Scope
from headroles.roles.controls import Controls, ControlsOf
from headroles.roles.links import Links, LinkWeights, Pieces, PiecesOf, find_link_weights
from headroles.roles.rows import BoolArray, FloatArray, divide, expand, slots
from headroles.roles.sieve import Array, KeySetList, Layer, Part
from headroles.rounding import MODEL_TERMS, rounding_bound

PAIRS, PAIRS_WITHOUT_CONTROLS = "pairs of pieces", "pairs of pieces without controls"
ARCS, ARCS_LEFT_OUT = "arcs", "arcs left out"

RUN = 8
"""Controls are summed in runs of so many of one cell. The hundreds of controls of a sentence
share the weights of a few cells, and runs, unlike cells, are alike in size."""


@dataclass(frozen=True)
class BeyondOffset(Links):
    """The contrast of the links of one label or more."""

    def plan(self, alike: Sequence[Links], scope: Scope, key_sets: KeySetList) -> Part:
        """Weights of the pairs of pieces of all links that have controls, and of their controls."""
        batch = scope.batch
        table, controls = batch.of(self.find), batch.of(ControlsOf(self.find))
        pieces = scope.of(PiecesOf(self.find))
        cells = controls.cells_of(pieces.owners, pieces.queries, pieces.keys)
        lacks_control = controls.lack(cells)
        is_scored = pieces.is_scored.copy()
        is_scored[pieces.directions[lacks_control], pieces.links[lacks_control]] = False
        weights = find_link_weights(alike, table, pieces, is_scored, batch.size)
        runs = _Runs.of(controls)
        of_cells = _weights_of_cells(weights, pieces, cells, controls)
        return ContrastPart(
            pairs=pieces.pairs(batch),
            weights=weights.padded(pieces),
            control_pairs=_pairs_in_runs(controls, runs),
            control_weights=_weights_in_runs(controls, runs),
            run_weights=_weights_of_runs(of_cells, runs, batch.size),
            roundings=_roundings(weights, pieces, of_cells, controls),
            # what both sides of a difference have in common falls away
            constants=np.zeros_like(weights.constants),
            counts=weights.counts,
            lows=-_total_weights(weights, pieces),
            highs=weights.highs - weights.constants,
            controls=_count_controls(pieces, is_scored, lacks_control),
        )


@dataclass(frozen=True, kw_only=True)
class ContrastPart(Part):
    """``pairs`` (B, P) of links and their ``weights`` (B, P, r), and the controls to take away.

    ``control_pairs`` (B, 2 * RUN * C), as query * N + key, are in C runs: the later word as key,
    then as query; in each, run after run for every place in a run. They are summed with
    ``control_weights`` (B, RUN, C) over the places in a run; contrasts then take away the sums with
    ``run_weights`` (B, 2 * C, r). Contrasts below ``roundings`` (B, r), relative to what links and
    controls get together, are 0.
    """

    pairs: IntArray
    weights: FloatArray
    control_pairs: IntArray
    control_weights: FloatArray
    run_weights: FloatArray
    roundings: FloatArray

    def read(self, layer: Layer) -> Array:
        """What the links get, less what their controls get."""
        given = layer.at(self.pairs).bmm(self.weights)
        batch, heads, _ = given.shape
        _, length, n_runs = self.control_weights.shape
        picked = layer.at(self.control_pairs).view(batch, heads, 2, length, n_runs)
        runs = picked.mul_(self.control_weights[:, None, None]).sum(dim=3)
        taken = runs.view(batch, heads, -1).bmm(self.run_weights)
        contrasts = given - taken
        bounds = taken.add_(given).mul_(self.roundings[:, None])
        return contrasts.masked_fill_(contrasts.abs() < bounds, 0)


@dataclass(frozen=True)
class _Runs:
    """Runs in the order of their ``cells``, and the controls (P,) that they hold.

    Each run has one of ``most`` ``places`` in the example that it is of, its ``owners``. Each
    control is ``within`` the run ``of_control``, from 0.
    """

    cells: IntArray
    owners: IntArray
    places: IntArray
    most: int
    of_control: IntArray
    within: IntArray

    @classmethod
    def of(cls, controls: Controls) -> _Runs:
        sizes = np.bincount(controls.cells, minlength=len(controls.owners))
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
) -> NDArray[np.float32]:
    """(S, 2, r): weight of the mean over each cell's controls; first those with later keys."""
    n_cells, n_roles = len(controls.owners), weights.counts.shape[1]
    rows = 2 * cells + (pieces.keys < pieces.queries)
    sums = np.bincount(
        rows[weights.pairs] * n_roles + weights.roles,
        weights=weights.weights,
        minlength=2 * n_cells * n_roles,
    )
    taken = sums.astype(np.float64).reshape(n_cells, 2, n_roles)
    return divide(taken, controls.totals[:, None, None]).astype(np.float32)


def _roundings(
    weights: LinkWeights, pieces: Pieces, of_cells: FloatArray, controls: Controls
) -> NDArray[np.float32]:
    """(B, r): the rounding of each contrast, relative to the sum of all that it adds up."""
    terms = np.full(weights.counts.shape, MODEL_TERMS)
    np.add.at(terms, (pieces.owners[weights.pairs], weights.roles), 1)
    sizes = np.bincount(controls.cells, minlength=len(controls.owners))
    np.add.at(terms, controls.owners, (of_cells != 0).sum(axis=1) * sizes[:, None])
    return rounding_bound(1, terms).astype(np.float32)


def _total_weights(weights: LinkWeights, pieces: Pieces) -> FloatArray:
    """(B, r): what a contrast takes away at most, with all attention on every control."""
    totals = np.zeros(weights.counts.shape)
    np.add.at(totals, (pieces.owners[weights.pairs], weights.roles), weights.weights)
    return totals.astype(np.float32)


def _weights_of_runs(of_cells: FloatArray, runs: _Runs, n_examples: int) -> FloatArray:
    """(B, 2 * C, r): the weight of each run is that of its cell."""
    n_roles = of_cells.shape[-1]
    weights = np.zeros((n_examples, 2, runs.most, n_roles), dtype=np.float32)
    weights[runs.owners, :, runs.places] = of_cells[runs.cells]
    return weights.reshape(n_examples, -1, n_roles)


def _pairs_in_runs(controls: Controls, runs: _Runs) -> IntArray:
    """(B, 2 * RUN * C): the controls in both directions."""
    owner, place = runs.owners[runs.of_control], runs.places[runs.of_control]
    batch = controls.batch
    pairs = np.zeros((batch.size, 2, RUN, runs.most), dtype=np.int64)
    pairs[owner, 0, runs.within, place] = controls.firsts * batch.width + controls.seconds
    pairs[owner, 1, runs.within, place] = controls.seconds * batch.width + controls.firsts
    return pairs.reshape(batch.size, -1)


def _weights_in_runs(controls: Controls, runs: _Runs) -> FloatArray:
    """(B, RUN, C): the weight of each control in the sum of its run."""
    owner, place = runs.owners[runs.of_control], runs.places[runs.of_control]
    weights = np.zeros((controls.batch.size, RUN, runs.most), dtype=np.float32)
    weights[owner, runs.within, place] = controls.weights
    return weights


def _count_controls(pieces: Pieces, is_scored: BoolArray, lacks_control: BoolArray) -> Counter[str]:
    """How many links and pairs of pieces there are, both directions, and how many lack controls."""
    return Counter(
        {
            PAIRS: len(lacks_control),
            PAIRS_WITHOUT_CONTROLS: int(lacks_control.sum()),
            ARCS: int(pieces.is_scored.sum()),
            ARCS_LEFT_OUT: int(pieces.is_scored.sum() - is_scored.sum()),
        }
    )
