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

from headroles.arrays import BoolArray, Float32Array, FloatArray
from headroles.options import Options
from headroles.roles.arithmetic import divide
from headroles.roles.batch import Scope
from headroles.roles.role import Context, Role
from headroles.roles.sieve import Array, KeySetList, Layer, Sieve, SieveReadout


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
        self, alike: Sequence[RowQuantity], scope: Scope, key_sets: KeySetList
    ) -> QuantityReadout:
        """Find the weights of all rows."""
        weights = self.weigh(scope)
        counts = (weights > 0).sum(axis=1)
        zeros = np.zeros((scope.batch.size, 1), dtype=np.float32)
        return QuantityReadout(
            name=self.name,
            weights=divide(weights, counts[:, None]).astype(np.float32),
            barred=~scope.batch.in_words,
            constants=zeros,
            counts=counts[:, None],
            lows=zeros + np.nan,
            highs=zeros + np.nan,
        )


@dataclass(frozen=True, kw_only=True)
class QuantityReadout(SieveReadout):
    """Readout with ``weights`` (B, N) of rows; keys ``barred`` (B, N) are no candidates."""

    name: str
    weights: Float32Array
    barred: BoolArray

    def read(self, layer: Layer) -> Array:
        """Return weighted sums over rows."""
        rows = layer.largest(self.barred) if self.name == "largest" else getattr(layer, self.name)
        return (rows * self.weights[:, None]).sum(-1, keepdims=True)


def _of_words(scope: Scope) -> FloatArray:
    return scope.batch.in_words.astype(np.float64)


def _of_rows(scope: Scope) -> FloatArray:
    return scope.batch.real.astype(np.float64)


def _of_shares(scope: Scope) -> FloatArray:
    return divide(scope.batch.real, np.log(np.maximum(scope.row_lengths, 1)))
