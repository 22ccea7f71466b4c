"""Bottom layers matter as much as top layers."""

from __future__ import annotations

from headroles.studies.claims.claim import TASK, Claim, Finding
from headroles.studies.claims.means import DIFFERENCES, mean_within
from headroles.studies.claims.measured import Measured
from headroles.studies.claims.published.middle_layers_matter import thirds


def test(measured: Measured) -> Finding:
    """Test whether probabilities without either end differ by less than the margin."""
    task = measured.tasks[0]
    bottom, _, top = thirds(task)
    bottom, top = task.without([bottom, top]).T
    margin = measured.options.probability_margin
    return mean_within(top - bottom, margin, None, alpha=measured.alpha, bounds=DIFFERENCES)


CLAIM = Claim(
    id="bottom-as-top",
    source="Budhraja et al. 2020, abstract",
    statement="It makes no difference whether heads of the bottom or of the top layers are pruned.",
    published="in words only",
    needs=TASK,
    effect="probability of the right answer without the top third of layers less that without "
    "the bottom third",
    rule="Random: examples. Null: a difference of the margin or more (two one-sided tests). "
    "Contradicted if it is shown to be larger. Without training after pruning, unlike the paper.",
    test=test,
)
