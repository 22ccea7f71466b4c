"""Heads that matter for one task matter for another."""

from __future__ import annotations

import numpy as np

from headroles.studies.claims.claim import TWO_TASKS, Claim, Finding, NotTestable
from headroles.studies.claims.measured import Measured
from headroles.studies.claims.orders import ranked_among

_DRAWS = 9999


def within(values: np.ndarray) -> np.ndarray:
    """Values (layers, heads) less the mean of their layer."""
    return np.asarray(values - np.nanmean(values, axis=1, keepdims=True))


def test(measured: Measured) -> Finding:
    """Test whether the falls without each head correlate between two tasks, within layers."""
    if len(measured.tasks) < 2:
        raise NotTestable("pass two tasks for one model with task (--task)")
    one, other = measured.tasks[:2]
    falls = []
    for task in (one, other):
        means = np.full(task.shape, np.nan)
        means[tuple(zip(*task.heads, strict=True))] = task.one_by_one.mean(axis=0)
        falls.append(np.nan_to_num(within(means)))
    first, second = falls
    length = np.sqrt((first**2).sum() * (second**2).sum())
    if not length:
        raise NotTestable("without any head the answers are as they are, in one task or both")
    rng = np.random.default_rng(measured.options.seed)
    shuffled = rng.permuted(np.broadcast_to(second, (_DRAWS, *second.shape)), axis=2)
    drawn = np.einsum("lh,dlh->d", first, shuffled) / length
    return ranked_among(float((first * second).sum() / length), drawn, first.size, "heads")


CLAIM = Claim(
    id="tasks-agree",
    source="Michel et al. 2019",
    statement="Heads that matter in one data set matter in another.",
    published="0.68 (MNLI, matched and mismatched), 0.56 (translation)",
    needs=TWO_TASKS,
    effect="correlation of the fall of the probability of the right answer without each head, "
    "within layers",
    rule="Random: heads of the same layers. Null: heads of a layer are shuffled. Contradicted if "
    "the correlation is negative.",
    test=test,
)
