"""Pruning the middle layers costs most."""

from __future__ import annotations

from headroles.models.remaining_heads import Head
from headroles.studies.claims.claim import TASK, Claim, Finding, NotTestable
from headroles.studies.claims.means import DIFFERENCES, mean_beyond
from headroles.studies.claims.measured import Measured
from headroles.studies.claims.task_probabilities import TaskProbabilities
from headroles.studies.pruning.orders import choose_layers

FEWEST = 3


def thirds(task: TaskProbabilities) -> list[list[Head]]:
    """Heads of a third of the layers: at the bottom, in the middle, at the top."""
    n = task.shape[0]
    if n < FEWEST:
        raise NotTestable(f"{n} layers have no bottom, middle and top")
    chosen = [choose_layers(order, n, n // 3) for order in ("bottom", "middle", "top")]
    return [[head for head in task.heads if head[0] in layers] for layers in chosen]


def test(measured: Measured) -> Finding:
    """Test whether right answers lose more probability without the middle than without an end."""
    task = measured.tasks[0]
    bottom, middle, top = task.without(thirds(task)).T
    more = (bottom + top) / 2 - middle
    return mean_beyond(more, 0.0, None, alpha=measured.alpha, bounds=DIFFERENCES)


CLAIM = Claim(
    id="middle-layers-matter",
    source="Budhraja et al. 2020, abstract",
    statement="Pruning heads of the middle layers costs more than of the bottom or top layers.",
    published="in words only",
    needs=TASK,
    effect="probability of the right answer without the bottom or top third of layers, their "
    "mean, less that without the middle third",
    rule="Random: examples. Null: no difference. Contradicted if the ends cost more. Without "
    "training after pruning, unlike the paper.",
    test=test,
)
