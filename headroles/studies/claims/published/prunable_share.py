"""Two fifths of the heads can go together."""

from __future__ import annotations

from headroles.studies.claims.claim import TASK, Claim, Finding, reversed_finding
from headroles.studies.claims.means import DIFFERENCES, mean_beyond
from headroles.studies.claims.measured import Measured

SHARE = 0.4


def test(measured: Measured) -> Finding:
    """Test whether the 40 % least important heads lower probabilities less than the margin."""
    task, margin = measured.tasks[0], measured.options.probability_margin
    falls = task.falls([task.least_important(SHARE)])[~task.first, 0]
    return reversed_finding(
        mean_beyond(falls, margin, None, alpha=measured.alpha, bounds=DIFFERENCES)
    )


CLAIM = Claim(
    id="prunable-share",
    source="Michel et al. 2019",
    statement="The least important 40 % of the heads can go together at no noticeable cost, "
    "without training.",
    published="0.40 of the heads (BERT on MNLI)",
    needs=TASK,
    effect="fall of the probability of the right answer without them",
    rule="Random: examples; importance is estimated on the other half. Null: a fall of the margin. "
    "Contradicted if probabilities fall by more.",
    test=test,
)
