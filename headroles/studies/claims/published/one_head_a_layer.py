"""Every layer can live with one head."""

from __future__ import annotations

from dataclasses import replace

from headroles.studies.claims.claim import TASK, Claim, Finding
from headroles.studies.claims.means import DIFFERENCES, Halves, all_of, some_head
from headroles.studies.claims.measured import Measured
from headroles.wording import head_name


def test(measured: Measured) -> Finding:
    """Test whether the best head of each layer alone costs less than the margin."""
    task, margin = measured.tasks[0], measured.options.probability_margin
    halves = Halves(~task.first, None, (1, task.shape[1]), measured.alpha)
    parts = []
    for layer, falls in task.alone.items():
        names = [head_name(one) for one in task.heads if one[0] == layer]
        parts.append(some_head(-falls, -margin, halves, DIFFERENCES, names))
    found = all_of(parts, [f"layer {layer}" for layer in task.alone], "largest")
    return replace(found, effect=-found.effect, low=-found.high, high=-found.low)


CLAIM = Claim(
    id="one-head-a-layer",
    source="Michel et al. 2019",
    statement="Each layer can do with its best head alone, the other layers being whole.",
    published="-0.96 to +0.10 points of accuracy by layer (BERT), none significant",
    needs=TASK,
    effect="fall of the probability of the right answer with the best head alone, the largest of "
    "all layers",
    rule="Random: examples; the head is chosen on one half of them. Null: a fall of the margin in "
    "some layer. Contradicted if in one layer every head alone costs more.",
    test=test,
)
