"""Metrics of predictions, by objective."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from scipy import stats

from headroles.arrays import BoolArray, FloatArray


def accuracy(predicted: FloatArray, target: FloatArray) -> float:
    """Return the share of right predictions (examples,)."""
    return float((predicted == target).mean())


def f1(predicted: FloatArray, target: FloatArray) -> float:
    """Return the harmonic mean of precision and recall of class 1; 0 if none was found."""
    found = float(((predicted == 1) & (target == 1)).sum())
    named = float((predicted == 1).sum() + (target == 1).sum())
    return 2 * found / named if named else 0.0


def matthews(predicted: FloatArray, target: FloatArray) -> float:
    """Return Matthews' correlation of classes (Gorodkin 2004 for more than two); 0 if constant."""
    classes = np.unique([predicted, target])
    one, other = (values[:, None] == classes for values in (predicted, target))

    def covariance(a: BoolArray, b: BoolArray) -> float:
        return float(((a - a.mean(0)) * (b - b.mean(0))).sum())

    scale = covariance(one, one) * covariance(other, other)
    return covariance(one, other) / np.sqrt(scale) if scale > 0 else 0.0


def spearman(predicted: FloatArray, target: FloatArray) -> float:
    """Return the rank correlation of predictions and targets; 0 if either is constant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.ConstantInputWarning)
        found = float(stats.spearmanr(predicted, target).statistic)
    return 0.0 if np.isnan(found) else found


METRICS: dict[str, Callable[[FloatArray, FloatArray], float]] = {
    "accuracy": accuracy,
    "f1": f1,
    "matthews": matthews,
    "spearman": spearman,
}


def metrics_of(objective: str, n_classes: int) -> tuple[str, ...]:
    """Return the names of the metrics for an objective."""
    if objective == "regression":
        return ("spearman",)
    if objective == "masked_lm":
        return ()
    return ("accuracy", "f1", "matthews") if n_classes == 2 else ("accuracy", "matthews")


def measure(
    predicted: FloatArray, target: FloatArray, losses: FloatArray, names: tuple[str, ...]
) -> dict[str, float]:
    """Return the mean loss and the metrics called ``names``."""
    return {
        "loss": float(losses.mean()),
        **{name: METRICS[name](predicted, target) for name in names},
    }
