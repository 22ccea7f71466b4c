"""Claims of Michel et al. (2019)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headroles.studies.claims.claim import (
    TASK,
    TWO_TASKS,
    Finding,
    NotTestable,
    claim,
    reversed_finding,
)
from headroles.studies.claims.means import (
    DIFFERENCES,
    Halves,
    all_of,
    mean_beyond,
    most_within,
    some_head,
)
from headroles.studies.claims.measured import Measured
from headroles.studies.claims.orders import DRAWS, ranked_among
from headroles.wording import head_name

MOST = 0.9


@claim(
    source="Michel et al. 2019",
    statement="Each of most heads (90 %) can be removed by itself at no cost.",
    published="0.92 (88 of 96 heads, BLEU not significantly changed)",
    needs=TASK,
    effect="share of heads without which the mean probability of the right answer changes by less "
    "than the margin",
    rule="Random: examples. Null: fewer than 90 % of the heads change the probability by less than "
    "the margin (partial conjunction). Contradicted if without each of more than 10 % of the heads "
    "it falls by more.",
)
def many_can_go(measured: Measured) -> Finding:
    """Test whether 90 % of the heads can go one by one with changes below the margin."""
    margin = measured.options.probability_margin
    falls = measured.tasks[0].one_by_one
    return most_within(falls, margin, MOST, DIFFERENCES, alpha=measured.alpha)


@claim(
    source="Michel et al. 2019",
    statement="One head, the best, is enough in any layer if the other layers keep their heads.",
    published="-0.96 to +0.10 points of accuracy by layer (BERT), none significant",
    needs=TASK,
    effect="fall of the probability of the right answer with the best head alone in its layer, the "
    "largest of all layers",
    rule="Random: examples; the head is chosen on one half of them. Null: a fall by the margin in "
    "some layer. Contradicted if in one layer every head alone costs more.",
)
def one_head_a_layer(measured: Measured) -> Finding:
    """Test whether the best head of each layer alone costs less than the margin."""
    task, margin = measured.tasks[0], measured.options.probability_margin
    halves = Halves(~task.first, None, (1, task.shape[1]), measured.alpha)
    findings = []
    for layer, falls in task.alone.items():
        names = [head_name(one) for one in task.heads if one[0] == layer]
        findings.append(some_head(-falls, -margin, halves, DIFFERENCES, names))
    found = all_of(findings, [f"layer {layer}" for layer in task.alone], "largest")
    return replace(found, effect=-found.effect, low=-found.high, high=-found.low)


PRUNABLE = 0.4


@claim(
    source="Michel et al. 2019",
    statement="The least important 40 % of the heads can go together at no noticeable cost, "
    "without training.",
    published="0.40 of the heads (BERT on MNLI)",
    needs=TASK,
    effect="fall of the probability of the right answer without these heads",
    rule="Random: examples; importance is estimated on the other half. Null: a fall by the margin. "
    "Contradicted if the probability falls by more.",
)
def prunable_share(measured: Measured) -> Finding:
    """Test whether the 40 % least important heads lower probabilities less than the margin."""
    task, margin = measured.tasks[0], measured.options.probability_margin
    falls = task.falls([task.least_important(PRUNABLE)])[~task.first, 0]
    return reversed_finding(
        mean_beyond(falls, margin, None, alpha=measured.alpha, bounds=DIFFERENCES)
    )


def within(values: np.ndarray) -> np.ndarray:
    """Return values (layers, heads) less the mean of their layer."""
    return np.asarray(values - np.nanmean(values, axis=1, keepdims=True))


@claim(
    source="Michel et al. 2019",
    statement="Heads that matter in one data set matter in another.",
    published="0.68 (MNLI, matched and mismatched), 0.56 (translation)",
    needs=TWO_TASKS,
    effect="correlation of the fall of the probability of the right answer without each head, "
    "within layers",
    rule="Random: heads of the same layers. Null: heads of a layer are shuffled. Contradicted if "
    "the correlation is negative.",
)
def tasks_agree(measured: Measured) -> Finding:
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
        raise NotTestable("in one task or both, removing a head changes no probability")
    rng = np.random.default_rng(measured.options.seed)
    shuffled = rng.permuted(np.broadcast_to(second, (DRAWS, *second.shape)), axis=2)
    drawn = np.einsum("lh,dlh->d", first, shuffled) / length
    return ranked_among(float((first * second).sum() / length), drawn, first.size, "heads")
