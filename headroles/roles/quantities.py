"""Quantities that describe any head: confidence, entropy, distance. They are never tested.

``confidence`` is the largest weight of a row, with special tokens excluded as queries and as keys
(Voita et al. 2019). ``entropy`` is the entropy of a row in nats, ``entropy:share`` its share of the
entropy of a uniform row. ``distance`` is the mean distance of keys in tokens, weighted by the row.
Each is a mean over rows; none depends on the chosen score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from headroles.arrays import FloatArray
from headroles.options import Options
from headroles.roles.batch import Scope
from headroles.roles.role import Context, Role
from headroles.roles.scores import divide
from headroles.roles.sieve import Array, KeySets, Layer, Sieve, SieveReadout


def confidence(options: Options, context: Context) -> Iterator[Role]:
    """Yield the mean confidence."""
    yield _quantity("confidence", "largest weight of a row", RowQuantity("largest", _of_words))


def entropy(options: Options, context: Context) -> Iterator[Role]:
    """Yield the mean entropy in nats, and as a share of the greatest possible."""
    yield _quantity("entropy", "entropy of a row in nats", RowQuantity("entropies", _of_rows))
    share = "entropy of a row, as a share of that of an even one"
    yield _quantity("entropy:share", share, RowQuantity("entropies", _of_shares))


def distance(options: Options, context: Context) -> Iterator[Role]:
    """Yield the mean distance."""
    yield _quantity("distance", "tokens between query and key", RowQuantity("distances", _of_rows))


def _quantity(name: str, words: str, sieve: Sieve) -> Role:
    return Role(name, words, is_described=True, sieve=sieve)


@dataclass(frozen=True)
class RowQuantity(Sieve):
    """Mean over rows of the quantity ``name`` of a layer, each row weighted by ``weigh``."""

    name: str
    weigh: Callable[[Scope], FloatArray]

    def readout(
        self, alike: Sequence[RowQuantity], scope: Scope, key_sets: KeySets
    ) -> SieveReadout:
        """Find the weights of all rows."""
        weights = self.weigh(scope)
        counts = (weights > 0).sum(axis=1)[:, None]
        zeros = np.zeros((scope.batch.size, 1), dtype=np.float32)
        return SieveReadout(
            function=_by_rows,
            arrays=(self.name, divide(weights, counts).astype(np.float32), ~scope.batch.in_words),
            constants=zeros,
            counts=counts,
            lows=zeros + np.nan,
            highs=zeros + np.nan,
        )


def _by_rows(layer: Layer, name: str, weights: Array, barred: Array) -> Array:
    """Return sums over rows under ``weights`` (B, N); keys ``barred`` (B, N) are no candidates."""
    rows = layer.largest(barred) if name == "largest" else getattr(layer, name)
    return (rows * weights[:, None]).sum(-1, keepdims=True)


def _of_words(scope: Scope) -> FloatArray:
    return scope.batch.in_words.astype(np.float64)


def _of_rows(scope: Scope) -> FloatArray:
    return scope.batch.real.astype(np.float64)


def _of_shares(scope: Scope) -> FloatArray:
    return divide(scope.batch.real, np.log(np.maximum(scope.row_lengths, 1)))
