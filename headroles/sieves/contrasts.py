"""What a head gives to the ends of arcs, less what it gives to other words just as far apart.

Most arcs are short, so a head that only looks a position back or ahead scores high on syntax. The
contrast of a syntactic role takes from every pair of pieces (i, j) of an arc what the same head
gives, on average, to the controls at the same offset j - i of the same sentence:

    contrast = sum over pairs of w_ij * (A[i, j] - C[j - i])

with the weights w of the role itself. Attention that depends on the offset alone scores exactly 0.
The contrast is a difference of two sieves, and so a sieve with negative weights.

A sentence may have no control at some distance: in one of five words nothing compares with an arc
from the last to the first. The contrast then lacks a part that other sentences may lend.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headroles.sieves.controls import Controls
from headroles.sieves.pairs import ArcPairs
from headroles.sieves.rows import BoolArray, FloatArray, divide, expand, slots
from headroles.tokens import IntArray

RUN = 8
"""Controls are summed in runs of so many of one cell. The hundreds of controls of a sentence
share the weights of a few cells, and runs, unlike cells, are alike in size."""


@dataclass(frozen=True)
class ContrastWeights:
    """What contrasts take away, for B examples with R syntactic roles.

    ``pairs`` (B, 2*RUN*C), as query * N + key, are the controls in C runs: the later word as key,
    then as query; in each run after run for every place in a run. They are summed with
    ``pair_weights`` (B, RUN, C) over the places in a run; contrasts then take away the sums with
    ``run_weights`` (B, 2*C, R).

    At W distances some sentence lacks controls. What others can lend are the sums of the runs of
    these distances, for which ``lending`` (B, C, W) is 1; ``borrowed`` is what the examples lack.
    """

    pairs: IntArray
    pair_weights: FloatArray
    run_weights: FloatArray
    lending: FloatArray
    borrowed: BorrowedWeights


@dataclass(frozen=True)
class BorrowedWeights:
    """Contrasts of K ``examples`` have still to take away, with ``weights`` (K, R), a mean.

    It is that of attention at a distance, ``columns`` (K,) of W, with the later word as key; W
    more columns are those with the later word as query. An example can be there several times.
    """

    examples: IntArray
    columns: IntArray
    weights: FloatArray


def contrast_weights(
    arcs: ArcPairs, controls: Controls, width: int, lacking: IntArray
) -> ContrastWeights:
    """Weights for examples padded to ``width``; ``lacking`` (W,) are ascending distances."""
    n_examples, n_roles = arcs.counts.shape
    runs = _Runs.of(controls)
    taken = _weights_of_cells(arcs, controls)
    means = divide(taken, controls.totals[:, None, None]).astype(np.float32)
    pairs, pair_weights = _pairs_in_runs(controls, runs, width)
    run_weights = np.zeros((n_examples, 2, runs.most, n_roles), dtype=np.float32)
    run_weights[runs.owners, :, runs.places] = means[runs.cells]
    is_lacking = controls.distances[:, None] == lacking
    lending = np.zeros((n_examples, runs.most, len(lacking)), dtype=np.float32)
    lending[runs.owners, runs.places] = is_lacking[runs.cells]
    return ContrastWeights(
        pairs=pairs.reshape(n_examples, -1),
        pair_weights=pair_weights,
        run_weights=run_weights.reshape(n_examples, -1, n_roles),
        lending=lending,
        borrowed=_borrowed(taken, is_lacking, controls),
    )


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
        places, most = slots(owners, len(controls.lengths))
        of_control = first[cell_of_control] + rank // RUN
        return cls(cells, owners, places, most, of_control, rank % RUN)


def _weights_of_cells(arcs: ArcPairs, controls: Controls) -> NDArray[np.float64]:
    """(S, 2, R): summed weights of the arcs' pairs in each cell; first those with later keys."""
    n_cells, n_roles = len(controls.owners), arcs.counts.shape[1]
    cells = controls.cells_of(arcs.example, arcs.query, arcs.key)
    rows = 2 * cells + (arcs.key < arcs.query)
    sums = np.bincount(
        (rows[:, None] * n_roles + arcs.roles).ravel(),
        weights=arcs.weights.ravel(),
        minlength=2 * n_cells * n_roles,
    )
    return sums.astype(np.float64).reshape(n_cells, 2, n_roles)


def _pairs_in_runs(controls: Controls, runs: _Runs, width: int) -> tuple[IntArray, FloatArray]:
    """Pairs (B, 2, RUN, C), in both directions, and their weights (B, RUN, C)."""
    owner, place = runs.owners[runs.of_control], runs.places[runs.of_control]
    pairs = np.zeros((len(controls.lengths), 2, RUN, runs.most), dtype=np.int64)
    pairs[owner, 0, runs.within, place] = controls.firsts * width + controls.seconds
    pairs[owner, 1, runs.within, place] = controls.seconds * width + controls.firsts
    weights = np.zeros((len(controls.lengths), RUN, runs.most), dtype=np.float32)
    weights[owner, runs.within, place] = controls.weights
    return pairs, weights


def _borrowed(
    taken: NDArray[np.float64], is_lacking: BoolArray, controls: Controls
) -> BorrowedWeights:
    """The weights (S, 2, R) of the cells that have no controls."""
    cell, column = np.nonzero(is_lacking & (controls.totals == 0)[:, None])
    direction, wanting = np.nonzero(taken[cell].any(axis=2).T)
    return BorrowedWeights(
        examples=controls.owners[cell[wanting]],
        columns=direction * is_lacking.shape[1] + column[wanting],
        weights=taken[cell[wanting], direction].astype(np.float32),
    )
