"""Options of learnt gates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from headroles.errors import UsageError
from headroles.options import Seed
from headroles.studies.pruning.options import TestSetOptions, UpdateOptions

FROZEN, TRAINED = WEIGHTS = ("frozen", "trained")


@dataclass(frozen=True, kw_only=True)
class GateOptions(UpdateOptions, TestSetOptions):
    """Options of learning gates."""

    title: ClassVar[str] = "Heads"

    keep: Annotated[int | None, Meta(ge=1)] = None
    """Number of heads to keep."""
    seeds: Annotated[int, Meta(ge=1)] = 3
    """How often gates are learnt, with different random numbers.

    The heads with the lowest loss on the task are kept; the summary counts how many of them other
    seeds keep.
    """
    updates: Annotated[int, Meta(ge=3)] = 300
    """Updates of the gates."""
    gate_rate: Annotated[float, Meta(gt=0, lt=1000)] = 0.1
    """Learning rate of the gates."""
    weights: Literal["frozen", "trained"] = "frozen"
    """Whether the weights of the model are frozen or trained together with the gates."""
    weight_rate: Annotated[float, Meta(gt=0, lt=1000)] = 2e-5
    """Learning rate of trained weights."""
    seed: Seed = 0
    """The first seed; the others are the next numbers."""

    @property
    def n_kept(self) -> int:
        """The number of heads to keep."""
        return self.keep or 0

    def check(self) -> None:
        """Reject a missing number of heads."""
        super().check()
        if self.keep is None:
            raise UsageError("give the number of heads to keep: `keep`")
        if self.weights == FROZEN and self.weight_rate != GateOptions.weight_rate:
            raise UsageError(
                "`weight_rate` does nothing to frozen weights; pass "
                "`weights='trained'`, or leave it out"
            )
