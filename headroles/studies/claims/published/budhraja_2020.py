"""Claims of Budhraja et al. (2020)."""

from __future__ import annotations

from headroles.models.remaining_heads import Head
from headroles.studies.claims.claim import TASK, Finding, NotTestable, claim
from headroles.studies.claims.means import DIFFERENCES, mean_beyond, mean_within
from headroles.studies.claims.measured import Measured
from headroles.studies.claims.task_probabilities import TaskProbabilities
from headroles.studies.pruning.orders import choose_layers

FEWEST = 3


def thirds(task: TaskProbabilities) -> list[list[Head]]:
    """Return the heads of a third of the layers: at the bottom, in the middle, at the top."""
    n = task.shape[0]
    if n < FEWEST:
        raise NotTestable(f"{n} layers have no bottom, middle and top")
    chosen = [choose_layers(order, n, n // 3) for order in ("bottom", "middle", "top")]
    return [[head for head in task.heads if head[0] in layers] for layers in chosen]


@claim(
    source="Budhraja et al. 2020, abstract",
    statement="Pruning heads of the middle layers costs more than pruning those of the bottom or "
    "top layers.",
    published="in words only",
    needs=TASK,
    effect="probability of the right answer without the bottom or top third of layers (mean of "
    "both) less that without the middle third",
    rule="Random: examples. Null: no difference. Contradicted if removing bottom or top layers "
    "costs more. Unlike in the paper, the model is not trained after pruning.",
)
def middle_layers_matter(measured: Measured) -> Finding:
    """Test whether right answers lose more probability without the middle than without an end."""
    task = measured.tasks[0]
    bottom, middle, top = task.without(thirds(task)).T
    more = (bottom + top) / 2 - middle
    return mean_beyond(more, 0.0, None, alpha=measured.alpha, bounds=DIFFERENCES)


@claim(
    source="Budhraja et al. 2020, abstract",
    statement="Pruning heads of the bottom layers costs as much as pruning those of the top.",
    published="in words only",
    needs=TASK,
    effect="probability of the right answer without the top third of layers less that without "
    "the bottom third",
    rule="Random: examples. Null: a difference of the margin or more (two one-sided tests). "
    "Contradicted if the difference is shown to be larger. Unlike in the paper, the model is not "
    "trained after pruning.",
)
def bottom_as_top(measured: Measured) -> Finding:
    """Test whether probabilities without either end differ by less than the margin."""
    task = measured.tasks[0]
    bottom, _, top = thirds(task)
    bottom, top = task.without([bottom, top]).T
    margin = measured.options.probability_margin
    return mean_within(top - bottom, margin, None, alpha=measured.alpha, bounds=DIFFERENCES)
