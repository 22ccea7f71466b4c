"""Options of pruning curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

from msgspec import Meta

from headroles.errors import UsageError
from headroles.options import Convert, split_names
from headroles.studies.importance.importance import ESTIMATORS, NORMALISATIONS
from headroles.studies.pruning.options import (
    BY_ESTIMATE,
    BY_ROLE,
    ORDERS,
    SelectionOptions,
    TestSetOptions,
    check_role,
)
from headroles.testing.options import CorrectionOptions


def _shares(given: Any) -> tuple[float, ...]:
    found = []
    for name in split_names(str(given) if isinstance(given, float) else given):
        try:
            share = float(name)
        except ValueError:
            share = 0.0
        if not 0 < share < 1:
            raise UsageError(f"the share is {name}; it must lie between 0 and 1")
        found.append(share)
    return tuple(sorted(set(found)))


@dataclass(frozen=True, kw_only=True)
class CurveOptions(SelectionOptions, CorrectionOptions, TestSetOptions):
    """Options of the orders of removing heads, and of their comparison."""

    orders: Annotated[Sequence[str], Convert(split_names)] = "importance,reestimated,random"
    """Orders in which heads are removed: orders of prune, separated by commas.

    importance and reestimated may name an estimator and a normalisation, as in
    importance:signed:l2; with_role and without_role a role, as in with_role:local.
    """
    shares: Annotated[Sequence[float], Convert(_shares)] = (0.1, 0.3, 0.5, 0.7, 0.9)
    """Shares of the heads that are removed, separated by commas."""
    examples: Annotated[int | None, Meta(ge=2)] = None
    """Most examples of TASK that each draw finds its orders with.

    No two draws have an example in common; left out: draws divide all of TASK.
    """
    draws: Annotated[int, Meta(ge=1)] = 5
    """Draws of random heads, and of the examples that orders are found with.

    With one draw, answers are about the very orders that are found.
    """
    against: str = "random"
    """The order to compare all others with."""

    def check(self) -> None:
        """Reject unknown orders, orders by role without a role, and no order to compare with."""
        super().check()
        if not self.orders or not self.shares:
            raise UsageError("name an order and a share at least with `orders` and `shares`")
        if len(set(self.orders)) < len(self.orders):
            raise UsageError("an order is named twice; name each once in `orders`")
        for order in self.orders:
            check_role(*self.of_order(order))
        if self.against not in self.orders:
            raise UsageError(
                f"`against` is {self.against!r}; it must be one of the orders: "
                f"{', '.join(self.orders)}"
            )

    def of_order(self, order: str) -> tuple[str, Self]:
        """Return the bare name of an order, and the options that its full name sets."""
        name, colon, more = order.partition(":")
        if name not in ORDERS:
            raise UsageError(f"the order is {name!r}; it must be one of {', '.join(ORDERS)}")
        if not colon:
            return name, self
        if name in BY_ROLE:
            return name, self._changed(role=more)
        changes: dict[str, str] = {}
        for word in more.split(":"):
            if name in BY_ESTIMATE and word in ESTIMATORS:
                changes["estimator"] = word
            elif name in BY_ESTIMATE and word in NORMALISATIONS:
                changes["normalisation"] = word
            else:
                raise UsageError(
                    f"`orders` has {order!r}, of which {word!r} is not known; importance and "
                    "reestimated take an estimator and a normalisation, with_role and "
                    "without_role a role"
                )
        return name, self._changed(**changes)

    def _changed(self, **changes: Any) -> Self:
        # With one order of no name: `check` of the given orders would call itself.
        return replace(self, orders=("random",), against="random", **changes)
