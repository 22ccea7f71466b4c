"""Readouts: roles -> what reads their scores from the attention of a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headroles.arrays import Float32Array, IntArray
from headroles.roles.batch import OFFSETS, Candidates, Scope, find_candidates
from headroles.roles.role import Role
from headroles.roles.rules import N_RULES
from headroles.roles.sieve import KeySets, Sieve, SieveReadout


@dataclass(frozen=True)
class Readout:
    """Readout of the scores of R roles from a layer, for a batch of B examples.

    ``key_sets`` (B, N, K) is 1 where a token belongs to a set. The readouts ``by_kind`` of sieve
    are read one after the other; role r scores the column ``columns[r]`` of their joined results.
    ``counts`` (B, R) are numbers of tokens or arcs behind each score; a count of 0 means that there
    is no score.

    Only scores of first choices have ``candidates``, ``offset_shares`` (B, R, offsets), which are
    NaN for roles that are not compared with rules, and ``class_hits`` (B, R, rules), which are 0.
    """

    key_sets: Float32Array
    by_kind: tuple[SieveReadout, ...]
    columns: IntArray
    counts: IntArray
    candidates: Candidates | None = None
    offset_shares: Float32Array | None = None
    class_hits: NDArray[np.uint16] | None = None

    @property
    def skipped(self) -> Counter[str]:
        """Numbers of arcs skipped because their words have no pieces, by reason."""
        return sum((part.skipped for part in self.by_kind), Counter())

    @property
    def controls(self) -> Counter[str]:
        """Numbers of links with and without controls, from contrasts."""
        return sum((part.controls for part in self.by_kind), Counter())


class SievesByKind(NamedTuple):
    """The different sieves of R roles, by kind; that of role r has the number ``columns[r]``."""

    alike: list[list[Sieve]]
    columns: IntArray


def group_sieves(roles: Sequence[Role]) -> SievesByKind:
    """Group the sieves of roles by kind; equal sieves are one."""
    sieves = [role.sieve for role in roles if role.sieve is not None]
    # a dict keeps the order and drops equal sieves
    sieves_of: dict[Hashable, dict[Sieve, None]] = {}
    for sieve in sieves:
        sieves_of.setdefault(sieve.kind, {})[sieve] = None
    alike = [list(of_kind) for of_kind in sieves_of.values()]
    column_of = {sieve: column for column, sieve in enumerate(chain.from_iterable(alike))}
    return SievesByKind(alike, np.array([column_of[sieve] for sieve in sieves], dtype=np.int64))


def make_readout(sieves: SievesByKind, scope: Scope) -> Readout:
    """Make the readout of the roles of these sieves for a scope."""
    batch, (alike, columns) = scope.batch, sieves
    key_sets: KeySets = {
        id(keys): keys for sieve in chain.from_iterable(alike) for keys in sieve.key_sets(batch)
    }
    by_kind = tuple(group[0].readout(group, scope, key_sets) for group in alike)
    stacked = np.zeros((batch.size, batch.width, len(key_sets)), dtype=np.float32)
    for column, keys in enumerate(key_sets.values()):
        stacked[:, :, column] = keys
    readout = Readout(
        key_sets=stacked,
        by_kind=by_kind,
        columns=columns,
        counts=np.concatenate([part.counts for part in by_kind], axis=1)[:, columns],
    )
    if not scope.score.of_first_choice:
        return readout
    shares = [
        np.full((*part.counts.shape, len(OFFSETS)), np.nan, dtype=np.float32)
        if part.offset_shares is None
        else part.offset_shares
        for part in by_kind
    ]
    hits = [
        np.zeros((*part.counts.shape, N_RULES), dtype=np.uint16)
        if part.class_hits is None
        else part.class_hits
        for part in by_kind
    ]
    return replace(
        readout,
        candidates=batch.of(find_candidates),
        offset_shares=np.concatenate(shares, axis=1)[:, columns],
        class_hits=np.concatenate(hits, axis=1)[:, columns],
    )


def bounds_of(readouts: Sequence[Readout]) -> Float32Array:
    """Return (B, R, 2), least and greatest possible score under any of a batch's readouts.

    They are NaN without a score, or if unknown.
    """
    limits = []
    for readout in readouts:
        of_kinds = np.concatenate([part.limits for part in readout.by_kind], axis=2)
        limits.append(np.where(readout.counts > 0, of_kinds[1:, :, readout.columns], np.nan))
    low, high = zip(*limits, strict=True)
    return np.stack([np.fmin.reduce(low), np.fmax.reduce(high)], axis=-1, dtype=np.float32)
