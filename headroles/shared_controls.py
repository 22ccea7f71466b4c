"""Controls lent by other sentences, where a sentence has none of its own at some distance.

Sentences lend that have a scored arc of their own at the distance, in examples of the same length:
in a longer one attention is spread over more keys, and a head that looks at nothing in particular
would seem to avoid the borrowed pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headroles.sieves import BorrowedWeights, Controls
from headroles.tokens import IntArray

FloatArray = NDArray[np.float32]
BoolArray = NDArray[np.bool_]

IN_SENTENCE = "in the same sentence"
IN_OTHERS = "in sentences read together"
NOWHERE = "nowhere"


def count_controls(controls: Sequence[Controls]) -> Counter[str]:
    """Number of pairs of pieces of arcs by where, among examples read together, controls are."""
    lengths = np.concatenate([batch.lengths[batch.owners] for batch in controls])
    distances = np.concatenate([batch.distances for batch in controls])
    totals = np.concatenate([batch.totals for batch in controls])
    # a pair is one in either direction
    n_pairs = 2 * np.concatenate([batch.n_arc_pairs for batch in controls])
    _, alike = np.unique(np.stack([lengths, distances]), axis=1, return_inverse=True)
    alike = alike.ravel()  # numpy 2.0 gives it a second axis
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


class SharedControls:
    """What examples read together lend to and borrow from each other, gathered batch by batch.

    ``rows`` are the places, among all E examples, of those that ``controls`` are of. ``lacking``
    (W,) are the distances at which some sentence has arcs but no control, in ascending order.
    """

    def __init__(
        self, rows: Sequence[list[int]], controls: Sequence[Controls], n_layers: int, n_heads: int
    ) -> None:
        n_examples = sum(len(of_batch) for of_batch in rows)
        self.lacking = np.unique(
            np.concatenate([batch.distances[batch.totals == 0] for batch in controls])
        )
        self._lengths = np.zeros(n_examples, dtype=np.int64)
        self._totals = np.zeros((n_examples, len(self.lacking)))
        for of_batch, batch in zip(rows, controls, strict=True):
            self._lengths[of_batch] = batch.lengths
            cell, column = np.nonzero(batch.distances[:, None] == self.lacking)
            owners = np.asarray(of_batch)[batch.owners[cell]]
            np.add.at(self._totals, (owners, column), batch.totals[cell])
        shape = (n_examples, n_layers, n_heads, 2 * len(self.lacking))
        self._sums = np.zeros(shape, dtype=np.float32)
        self._borrowed: list[tuple[IntArray, IntArray, BorrowedWeights]] = []

    def lend(self, rows: Sequence[int], sums: FloatArray) -> None:
        """What controls get in sum: (B, layers, heads, 2 * W), for the examples at ``rows``.

        W distances first with the later word as key, then with it as query.
        """
        self._sums[rows] = sums

    def borrow(self, rows: Sequence[int], layers: IntArray, weights: BorrowedWeights) -> None:
        """Ask for what the examples at ``rows`` lack in the scores of ``layers``."""
        self._borrowed.append((np.asarray(rows)[weights.examples], layers, weights))

    def complete(self, values: FloatArray) -> None:
        """Take away from contrasts what their sentences had no control for, in place.

        ``values`` (E, layers, heads, roles) have contrasts last. What an example lacks is the
        mean over the controls in those of its length, a pair of words counting once; a contrast
        for which there is none becomes NaN.
        """
        needy = [self._lengths[borrowers] for borrowers, _, _ in self._borrowed]
        lengths = np.unique(np.concatenate(needy)) if needy else self._lengths[:0]
        means, found = self._means_by_length(lengths)
        for borrowers, layers, borrowed in self._borrowed:
            for row in np.unique(borrowers):
                own = borrowers == row
                columns, weights = borrowed.columns[own], borrowed.weights[own]
                place = np.searchsorted(lengths, self._lengths[row])
                contrasts = values[row, layers, :, -weights.shape[1] :]
                contrasts -= means[place][layers][:, :, columns] @ weights
                contrasts[..., weights[~found[place, columns]].any(axis=0)] = np.nan
                values[row, layers, :, -weights.shape[1] :] = contrasts

    def _means_by_length(self, lengths: IntArray) -> tuple[FloatArray, BoolArray]:
        """Mean attention (U, layers, heads, 2 * W) in the examples of each of U lengths.

        With it (U, 2 * W), whether there is any pair of words to take the mean of.
        """
        lenders = lengths[:, None] == self._lengths
        n_pairs = np.tile(lenders @ self._totals, 2)
        means = np.tensordot(lenders.astype(np.float32), self._sums, axes=1)
        means /= np.where(n_pairs > 0, n_pairs, 1)[:, None, None].astype(np.float32)
        return means, n_pairs > 0
