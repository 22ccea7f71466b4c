"""Two fifths of the heads can go together."""

from __future__ import annotations

from headroles.studies.claims.claim import TASK, Claim, Finding, reversed_finding
from headroles.studies.claims.kinds import mean_beyond
from headroles.studies.claims.measured import Measured

SHARE = 0.4


def test(measured: Measured) -> Finding:
    """Does the loss without the 40 % least important heads rise by less than the margin?"""
    task = measured.tasks[0]
    rises = task.rises([task.least_important(SHARE)])[~task.first, 0]
    return reversed_finding(
        mean_beyond(rises, measured.options.loss_margin, None, alpha=measured.alpha)
    )


CLAIM = Claim(
    id="prunable-share",
    source="Michel et al. 2019",
    statement="The least important 40 % of the heads can go together at no noticeable cost, "
    "without training.",
    published="0.40 of the heads (BERT on MNLI)",
    needs=TASK,
    effect="rise of the loss without them, in nats",
    rule="Random: examples; importance is estimated on the other half. Null: a rise of the margin. "
    "Contradicted if the loss rises by more.",
    test=test,
)
