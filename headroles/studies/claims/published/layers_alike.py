"""Heads of one layer attend alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from headroles.studies.claims.claim import CORPUS, Claim, Finding, NotTestable
from headroles.studies.claims.kinds import mean_beyond, ranked_among
from headroles.studies.claims.measured import Measured

_DRAWS = 9999


def differences(
    between: NDArray[np.float64], orders: Iterable[NDArray[np.intp]]
) -> Iterator[float]:
    """Mean divergence of pairs of heads of different layers less that of pairs of one layer.

    ``between`` are heads by heads; each of ``orders`` (heads,) has their layers.
    """
    first, second = np.triu_indices(len(between), 1)
    pairs = between[first, second]
    for layers in orders:
        same = layers[first] == layers[second]
        n, within = int(same.sum()), float(pairs @ same)
        yield (pairs.sum() - within) / (len(pairs) - n) - within / n


def test(measured: Measured) -> Finding:
    """Are heads of one layer less different than heads of different layers?"""
    values, (n_layers, n_heads) = measured.divergences
    if n_layers < 2 or n_heads < 2:
        raise NotTestable("it takes two layers of two heads")
    layers = np.repeat(np.arange(n_layers), n_heads)
    rng = np.random.default_rng(measured.options.seed)
    orders = (rng.permutation(layers) for _ in range(_DRAWS))
    observed, *drawn = differences(values.mean(axis=0), chain([layers], orders))
    found = ranked_among(observed, drawn, len(layers), "heads")
    by_example = [next(differences(one, [layers])) for one in values]
    spread = mean_beyond(by_example, 0.0, None, alpha=measured.alpha)
    return replace(found, low=spread.low, high=spread.high)


CLAIM = Claim(
    id="layers-alike",
    source="Clark et al. 2019",
    statement="Heads of one layer attend more alike than heads of different layers.",
    published="in words and a figure only",
    needs=CORPUS,
    effect="Jensen-Shannon divergence between layers less within, in nats",
    rule="Random: which heads make a layer. Null: heads are shuffled over all layers. Contradicted "
    "if heads of one layer differ more.",
    test=test,
)
