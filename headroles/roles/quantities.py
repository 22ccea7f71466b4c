"""What describes a head whatever it looks at: confidence, entropy, distance. Never tested.

``confidence`` is the largest weight of a row, special tokens left out as queries and as keys (Voita
et al. 2019). ``entropy`` is that of a row in nats, ``entropy:share`` as a share of what an even
row of its length has. ``distance`` is the mean distance of keys in tokens, weighted by the row.
Each is a mean over rows; none depends on the score that is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headroles.options import Options
from headroles.roles.batch import Scope
from headroles.roles.role import Context, Role
from headroles.roles.rows import BoolArray, FloatArray, divide
from headroles.roles.sieve import Array, KeySetList, Layer, Part, Sieve


def confidence(options: Options, context: Context) -> Iterator[Role]:
    """The one quantity."""
    yield _quantity("confidence", "largest weight of a row", RowQuantity("largest", _of_words))


def entropy(options: Options, context: Context) -> Iterator[Role]:
    """In nats, and as a share of the most."""
    yield _quantity("entropy", "entropy of a row in nats", RowQuantity("entropies", _of_rows))
    share = "entropy of a row, as a share of that of an even one"
    yield _quantity("entropy:share", share, RowQuantity("entropies", _of_shares))


def distance(options: Options, context: Context) -> Iterator[Role]:
    """The one quantity."""
    yield _quantity("distance", "tokens between query and key", RowQuantity("distances", _of_rows))


def _quantity(name: str, words: str, sieve: Sieve) -> Role:
    return Role(name, words, is_described=True, sieve=sieve)


@dataclass(frozen=True)
class RowQuantity(Sieve):
    """What a layer tells of every row by a name, times what each row counts."""

    name: str
    weigh: Callable[[Scope], NDArray[np.float64]]

    def plan(self, alike: Sequence[RowQuantity], scope: Scope, key_sets: KeySetList) -> RowsPart:
        """Weights of all rows."""
        weights = self.weigh(scope)
        counts = (weights > 0).sum(axis=1)
        return RowsPart(
            name=self.name,
            weights=divide(weights, counts[:, None]).astype(np.float32),
            barred=~scope.batch.in_words,
            constants=np.zeros((scope.batch.size, 1), dtype=np.float32),
            counts=counts[:, None],
        )


@dataclass(frozen=True, kw_only=True)
class RowsPart(Part):
    """``weights`` (B, N) of each row; ``barred`` (B, N) are keys that are no candidates."""

    name: str
    weights: FloatArray
    barred: BoolArray

    def read(self, layer: Layer) -> Array:
        """Weighted sums over rows."""
        rows = layer.largest(self.barred) if self.name == "largest" else getattr(layer, self.name)
        return (rows * self.weights[:, None]).sum(-1, keepdims=True)


def _of_words(scope: Scope) -> NDArray[np.float64]:
    return scope.batch.in_words.astype(np.float64)


def _of_rows(scope: Scope) -> NDArray[np.float64]:
    return scope.batch.real.astype(np.float64)


def _of_shares(scope: Scope) -> NDArray[np.float64]:
    return divide(scope.batch.real, np.log(np.maximum(scope.row_lengths, 1)))
