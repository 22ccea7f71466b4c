"""Tests by orders drawn at random: of layers, of heads within layers, or of any draws under H0.

Each function takes arrays, so that simulations can test it on arrays whose truth is known.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from math import factorial, prod

import numpy as np
from numpy.typing import ArrayLike

from headroles.arrays import BoolArray, FloatArray, IndexArray
from headroles.inference.permutation import permute_within
from headroles.studies.claims.claim import Finding, NotTestable
from headroles.studies.claims.means import SIDES
from headroles.testing.catalogue import RANK
from headroles.testing.evidence import find_p_values
from headroles.testing.hypotheses import Hypotheses
from headroles.testing.options import CorrectionOptions

_MOST_ORDERS = 5040
DRAWS = 9999
"""Random orders; with the observed one the smallest p-value is 1 / 10,000."""


def trend(
    by_layer: ArrayLike,
    places: ArrayLike,
    *,
    alpha: float,
    seed: int = 0,
    interval: tuple[float, float] = (np.nan, np.nan),
) -> Finding:
    """Test whether values of layers rise with their places, by permuting the layers.

    The effect is the correlation of both. Under H0 any order of the layers is as likely; for up to
    seven layers all orders are enumerated. Contradicted if values fall.

    Raises NotTestable for too few layers for this level.
    """
    values, at = (np.asarray(one, dtype=np.float64) for one in (by_layer, places))
    refuse_few_layers(at, alpha)
    orders = _orders(len(at), seed)
    observed, *drawn = correlations(values[orders], at)
    return ranked_among(observed, np.array(drawn), len(at), "layers", interval=interval)


def refuse_few_layers(places: FloatArray, alpha: float) -> None:
    """Raise NotTestable where no order of the layers can have a p-value of ``alpha``."""
    ties = np.unique(places, return_counts=True)[1]
    smallest = prod(map(factorial, map(int, ties))) / factorial(len(places))
    if smallest > alpha:
        raise NotTestable(
            f"a trend over {len(places)} layers cannot have a p-value below {smallest:.2g}; "
            "test it over several models"
        )


def correlations(values: FloatArray, places: FloatArray) -> FloatArray:
    """Correlate each row of values (orders, layers) with the places; 0 for a flat row."""
    centred = values - values.mean(axis=1, keepdims=True)
    at = places - places.mean()
    length = np.sqrt((centred**2).sum(axis=1) * (at**2).sum())
    flat = length <= 1e-12 * max(1.0, np.abs(values).max(initial=0))
    return np.where(flat, 0.0, centred @ at / np.where(flat, 1, length))


def _orders(n: int, seed: int) -> IndexArray:
    """Return orders (orders, n): the identity first, then all others, or random ones."""
    if factorial(n) <= _MOST_ORDERS:
        return np.array(list(permutations(range(n))), dtype=np.intp)
    rng = np.random.default_rng(seed)
    drawn = rng.random((DRAWS, n)).argsort(axis=1)
    return np.concatenate([np.arange(n)[None], drawn])


def in_layers(
    values: FloatArray,
    marked: BoolArray,
    *,
    seed: int = 0,
    interval: tuple[float, float] = (np.nan, np.nan),
    effect: float | None = None,
) -> Finding:
    """Test whether marked heads have larger values than random heads of the same layers.

    Args:
        values: (layers, heads).
        marked: (layers, heads).
        seed: of the permutations of heads within layers.
        interval: of the effect.
        effect: the effect in the table; None for the tested difference.

    Raises NotTestable where no layer has heads of both kinds.
    """
    layers = np.indices(values.shape)[0]
    there = ~np.isnan(values)
    observed, drawn = permute_within(values[there], marked[there], layers[there], DRAWS, seed)
    if np.isnan(observed):
        raise NotTestable("in each layer all heads are of this kind or none: nothing to compare")
    n, size = int(marked.sum()), float(np.abs(values[there]).max())
    found = ranked_among(observed, drawn, n, "heads", interval=interval, size=size)
    return found if effect is None else replace(found, effect=effect)


def ranked_among(
    observed: float,
    drawn: FloatArray,
    n: int,
    unit: str,
    *,
    interval: tuple[float, float] = (np.nan, np.nan),
    size: float = 1.0,
) -> Finding:
    """Test whether an observation is larger than draws under H0. Contradicted if it is smaller.

    ``size`` of the values decides which differences are rounding.
    """
    ranks = Hypotheses.of_draws(observed, drawn[:, None], size=size)
    shown, contradicted = (
        find_p_values(ranks, CorrectionOptions(correction="none"), side, RANK) for side in SIDES
    )
    return Finding(float(observed), *interval, shown, contradicted, n, unit)
