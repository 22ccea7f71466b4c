"""Controls lent by other sentences, where a sentence has none of its own at some offset.

Only examples of the same length lend to each other: in a longer one attention is spread over more
keys, and a head that looks at nothing in particular would seem to avoid the borrowed pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headroles.sieves import ContrastWeights, ExampleControls
from headroles.tokens import IntArray

FloatArray = NDArray[np.float32]

IN_SENTENCE = "in the same sentence"
IN_OTHERS = "in sentences read together"
NOWHERE = "nowhere"


def lacking_offsets(controls: Sequence[ExampleControls]) -> IntArray:
    """(W,): the offsets at which some sentence has arcs but no control, in ascending order."""
    found = [of_one.lacking for of_one in controls]
    return np.unique(np.concatenate(found)) if found else np.zeros(0, dtype=np.int64)


def count_controls(
    controls: Sequence[ExampleControls], lengths: IntArray, lacking: IntArray
) -> Counter[str]:
    """Number of pairs of pieces of arcs by where, among examples read together, controls are.

    ``lengths`` (E,) are the numbers of tokens of the examples, ``lacking`` (W,) is what
    `lacking_offsets` tells of them.
    """
    totals = np.zeros((len(controls), len(lacking)))
    wanted = np.zeros_like(totals)
    places: Counter[str] = Counter()
    for row, of_one in enumerate(controls):
        cell, column = np.nonzero(of_one.offsets[:, None] == lacking)
        np.add.at(totals[row], column, of_one.totals[cell])
        np.add.at(wanted[row], column, of_one.n_arc_pairs[cell] * (of_one.totals[cell] == 0))
        places[IN_SENTENCE] += int(of_one.n_arc_pairs[of_one.totals > 0].sum())
    can_borrow = (lengths[:, None] == lengths) @ totals > 0
    places[IN_OTHERS] = int(wanted[can_borrow].sum())
    places[NOWHERE] = int(wanted[~can_borrow].sum())
    return +places


@dataclass(frozen=True)
class Lent:
    """What B examples lack, and what they can lend to others.

    ``rows`` (B,) are the places of the examples among those read together, ``layers`` those that
    share these ``contrasts``, and ``sums`` (B, layers, heads, W) what the controls get in sum at
    the offsets at which some sentence lacks them.
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
        rows = np.concatenate([part.rows for part in alike])
        totals = np.concatenate([part.contrasts.totals for part in alike])
        sums = np.concatenate([part.sums for part in alike])
        lacks = np.concatenate([part.contrasts.lacks for part in alike])
        needy = np.flatnonzero(lacks.any(axis=(1, 2)))
        rows_of_needy, lacks = rows[needy], lacks[needy]
        lenders = lengths[rows_of_needy, None] == lengths[rows]
        there = lenders @ totals
        means = np.tensordot(lenders.astype(np.float64), sums, axes=1)
        means /= np.where(there > 0, there, 1)[:, None, None]
        missing = np.einsum("ewr,ew->er", lacks, there == 0) > 0

        n_contrasts, heads = lacks.shape[-1], np.arange(values.shape[2])
        last = np.arange(values.shape[-1] - n_contrasts, values.shape[-1])
        place = np.ix_(rows_of_needy, layers, heads, last)
        contrasts = values[place] - np.einsum("ewr,elhw->elhr", lacks, means)
        values[place] = np.where(missing[:, None, None], np.nan, contrasts)
