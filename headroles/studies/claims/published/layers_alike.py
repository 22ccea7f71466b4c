"""Heads of one layer attend alike."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from headroles.studies.claims.claim import CORPUS, Claim, Finding, NotTestable
from headroles.studies.claims.means import mean_beyond
from headroles.studies.claims.measured import Measured
from headroles.studies.claims.orders import ranked_among

_DRAWS = 9999


def differences(between: NDArray[np.float64], orders: NDArray[np.intp]) -> NDArray[np.float64]:
    """Mean divergence of pairs of heads of different layers less that of pairs of one layer.

    ``between`` are heads by heads; ``orders`` (orders, layers, heads) which heads make each layer.
    """
    pairs = list(combinations(range(orders.shape[2]), 2))
    within = sum(between[orders[..., one], orders[..., other]].sum(axis=1) for one, other in pairs)
    every = between[np.triu_indices(len(between), 1)]
    n = len(pairs) * orders.shape[1]
    return np.asarray((every.sum() - within) / (len(every) - n) - within / n)


def test(measured: Measured) -> Finding:
    """Test whether heads of one layer differ less than heads of different layers."""
    values, (n_layers, n_heads) = measured.divergences
    if n_layers < 2 or n_heads < 2:
        raise NotTestable("it takes two layers of two heads")
    heads = np.arange(n_layers * n_heads).reshape(1, n_layers, n_heads)
    rng = np.random.default_rng(measured.options.seed)
    orders = rng.permuted(heads.reshape(1, -1).repeat(_DRAWS, axis=0), axis=1)
    drawn = differences(values.mean(axis=0), orders.reshape(-1, n_layers, n_heads))
    by_example = np.concatenate([differences(one, heads) for one in values])
    found = ranked_among(float(by_example.mean()), drawn, heads.size, "heads")
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
