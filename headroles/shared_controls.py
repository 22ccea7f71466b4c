"""Controls lent by other sentences, where a sentence has none of its own at some distance.

Only examples of the same length lend to each other: in a longer one attention is spread over more
keys, and a head that looks at nothing in particular would seem to avoid the borrowed pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headroles.sieves import BorrowedWeights, ContrastWeights, Controls
from headroles.tokens import IntArray

FloatArray = NDArray[np.float32]
BoolArray = NDArray[np.bool_]

IN_SENTENCE = "in the same sentence"
IN_OTHERS = "in sentences read together"
NOWHERE = "nowhere"


def lacking_distances(controls: Sequence[Controls]) -> IntArray:
    """(W,): the distances at which some sentence has arcs but no control, in ascending order."""
    found = [batch.distances[batch.totals == 0] for batch in controls]
    return np.unique(np.concatenate(found)) if found else np.zeros(0, dtype=np.int64)


def count_controls(controls: Sequence[Controls]) -> Counter[str]:
    """Number of pairs of pieces of arcs by where, among examples read together, controls are."""
    lengths = np.concatenate([batch.lengths[batch.owners] for batch in controls])
    distances = np.concatenate([batch.distances for batch in controls])
    totals = np.concatenate([batch.totals for batch in controls])
    # a pair is one in either direction
    n_pairs = 2 * np.concatenate([batch.n_arc_pairs for batch in controls])
    _, alike = np.unique(np.stack([lengths, distances]), axis=1, return_inverse=True)
    can_borrow = np.bincount(alike, weights=totals)[alike] > 0
    own = totals > 0
    places = Counter(
        {
            IN_SENTENCE: int(n_pairs[own].sum()),
            IN_OTHERS: int(n_pairs[~own & can_borrow].sum()),
            NOWHERE: int(n_pairs[~own & ~can_borrow].sum()),
        }
    )
    return +places


@dataclass(frozen=True)
class Lent:
    """What B examples lack, and what they can lend to others.

    ``rows`` (B,) are the places of the examples among those read together, ``layers`` those that
    share these ``contrasts``, and ``sums`` (B, layers, heads, 2 * W) what the controls get in sum
    at the distances at which some sentence lacks them, in either direction.
    """

    rows: IntArray
    layers: IntArray
    contrasts: ContrastWeights
    sums: FloatArray


def complete_contrasts(values: FloatArray, lengths: IntArray, lent: Sequence[Lent]) -> None:
    """Take away from contrasts what their sentences had no control for, in place.

    ``values`` (E, layers, heads, roles), contrasts last, are those of the examples read together,
    ``lengths`` (E,) their numbers of tokens, and ``lent`` is what all of them can lend. What an
    example lacks is the mean over those of its length, a pair of words counting once; a contrast
    for which there is none becomes NaN.
    """
    for layers in {tuple(part.layers.tolist()) for part in lent}:
        alike = [part for part in lent if tuple(part.layers.tolist()) == layers]
        borrowed = _borrowed_by_rows(alike)
        wanted, wants = np.unique(lengths[borrowed.examples], return_inverse=True)
        means, found = _means_by_length(alike, lengths, wanted)
        for row in np.unique(borrowed.examples):
            of_row = borrowed.examples == row
            place, weights = (wants[of_row], borrowed.columns[of_row]), borrowed.weights[of_row]
            contrasts = values[row, layers, :, -weights.shape[1] :]
            contrasts -= np.einsum("klh,kr->lhr", means[place[0], :, :, place[1]], weights)
            contrasts[..., weights[~found[place]].any(axis=0)] = np.nan
            values[row, layers, :, -weights.shape[1] :] = contrasts


def _borrowed_by_rows(lent: Sequence[Lent]) -> BorrowedWeights:
    """What is borrowed, with the rows of examples for ``examples``."""
    borrowed = [part.contrasts.borrowed for part in lent]
    rows = [part.rows[of.examples] for part, of in zip(lent, borrowed, strict=True)]
    return BorrowedWeights(
        examples=np.concatenate(rows),
        columns=np.concatenate([of.columns for of in borrowed]),
        weights=np.concatenate([of.weights for of in borrowed]),
    )


def _means_by_length(
    lent: Sequence[Lent], lengths: IntArray, wanted: IntArray
) -> tuple[NDArray[np.float64], BoolArray]:
    """Mean attention (U, layers, heads, 2 * W) in examples of U ``wanted`` lengths.

    With it (U, 2 * W), whether there is any pair of words to take the mean of.
    """
    rows = np.concatenate([part.rows for part in lent])
    totals = np.concatenate([part.contrasts.totals for part in lent])
    sums = np.concatenate([part.sums for part in lent])
    lenders = (wanted[:, None] == lengths[rows]).astype(np.float64)
    n_pairs = np.tile(lenders @ totals, 2)
    means = np.tensordot(lenders, sums, axes=1)
    means /= np.where(n_pairs > 0, n_pairs, 1)[:, None, None]
    return means, n_pairs > 0
