"""Options of learnt gates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from headroles.errors import UsageError
from headroles.options import Option, seed_option
from headroles.studies.pruning.options import MOST_RATE, TestSetOptions, UpdateOptions

FROZEN, TRAINED = WEIGHTS = ("frozen", "trained")


@dataclass(frozen=True, kw_only=True)
class GateOptions(UpdateOptions, TestSetOptions):
    """Options of learning gates."""

    title: ClassVar[str] = "Heads"

    keep: Annotated[int | None, Option("Number of heads to keep.", least=1)] = None
    seeds: Annotated[
        int,
        Option(
            "How often gates are learnt, with different random numbers.",
            more="The heads with the lowest loss on the task are kept; the summary counts how many "
            "of them other seeds keep.",
            least=1,
        ),
    ] = 3
    updates: Annotated[int, Option("Updates of the gates.", words="the updates", least=3)] = 300
    gate_rate: Annotated[
        float,
        Option("Learning rate of the gates.", words="the learning rate", above=0, below=MOST_RATE),
    ] = 0.1
    weights: Annotated[
        str,
        Option(
            "Whether the weights of the model are frozen or trained together with the gates.",
            words="the treatment of weights",
            choices=WEIGHTS,
        ),
    ] = FROZEN
    weight_rate: Annotated[
        float,
        Option(
            "Learning rate of trained weights.",
            words="the learning rate of weights",
            above=0,
            below=MOST_RATE,
        ),
    ] = 2e-5
    seed: Annotated[int, seed_option("The first seed; the others are the next numbers.")] = 0

    @property
    def n_kept(self) -> int:
        """The number of heads to keep."""
        return self.keep or 0

    def check(self) -> None:
        """Reject a missing number of heads."""
        super().check()
        if self.keep is None:
            raise UsageError("give the number of heads to keep: keep (--keep N)")
        if self.weights == FROZEN and self.weight_rate != GateOptions.weight_rate:
            raise UsageError(
                "weight_rate (--weight-rate) does nothing to frozen weights; pass "
                "weights='trained' (--weights trained), or leave it out"
            )
