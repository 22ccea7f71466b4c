"""Bottom layers matter as much as top layers."""

from __future__ import annotations

from headroles.studies.claims.claim import TASK, Claim, Finding
from headroles.studies.claims.kinds import mean_within
from headroles.studies.claims.measured import Measured
from headroles.studies.claims.published.middle_layers_matter import thirds


def test(measured: Measured) -> Finding:
    """Does it change the loss by less than the margin which end is pruned?"""
    task, chosen = measured.tasks[0], thirds(measured)
    sets = [[head for head in task.heads if head[0] in chosen[end]] for end in ("bottom", "top")]
    bottom, top = task.rises(sets).T
    return mean_within(bottom - top, measured.options.loss_margin, None, alpha=measured.alpha)


CLAIM = Claim(
    id="bottom-as-top",
    source="Budhraja et al. 2020, abstract",
    statement="It makes no difference whether heads of the bottom or of the top layers are pruned.",
    published="in words only",
    needs=TASK,
    effect="loss without the bottom third of layers less that without the top third, in nats",
    rule="Random: examples. Null: a difference of the margin or more (two one-sided tests). "
    "Contradicted if it is shown to be larger. Without training after pruning, unlike the paper.",
    test=test,
)
