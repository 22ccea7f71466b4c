"""Roles -> a plan for a batch: what is to be read from the attention of each layer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from headroles.encoding import IntArray
from headroles.roles.batch import Scope
from headroles.roles.candidates import Candidates, find_candidates
from headroles.roles.fixed_offsets import OFFSETS
from headroles.roles.role import Role
from headroles.roles.rows import BoolArray, FloatArray
from headroles.roles.sieve import Part, Sieve


@dataclass(frozen=True)
class Plan:
    """How the scores of R roles are read from a layer, for a batch of B examples.

    ``key_sets`` (B, N, K) is 1 where a token belongs to a set. What the ``parts`` read, one after
    the other, is what the roles score, each in the column that ``columns`` (R,) says. ``counts``
    (B, R) are how many tokens or arcs are behind the score of a role; where it is 0 there is none.

    For scores of first choices there are the ``candidates``, and ``offset_shares`` (B, R, offsets),
    which are NaN for roles that have nothing to do with fixed offsets.
    """

    key_sets: FloatArray
    parts: tuple[Part, ...]
    columns: tuple[int, ...]
    counts: IntArray
    candidates: Candidates | None = None
    offset_shares: FloatArray | None = None

    @property
    def bounds(self) -> FloatArray:
        """(B, R, 2): the least and the most that a score can be; NaN where nothing is known."""
        unknown = [np.full(part.counts.shape, np.nan, dtype=np.float32) for part in self.parts]
        sides = [
            [given if own is None else own for own, given in zip(of_parts, unknown, strict=True)]
            for of_parts in (
                [part.lows for part in self.parts],
                [part.highs for part in self.parts],
            )
        ]
        bounds = np.stack([np.concatenate(side, axis=1) for side in sides], axis=-1)
        bounds = bounds[:, self.columns]
        bounds[self.counts == 0] = np.nan
        return bounds

    @property
    def skipped(self) -> Counter[str]:
        """What was left out for want of pieces, by reason."""
        return sum((part.skipped for part in self.parts), Counter())

    @property
    def controls(self) -> Counter[str]:
        """What contrasts could be made of."""
        return sum((part.controls for part in self.parts), Counter())


def plan_roles(roles: Sequence[Role], scope: Scope) -> Plan:
    """The plan of ``roles`` for a scope. Their sieves must be known; equal ones are read once."""
    sieves = [_sieve(role) for role in roles]
    by_kind: dict[Hashable, dict[Sieve, None]] = {}
    for sieve in sieves:
        by_kind.setdefault(sieve.kind, {})[sieve] = None
    key_sets = _KeySetList()
    for sieve in sieves:
        key_sets.add(sieve.key_sets(scope.batch))
    alike = [list(of_kind) for of_kind in by_kind.values()]
    parts = tuple(those[0].plan(those, scope, key_sets) for those in alike)
    places = {sieve: place for place, sieve in enumerate(chain.from_iterable(alike))}
    columns = tuple(places[sieve] for sieve in sieves)
    chooses = scope.score.of_first_choice
    return Plan(
        key_sets=key_sets.stacked(scope),
        parts=parts,
        columns=columns,
        counts=np.concatenate([part.counts for part in parts], axis=1)[:, columns],
        candidates=scope.batch.of(find_candidates) if chooses else None,
        offset_shares=_offset_shares(parts)[:, columns] if chooses else None,
    )


def _offset_shares(parts: Sequence[Part]) -> FloatArray:
    """(B, R, offsets): those of all parts, NaN for parts that have none."""
    missing = np.full(len(OFFSETS), np.nan, dtype=np.float32)
    known = [
        np.broadcast_to(missing, (*part.counts.shape, len(OFFSETS)))
        if part.offset_shares is None
        else part.offset_shares
        for part in parts
    ]
    return np.concatenate(known, axis=1)


def bounds_of(plans: Sequence[Plan]) -> FloatArray:
    """(B, R, 2): the least and the most that a score can be under any of the plans of a batch."""
    of_plans = [plan.bounds for plan in plans]
    low = np.fmin.reduce([bounds[..., 0] for bounds in of_plans])
    high = np.fmax.reduce([bounds[..., 1] for bounds in of_plans])
    return np.stack([low, high], axis=-1)


def _sieve(role: Role) -> Sieve:
    if role.sieve is None:
        raise ValueError(f"the role {role.id!r} was read from a file: it has no sieve")
    return role.sieve


class _KeySetList:
    """Key sets in the order in which sieves name them, each once."""

    def __init__(self) -> None:
        self._places: dict[int, int] = {}
        self._key_sets: list[BoolArray] = []

    def add(self, key_sets: Sequence[BoolArray]) -> None:
        for keys in key_sets:
            if id(keys) not in self._places:  # they stay alive in the list
                self._places[id(keys)] = len(self._key_sets)
                self._key_sets.append(keys)

    def place(self, keys: BoolArray) -> int:
        return self._places[id(keys)]

    def __len__(self) -> int:
        return len(self._key_sets)

    def stacked(self, scope: Scope) -> FloatArray:
        """(B, N, K): all of them, 1 where a token belongs to a set."""
        if not self._key_sets:
            return np.zeros((scope.batch.size, scope.batch.width, 0), dtype=np.float32)
        return np.stack(self._key_sets, axis=-1).astype(np.float32)
