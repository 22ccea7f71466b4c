"""Change of a task's loss between two models, over the same examples."""

from __future__ import annotations

from headroles.record import Recorded
from headroles.tasks.outcomes import Outcomes
from headroles.testing.evidence import find_p_values
from headroles.testing.hypotheses import Hypotheses, size_of
from headroles.testing.options import TestOptions


class LossChange(Recorded, frozen=True):
    """Mean of the paired differences over examples (nats), with its 95 % interval.

    ``p_value`` is of a t-test for no change (two-sided).
    """

    loss_change: float
    ci_low: float
    ci_high: float
    p_value: float

    def __str__(self) -> str:
        return (
            f"{self.loss_change:+.4f} nats (95 % interval {self.ci_low:+.4f} to "
            f"{self.ci_high:+.4f})"
        )


def find_loss_change(before: Outcomes, after: Outcomes) -> LossChange:
    """Compare the losses of the same examples, each (examples, 1)."""
    asked = TestOptions(clusters="none")
    hypotheses = Hypotheses.of(
        after.losses - before.losses,
        0.0,
        size=size_of(before.losses, after.losses),
        called="the differences",
    )
    interval = hypotheses.intervals(asked.alpha)
    return LossChange(
        loss_change=float(hypotheses.moments.mean[0]),
        ci_low=float(interval.ci_low[0]),
        ci_high=float(interval.ci_high[0]),
        p_value=float(find_p_values(hypotheses, asked, "two-sided").single[0]),
    )
