"""Pruning the middle layers costs most."""

from __future__ import annotations

from headroles.studies.claims.claim import TASK, Claim, Finding, NotTestable
from headroles.studies.claims.kinds import mean_beyond
from headroles.studies.claims.measured import Measured
from headroles.studies.pruning.orders import choose_layers

FEWEST = 3


def thirds(measured: Measured) -> dict[str, list[int]]:
    """A third of the layers at the bottom, in the middle and at the top."""
    n = measured.tasks[0].shape[0]
    if n < FEWEST:
        raise NotTestable(f"{n} layers have no bottom, middle and top")
    return {order: choose_layers(order, n, n // 3) for order in ("bottom", "middle", "top")}


def test(measured: Measured) -> Finding:
    """Is the loss without a third in the middle larger than without one at either end?"""
    task = measured.tasks[0]
    sets = [
        [head for head in task.heads if head[0] in layers] for layers in thirds(measured).values()
    ]
    bottom, middle, top = task.rises(sets).T
    return mean_beyond(middle - (bottom + top) / 2, 0.0, None, alpha=measured.alpha)


CLAIM = Claim(
    id="middle-layers-matter",
    source="Budhraja et al. 2020, abstract",
    statement="Pruning heads of the middle layers costs more than of the bottom or top layers.",
    published="in words only",
    needs=TASK,
    effect="loss without the middle third of layers less the mean of both ends, in nats",
    rule="Random: examples. Null: no difference. Contradicted if the ends cost more. Without "
    "training after pruning, unlike the paper.",
    test=test,
)
