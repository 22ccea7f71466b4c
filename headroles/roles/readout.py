"""Readouts: how the scores of roles are read from the attention of a layer, for one batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from headroles.arrays import BoolArray, Float32Array, IntArray
from headroles.roles.batch import PaddedBatch, Scope
from headroles.roles.first_choices import OFFSETS, Candidates, find_candidates
from headroles.roles.pairs import Offsets, Pairs
from headroles.roles.role import Role
from headroles.roles.sets import Sets
from headroles.roles.sieve import KeySets, Sieve, SieveReadout


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
    """Make the readout of ``roles`` for a scope; equal sieves are read once.

    Raises ValueError for a role without a sieve.
    """
    sieves = [_sieve(role) for role in roles]
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
    chooses = scope.score.of_first_choice
    return Readout(
        key_sets=stacked,
        by_kind=by_kind,
        columns=columns,
        counts=np.concatenate([one.counts for one in by_kind], axis=1)[:, columns],
        candidates=batch.of(find_candidates) if chooses else None,
        offset_shares=_offset_shares(by_kind)[:, columns] if chooses else None,
    )


def _offset_shares(by_kind: Sequence[SieveReadout]) -> Float32Array:
    """Join the offset shares (B, R, offsets) of all readouts, NaN for those without."""
    missing = np.full(len(OFFSETS), np.nan, dtype=np.float32)
    known = [
        np.broadcast_to(missing, (*one.counts.shape, len(OFFSETS)))
        if one.offset_shares is None
        else one.offset_shares
        for one in by_kind
    ]
    return np.concatenate(known, axis=1)


def _sieve(role: Role) -> Sieve:
    if role.sieve is None:
        raise ValueError(
            f"the role {role.id!r} was read from a file and has no sieve; choose roles with "
            "choose_roles to score them"
        )
    return role.sieve


def bounds_of(readouts: Sequence[Readout]) -> Float32Array:
    """Return (B, R, 2), least and greatest possible score under any of a batch's readouts."""
    low, high = np.moveaxis(np.stack([readout.bounds for readout in readouts]), -1, 0)
    return np.stack([np.fmin.reduce(low), np.fmax.reduce(high)], axis=-1)


def marked_words(role: Role, batch: PaddedBatch) -> tuple[set[int], list[tuple[int, int]]]:
    """Return the words in the role's sieves, and the pairs of words that look for each other.

    The batch holds one example. Words are numbered through the example. Both results are empty if
    the sieve consists of positions or special tokens.
    """
    words = batch.words[0]
    if isinstance(role.sieve, Pairs):
        queries, keys = (words[ends[:, 0]].tolist() for ends in role.sieve.ends(batch))
        return set(keys), list(zip(queries, keys, strict=True))
    if isinstance(role.sieve, Sets):
        sets = [shared.keys[0] for shared in batch.of(role.sieve.find)]
        found = words[np.any(sets, axis=0)]
        return set(found[found >= 0].tolist()), []
    return set(), []


def sieve_cells(role: Role, batch: PaddedBatch) -> BoolArray:
    """Mark (N, N) the cells in which query i looks for key j, for a batch of one example.

    A contrast has the cells of its role, without its controls; a quantity that only describes heads
    has no cells.
    """
    cells = np.zeros((batch.width, batch.width), dtype=bool)
    sieve = role.sieve
    if isinstance(sieve, Pairs):
        for query, key in zip(*sieve.ends(batch), strict=True):
            cells[slice(query[0], query.sum()), slice(key[0], key.sum())] = True
    elif isinstance(sieve, Sets):
        for queries, keys in batch.of(sieve.find):
            cells |= queries[0][:, None] & keys[0]
    elif isinstance(sieve, Offsets):
        for offset in sieve.offsets:
            cells |= np.eye(batch.width, k=offset, dtype=bool)
    return cells
