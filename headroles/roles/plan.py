"""Plans: how the scores of roles are read from the attention of a layer, for one batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from headroles.arrays import Float32Array, IntArray
from headroles.roles.batch import Scope
from headroles.roles.first_choices import OFFSETS, Candidates, find_candidates
from headroles.roles.role import Role
from headroles.roles.sieve import KeySetList, Part, Sieve


@dataclass(frozen=True)
class Plan:
    """Plan for reading the scores of R roles from a layer, for a batch of B examples.

    ``key_sets`` (B, N, K) is 1 where a token belongs to a set. The ``parts`` are read one after the
    other; role r scores the column ``columns[r]`` of their joined results. ``counts`` (B, R) are
    numbers of tokens or arcs behind each score; a count of 0 means that there is no score.

    Only scores of first choices have ``candidates``, and ``offset_shares`` (B, R, offsets), which
    are NaN for roles that are not compared with fixed offsets.
    """

    key_sets: Float32Array
    parts: tuple[Part, ...]
    columns: tuple[int, ...]
    counts: IntArray
    candidates: Candidates | None = None
    offset_shares: Float32Array | None = None

    @property
    def bounds(self) -> Float32Array:
        """(B, R, 2): least and greatest possible score; NaN where unknown."""
        of_parts = [np.stack([part.lows, part.highs], axis=-1) for part in self.parts]
        bounds = np.concatenate(of_parts, axis=1)[:, self.columns]
        bounds[self.counts == 0] = np.nan
        return bounds

    @property
    def skipped(self) -> Counter[str]:
        """Numbers of arcs skipped because their words have no pieces, by reason."""
        return sum((part.skipped for part in self.parts), Counter())

    @property
    def controls(self) -> Counter[str]:
        """Numbers of links with and without controls, from contrasts."""
        return sum((part.controls for part in self.parts), Counter())


def plan_roles(roles: Sequence[Role], scope: Scope) -> Plan:
    """Plan the reading of ``roles`` for a scope; equal sieves are read once.

    Raises ValueError for a role without a sieve.
    """
    sieves = [_sieve(role) for role in roles]
    # a dict keeps the order and drops equal sieves
    by_kind: dict[Hashable, dict[Sieve, None]] = {}
    for sieve in sieves:
        by_kind.setdefault(sieve.kind, {})[sieve] = None
    key_sets = KeySetList()
    for sieve in sieves:
        key_sets.add(sieve.key_sets(scope.batch))
    alike = [list(of_kind) for of_kind in by_kind.values()]
    parts = tuple(group[0].plan(group, scope, key_sets) for group in alike)
    places = {sieve: place for place, sieve in enumerate(chain.from_iterable(alike))}
    columns = tuple(places[sieve] for sieve in sieves)
    chooses = scope.score.of_first_choice
    return Plan(
        key_sets=key_sets.stacked(scope.batch),
        parts=parts,
        columns=columns,
        counts=np.concatenate([part.counts for part in parts], axis=1)[:, columns],
        candidates=scope.batch.of(find_candidates) if chooses else None,
        offset_shares=_offset_shares(parts)[:, columns] if chooses else None,
    )


def _offset_shares(parts: Sequence[Part]) -> Float32Array:
    """Join the offset shares (B, R, offsets) of all parts, NaN for parts without them."""
    missing = np.full(len(OFFSETS), np.nan, dtype=np.float32)
    known = [
        np.broadcast_to(missing, (*part.counts.shape, len(OFFSETS)))
        if part.offset_shares is None
        else part.offset_shares
        for part in parts
    ]
    return np.concatenate(known, axis=1)


def bounds_of(plans: Sequence[Plan]) -> Float32Array:
    """Return (B, R, 2), least and greatest possible score under any of a batch's plans."""
    of_plans = [plan.bounds for plan in plans]
    low = np.fmin.reduce([bounds[..., 0] for bounds in of_plans])
    high = np.fmax.reduce([bounds[..., 1] for bounds in of_plans])
    return np.stack([low, high], axis=-1)


def _sieve(role: Role) -> Sieve:
    if role.sieve is None:
        raise ValueError(
            f"the role {role.id!r} was read from a file and has no sieve; choose roles with "
            "choose_roles to score them"
        )
    return role.sieve
