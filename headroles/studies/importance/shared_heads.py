"""Heads of layers that share one attention module (ALBERT): removed from all of them at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from headroles.errors import UsageError
from headroles.models.heads.remaining import Head
from headroles.tasks.outcomes import Derivatives


@dataclass(frozen=True)
class SharedLayers:
    """Groups of layers that share a module; a head of the first layer stands for its group.

    A layer outside of all ``groups`` is a group of its own. Raises UsageError for groups of
    different sizes.
    """

    groups: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        sizes = {len(group) for group in self.groups}
        if len(sizes) > 1:
            raise UsageError(
                f"layers of this model share attention modules in groups of {sorted(sizes)}; heads "
                "can only be removed from models whose groups are of one size"
            )

    @property
    def size(self) -> int:
        """Number of layers in each group; 1 where nothing is shared."""
        return len(self.groups[0]) if self.groups else 1

    def group_of(self, layer: int) -> tuple[int, ...]:
        """Return the layers that share a module with ``layer``, itself included."""
        return next((group for group in self.groups if layer in group), (layer,))

    def unit_of(self, head: Head) -> Head:
        """Return the head that stands for ``head``: of the same number, in the first layer."""
        return self.group_of(head[0])[0], head[1]

    def units(self, heads: Iterable[Head]) -> list[Head]:
        """Return those of ``heads`` that stand for their groups."""
        return [head for head in heads if self.unit_of(head) == head]

    def spread(self, units: Iterable[Head]) -> list[Head]:
        """Return all heads that ``units`` stand for."""
        return [(layer, number) for first, number in units for layer in self.group_of(first)]

    def summed(self, derivatives: Derivatives) -> Derivatives:
        """Return the derivatives by gates that whole groups share: sums over their layers.

        Sums by token are of absolute values, and so an upper bound.
        """
        by_gate, by_token = derivatives.by_gate.copy(), derivatives.by_token.copy()
        for group in self.groups:
            for values in (by_gate, by_token):
                values[:, group[0]] = values[:, list(group)].sum(1)
        return replace(derivatives, by_gate=by_gate, by_token=by_token)

    def n_units(self, n_removed: int, n_heads: int) -> int:
        """Count units that ``n_removed`` of ``n_heads`` heads are.

        Raises UsageError for a part of a unit.
        """
        if n_removed % self.size:
            fewer = n_heads - n_removed // self.size * self.size
            raise UsageError(
                f"layers of this model share one attention module, so that a head is removed from "
                f"{self.size} layers at once; {n_removed} of {n_heads} heads are no multiple of "
                f"{self.size}. Pass `keep={fewer - self.size}` or `keep={fewer}`"
            )
        return n_removed // self.size


NOT_SHARED = SharedLayers()
"""Every layer has a module of its own."""
