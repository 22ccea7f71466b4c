"""Losses, predictions and derivatives of the examples of a task; metrics of predictions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from headroles.arrays import BoolArray, Float32Array, FloatArray, IntArray
from headroles.passes.saved_batches import ArrayTypes
from headroles.tasks.options import MASKED_LM, REGRESSION

DERIVATIVES = 2
"""Number of passes that derivatives of all examples take: one forward and one back."""


@dataclass(frozen=True)
class Outcomes:
    """Losses and predictions of examples, each (examples, S), under S settings of gates.

    Predictions are classes or numbers, NaN for masked language models.
    """

    losses: FloatArray
    predictions: FloatArray


@dataclass(frozen=True)
class Derivatives:
    """Derivatives of each example's loss by the gate of each head.

    ``by_gate`` and ``by_token`` are (examples, layers, heads): the derivative, and the sum over
    tokens of the absolute value of each token's part in it. ``tokens``, ``losses`` and
    ``predictions`` are (examples,), with losses and predictions as in `Outcomes`.
    """

    by_gate: Float32Array
    by_token: Float32Array
    tokens: IntArray
    losses: FloatArray
    predictions: FloatArray

    @property
    def outcomes(self) -> Outcomes:
        """Outcomes of the examples under one setting of gates."""
        return Outcomes(self.losses[:, None], self.predictions[:, None])

    @staticmethod
    def types(shape: tuple[int, int]) -> ArrayTypes:
        """Return the type and shape of each array, for an example of a model of (layers, heads)."""
        return {
            "by_gate": (np.float32, shape),
            "by_token": (np.float32, shape),
            "tokens": (np.int64, ()),
            "losses": (np.float64, ()),
            "predictions": (np.float64, ()),
        }


def accuracy(predicted: FloatArray, target: FloatArray) -> float:
    """Return the share of right predictions (examples,)."""
    return float((predicted == target).mean())


def f1(predicted: FloatArray, target: FloatArray) -> float:
    """Return the harmonic mean of precision and recall of class 1; 0 if none was found."""
    both = float(((predicted == 1) & (target == 1)).sum())
    either = float((predicted == 1).sum() + (target == 1).sum())
    return 2 * both / either if either else 0.0


def matthews(predicted: FloatArray, target: FloatArray) -> float:
    """Return Matthews' correlation of classes (Gorodkin 2004 for more than two); 0 if constant."""
    classes = np.unique([predicted, target])
    named, right = (values[:, None] == classes for values in (predicted, target))

    def covariance(a: BoolArray, b: BoolArray) -> float:
        return float(((a - a.mean(0)) * (b - b.mean(0))).sum())

    scale = covariance(named, named) * covariance(right, right)
    return covariance(named, right) / np.sqrt(scale) if scale > 0 else 0.0


def spearman(predicted: FloatArray, target: FloatArray) -> float:
    """Return the rank correlation of predictions and targets; 0 if either is constant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.ConstantInputWarning)
        correlation = float(stats.spearmanr(predicted, target).statistic)
    return 0.0 if np.isnan(correlation) else correlation


METRICS: dict[str, Callable[[FloatArray, FloatArray], float]] = {
    "accuracy": accuracy,
    "f1": f1,
    "matthews": matthews,
    "spearman": spearman,
}


def metrics_of(objective: str, n_classes: int) -> tuple[str, ...]:
    """Return the names of the metrics for an objective."""
    if objective == REGRESSION:
        return ("spearman",)
    if objective == MASKED_LM:
        return ()
    return ("accuracy", "f1", "matthews") if n_classes == 2 else ("accuracy", "matthews")
