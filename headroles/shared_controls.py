"""Controls lent by other examples, where an example has none of its own at some offset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headroles.sieves import ContrastWeights, ExampleControls
from headroles.tokens import IntArray

FloatArray = NDArray[np.float32]

IN_EXAMPLE = "in the same example"
IN_OTHERS = "in examples read together"
NOWHERE = "nowhere"


def lacking_offsets(controls: Sequence[ExampleControls]) -> IntArray:
    """(W,): the offsets at which some example has arcs but no control, in ascending order."""
    found = [of_one.lacking for of_one in controls]
    return np.unique(np.concatenate(found)) if found else np.zeros(0, dtype=np.int64)


def count_controls(controls: Sequence[ExampleControls]) -> Counter[str]:
    """Number of pairs of pieces of arcs by where, among examples read together, controls are."""
    there = {int(o) for of_one in controls for o in of_one.offsets[of_one.totals > 0]}
    places: Counter[str] = Counter()
    for of_one in controls:
        for offset, total, n in zip(
            of_one.offsets.tolist(), of_one.totals, of_one.n_arc_pairs.tolist(), strict=True
        ):
            elsewhere = IN_OTHERS if offset in there else NOWHERE
            places[IN_EXAMPLE if total else elsewhere] += n
    return places


@dataclass(frozen=True)
class LentMeans:
    """What B examples lack, and what they can lend to others.

    ``rows`` (B,) are the places of the examples among those read together, ``layers`` those that
    share these ``contrasts``, and ``means`` (B, layers, heads, W) their mean attention at the
    offsets at which some example lacks controls.
    """

    rows: IntArray
    layers: IntArray
    contrasts: ContrastWeights
    means: FloatArray


def complete_contrasts(values: FloatArray, lent: Sequence[LentMeans]) -> None:
    """Take away from contrasts what their examples had no control for, in place.

    ``values`` (E, layers, heads, roles), contrasts last, are those of the examples read together,
    and ``lent`` is what all of them can lend. The mean at an offset is taken over all examples,
    a pair of words counting once; a contrast for which there is none becomes NaN.
    """
    for layers in {tuple(part.layers.tolist()) for part in lent}:
        alike = [part for part in lent if tuple(part.layers.tolist()) == layers]
        totals = sum(part.contrasts.totals.sum(axis=0) for part in alike)
        sums = sum(np.einsum("bw,blhw->wlh", p.contrasts.totals, p.means) for p in alike)
        with np.errstate(invalid="ignore"):
            shared = sums / np.asarray(totals)[:, None, None]
        for part in alike:
            _complete(values, part, shared)


def _complete(values: FloatArray, part: LentMeans, shared: NDArray[np.float64]) -> None:
    lacks = part.contrasts.lacks
    first_contrast = values.shape[-1] - lacks.shape[-1]
    for example, offset, role in np.argwhere(lacks):
        contrast = values[part.rows[example], :, :, first_contrast + role]
        contrast[part.layers] -= lacks[example, offset, role] * shared[offset]
