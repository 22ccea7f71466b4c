"""Sieves: for each query of a role, the keys that a head with it would look at.

For one example of n tokens and one head, ``A[i, j]`` is the attention from query i to key j. A role
names query tokens Q and, for each, a sieve of keys S_i, and scores the head by the mean over i in Q
of a value of row i. The ``bias`` score reads n / |S_i| times the mass of attention in S_i; all
scores are linear in that mass:

    mean over i in Q of (slope_i * sum of A[i, j] over j in S_i + offset_i) = sum_ij W_ij A_ij + c

W and c are fixed before the model runs, so scoring is a contraction of attention with them. There
are two kinds of sieves, each of which keeps W small in its own way, and both are exact: key sets
that many queries share (`headroles.roles.sets`), and pairs of a query and a key with a weight
(`headroles.roles.pairs`). A readout has the arrays of all of them, for one batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from headroles.arrays import BoolArray, Float32Array, IntArray
from headroles.roles.batch import PaddedBatch, Scope
from headroles.roles.first_choices import OFFSETS, Candidates, find_candidates
from headroles.roles.role import Role

Array: TypeAlias = Any
"""A NumPy array in a new readout, a tensor where the model runs."""
Layer: TypeAlias = Any
"""Attention of one layer over a batch: an `AttentionLayer` or `ChoiceLayer` of
`headroles.scoring.layer`.
"""
KeySets: TypeAlias = dict[int, BoolArray]
"""The key sets (B, N) of all sieves of a readout in order, each once, by `id`."""


class Sieve(ABC):
    """Rule that finds the sieve of a role."""

    @property
    def kind(self) -> Hashable:
        """Key of the sieves that are read together; by default each sieve is read alone."""
        return self

    def key_sets(self, batch: PaddedBatch) -> Sequence[BoolArray]:
        """Return the sets of keys (B, N) whose attention mass is read for every row."""
        return ()

    @abstractmethod
    def readout(self, alike: Sequence[Any], scope: Scope, key_sets: KeySets) -> SieveReadout:
        """Make the readout of the scores of ``alike``, the sieves of this kind."""

    def cells(self, batch: PaddedBatch) -> BoolArray:
        """Mark (N, N) the cells in which query i looks for key j, for a batch of one example.

        A contrast has the cells of its role, without its controls; a quantity that only describes
        heads has no cells.
        """
        return np.zeros((batch.width, batch.width), dtype=bool)

    def words(self, batch: PaddedBatch) -> tuple[set[int], list[tuple[int, int]]]:
        """Return the words in the sieves, and the pairs of words that look for each other.

        The batch holds one example. Words are numbered through the example. Both results are empty
        if the sieve consists of positions or special tokens.
        """
        return set(), []


@dataclass(frozen=True, kw_only=True)
class SieveReadout:
    """Readout of the scores of r roles with sieves of one kind, for a batch.

    ``function`` reads scores less their constants (B, heads, r) from a layer and the ``arrays``;
    they are undefined where counts are 0. ``limits`` (3, B, r) are these constants, and the least
    and the greatest score under any attention, NaN where unknown. ``counts`` (B, r) are numbers of
    tokens or arcs behind each score; a count of 0 means that there is no score. By reason,
    ``skipped`` counts arcs of words without pieces, and ``controls`` links with and without
    controls.

    It reads attention; for scores of first choices, if ``among`` names candidates, 1 at the choice
    and 0 elsewhere. ``offset_shares`` (B, r, offsets) are the scores of always looking at a fixed
    offset, NaN without a score; None for roles that are not compared with fixed offsets.
    """

    function: Callable[..., Array]
    arrays: tuple[Array, ...]
    limits: Float32Array
    counts: IntArray
    among: str | None = None
    offset_shares: Float32Array | None = None
    skipped: Counter[str] = field(default_factory=Counter)
    controls: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Readout:
    """Readout of the scores of R roles from a layer, for a batch of B examples.

    ``key_sets`` (B, N, K) is 1 where a token belongs to a set. The readouts ``by_kind`` of sieve
    are read one after the other; role r scores the column ``columns[r]`` of their joined results.
    ``counts`` (B, R) are numbers of tokens or arcs behind each score; a count of 0 means that there
    is no score.

    Only scores of first choices have ``candidates``, and ``offset_shares`` (B, R, offsets), which
    are NaN for roles that are not compared with fixed offsets.
    """

    key_sets: Float32Array
    by_kind: tuple[SieveReadout, ...]
    columns: tuple[int, ...]
    counts: IntArray
    candidates: Candidates | None = None
    offset_shares: Float32Array | None = None

    @property
    def bounds(self) -> Float32Array:
        """(B, R, 2): least and greatest possible score; NaN where unknown."""
        of_kinds = [np.moveaxis(one.limits[1:], 0, -1) for one in self.by_kind]
        bounds = np.concatenate(of_kinds, axis=1)[:, self.columns]
        bounds[self.counts == 0] = np.nan
        return bounds

    @property
    def skipped(self) -> Counter[str]:
        """Numbers of arcs skipped because their words have no pieces, by reason."""
        return sum((one.skipped for one in self.by_kind), Counter())

    @property
    def controls(self) -> Counter[str]:
        """Numbers of links with and without controls, from contrasts."""
        return sum((one.controls for one in self.by_kind), Counter())


def make_readout(roles: Sequence[Role], scope: Scope) -> Readout:
    """Make the readout of ``roles``, which have sieves, for a scope; equal sieves are read once."""
    sieves: list[Any] = [role.sieve for role in roles]
    batch = scope.batch
    key_sets: KeySets = {id(keys): keys for sieve in sieves for keys in sieve.key_sets(batch)}
    # a dict keeps the order and drops equal sieves
    sieves_of: dict[Hashable, dict[Sieve, None]] = {}
    for sieve in sieves:
        sieves_of.setdefault(sieve.kind, {})[sieve] = None
    alike = [list(of_kind) for of_kind in sieves_of.values()]
    by_kind = tuple(group[0].readout(group, scope, key_sets) for group in alike)
    places = {sieve: place for place, sieve in enumerate(chain.from_iterable(alike))}
    columns = tuple(places[sieve] for sieve in sieves)
    stacked = np.zeros((batch.size, batch.width, len(key_sets)), dtype=np.float32)
    for place, keys in enumerate(key_sets.values()):
        stacked[:, :, place] = keys
    readout = Readout(
        key_sets=stacked,
        by_kind=by_kind,
        columns=columns,
        counts=np.concatenate([one.counts for one in by_kind], axis=1)[:, columns],
    )
    if not scope.score.of_first_choice:
        return readout
    shares = [
        np.full((*one.counts.shape, len(OFFSETS)), np.nan, dtype=np.float32)
        if one.offset_shares is None
        else one.offset_shares
        for one in by_kind
    ]
    return replace(
        readout,
        candidates=batch.of(find_candidates),
        offset_shares=np.concatenate(shares, axis=1)[:, columns],
    )


def bounds_of(readouts: Sequence[Readout]) -> Float32Array:
    """Return (B, R, 2), least and greatest possible score under any of a batch's readouts."""
    low, high = np.moveaxis(np.stack([readout.bounds for readout in readouts]), -1, 0)
    return np.stack([np.fmin.reduce(low), np.fmax.reduce(high)], axis=-1)
