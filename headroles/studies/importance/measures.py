"""Losses and predictions -> the loss and the metrics, as values whose means can be tested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from headroles.arrays import FloatArray
from headroles.record import TaskRecord
from headroles.tasks.metrics import METRICS
from headroles.tasks.options import REGRESSION
from headroles.tasks.outcomes import Outcomes

LOSS, ACCURACY = "loss", "accuracy"
WORSE, BETTER = "worse", "better"
MORE, LESS = "more", "less"
_GROUPS = 50


def describe_task(record: TaskRecord, whole: Mapping[str, float]) -> str:
    """Name the model, the examples, and the loss and the metrics of the whole model."""
    task = record.task
    unit = "" if task.objective == REGRESSION else " nats"
    reached = [f"loss {whole[LOSS]:.4f}{unit}"]
    reached += [f"{name} {whole[name]:.3f}" for name in task.metrics]
    file = Path(record.corpus.file).name
    return f"{record.model.name} on {task.examples} examples of {file}: {', '.join(reached)}."


def check_measured(measured: Mapping[str, float], metrics: Sequence[str]) -> None:
    """Raise ValueError if the loss or a metric of the whole model is missing in a record."""
    if lacking := {LOSS, *metrics}.difference(measured):
        raise ValueError(f"the whole model has no {', '.join(sorted(lacking))}")


def unit_values(
    outcomes: Outcomes, targets: FloatArray, metrics: Sequence[str]
) -> dict[str, FloatArray]:
    """Return for the loss and each metric values (units, settings) with the measure as their mean.

    Units of loss and accuracy are examples. Other metrics are no means over examples: their units
    are random groups of examples, and the values are pseudo-values of the jackknife over groups
    (Tukey 1958), which may be tested like means. Their mean is the metric up to its bias.
    """
    found = {LOSS: outcomes.losses}
    for name in metrics:
        if name == ACCURACY:
            found[name] = (outcomes.predictions == targets[:, None]).astype(np.float64)
        else:
            found[name] = _pseudo_values(name, outcomes.predictions, targets)
    return found


def find_measures(
    outcomes: Outcomes, targets: FloatArray, metrics: Sequence[str]
) -> dict[str, FloatArray]:
    """Return the loss and each metric (settings,)."""
    found = {name: _each(name, outcomes.predictions, targets) for name in metrics}
    return {LOSS: outcomes.losses.mean(0), **found}


def worse_by(differences: FloatArray, measure: str) -> FloatArray:
    """Return differences of a measure, positive where worse: more loss, less of a metric."""
    return differences if measure == LOSS else -differences


def _each(name: str, predictions: FloatArray, targets: FloatArray) -> FloatArray:
    return np.array([METRICS[name](column, targets) for column in predictions.T])


def _pseudo_values(name: str, predictions: FloatArray, targets: FloatArray) -> FloatArray:
    n_groups = min(_GROUPS, len(targets))
    group = np.random.default_rng(0).permutation(len(targets)) % n_groups
    whole = _each(name, predictions, targets)
    rest = [
        _each(name, predictions[group != one], targets[group != one]) for one in range(n_groups)
    ]
    return n_groups * whole - (n_groups - 1) * np.stack(rest)
