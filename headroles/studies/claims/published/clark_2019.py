"""Claims of Clark et al. (2019)."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np

from headroles.arrays import FloatArray, IndexArray
from headroles.studies.claims.claim import CORPUS, TREES, Finding, NotTestable, claim
from headroles.studies.claims.means import SHARES, heads_for_each, mean_beyond
from headroles.studies.claims.measured import DETERMINERS, OBJECTS, POSSESSIVES, Measured
from headroles.studies.claims.orders import DRAWS, ranked_among
from headroles.studies.inspection.token_reading import SEPARATORS, WEIGHTS

ACCURATE = 0.75


@claim(
    source="Clark et al. 2019",
    statement="Single heads find determiners, objects and possessives in more than three quarters "
    "of the cases.",
    published="0.943 (det), 0.868 (dobj), 0.805 (poss)",
    needs=TREES,
    effect="share of arcs found, the smallest of the three relations",
    rule="Random: documents; the head is chosen on one half of them. Null: a share of 0.75. "
    "Contradicted if for one relation every head is shown to be below 0.75.",
)
def single_heads(measured: Measured) -> Finding:
    """Test whether some head finds three quarters of the arcs, for each of the three relations."""
    hits = measured.of_relations((DETERMINERS, OBJECTS, POSSESSIVES), measured.hits_of)
    return heads_for_each(hits, ACCURATE, measured.halves, SHARES)


HALF = 0.5


def middle(n_layers: int) -> IndexArray:
    """Return the layers that correspond to layers 6 to 10 of 12, counted from 1."""
    depth = (np.arange(n_layers) + 0.5) / n_layers
    return np.flatnonzero((depth > 5 / 12) & (depth < 10 / 12))


@claim(
    source="Clark et al. 2019",
    statement="In layers 6 to 10 of 12 separators get more than half of the attention.",
    published="above 0.50",
    needs=CORPUS,
    effect="share of attention to separators in these layers",
    rule="Random: documents. Null: one half. Contradicted if the share is smaller. For models of "
    "other depths: the layers at the same relative height.",
)
def separators_middle(measured: Measured) -> Finding:
    """Test whether the share of separators in the weights of these layers is above one half."""
    shares = measured.share_of_tokens(SEPARATORS, WEIGHTS)
    if np.isnan(shares).all():
        raise NotTestable("no example has a separator")
    values = shares[:, middle(shares.shape[1])].mean(axis=1)
    return mean_beyond(values, HALF, measured.tokens[1], alpha=measured.alpha, bounds=SHARES)


def differences(between: FloatArray, orders: IndexArray) -> FloatArray:
    """Return the mean divergence of pairs of heads between layers less that of pairs within layers.

    ``between`` are heads by heads; ``orders`` (orders, layers, heads) which heads make each layer.
    """
    pairs = list(combinations(range(orders.shape[2]), 2))
    within = sum(between[orders[..., one], orders[..., other]].sum(axis=1) for one, other in pairs)
    every = between[np.triu_indices(len(between), 1)]
    n = len(pairs) * orders.shape[1]
    return np.asarray((every.sum() - within) / (len(every) - n) - within / n)


@claim(
    source="Clark et al. 2019",
    statement="Heads of one layer attend more alike than heads of different layers.",
    published="in words and a figure only",
    needs=CORPUS,
    effect="Jensen-Shannon divergence between layers less within, in nats",
    rule="Random: which heads make a layer. Null: heads are shuffled over all layers. Contradicted "
    "if heads of one layer differ more.",
)
def layers_alike(measured: Measured) -> Finding:
    """Test whether heads of one layer differ less than heads of different layers."""
    values, (n_layers, n_heads) = measured.divergences
    if n_layers < 2 or n_heads < 2:
        raise NotTestable("the model has fewer than two layers of two heads")
    heads = np.arange(n_layers * n_heads).reshape(1, n_layers, n_heads)
    rng = np.random.default_rng(measured.options.seed)
    orders = rng.permuted(heads.reshape(1, -1).repeat(DRAWS, axis=0), axis=1)
    drawn = differences(values.mean(axis=0), orders.reshape(-1, n_layers, n_heads))
    by_example = np.concatenate([differences(one, heads) for one in values])
    found = ranked_among(float(by_example.mean()), drawn, heads.size, "heads")
    spread = mean_beyond(by_example, 0.0, None, alpha=measured.alpha)
    return replace(found, low=spread.low, high=spread.high)
