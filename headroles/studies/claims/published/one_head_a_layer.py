"""Every layer can live with one head."""

from __future__ import annotations

from dataclasses import replace

from headroles.studies.claims.claim import TASK, Claim, Finding
from headroles.studies.claims.kinds import Halves, heads_for_each
from headroles.studies.claims.measured import Measured


def test(measured: Measured) -> Finding:
    """Does the best single head of each layer raise the loss by less than the margin?"""
    task, margin = measured.tasks[0], measured.options.loss_margin
    halves = Halves(~task.first, None, (1, task.shape[1]), measured.alpha)
    falls = {f"layer {layer}": -rises for layer, rises in task.alone.items()}
    found = heads_for_each(falls, -margin, halves)
    return replace(found, effect=-found.effect, low=-found.high, high=-found.low)


CLAIM = Claim(
    id="one-head-a-layer",
    source="Michel et al. 2019",
    statement="Each layer can do with its best head alone, the other layers being whole.",
    published="-0.96 to +0.10 points of accuracy by layer (BERT), none significant",
    needs=TASK,
    effect="rise of the loss with the best head alone, the largest of all layers, in nats",
    rule="Random: examples; the head is chosen on one half of them. Null: a rise of the margin in "
    "some layer. Contradicted if in one layer every head alone costs more.",
    test=test,
)
