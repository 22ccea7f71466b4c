"""Losses, predictions and derivatives of the examples of a task; metrics of predictions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy import stats

from headroles.arrays import BoolArray, Float32Array, FloatArray, IntArray
from headroles.tasks.options import MASKED_LM, REGRESSION, WRITING

LOSS, ACCURACY = "loss", "accuracy"
TOKEN_ACCURACY, PERPLEXITY = "token_accuracy", "perplexity"
TO_LOWER = (LOSS, PERPLEXITY)
"""Measures that are worse where they are larger."""
DERIVATIVES = 2
"""Number of passes that derivatives of all examples take: one forward and one back."""
Measures: TypeAlias = dict[str, float | None]
"""The mean loss and the metrics of a task, by name; None where a record has no number."""
_GROUPS = 50
"""Most groups of examples of a jackknife."""


@dataclass(frozen=True)
class Outcomes:
    """Losses and predictions of examples, each (examples, S), under S settings of gates.

    Predictions are classes or numbers, NaN for masked language models, and ``targets`` (examples,)
    the right ones. Of models that write text these are the numbers of the tokens that are right,
    and of all tokens of the target. Raises ValueError for arrays that do not fit.
    """

    losses: FloatArray
    predictions: FloatArray
    targets: FloatArray

    def __post_init__(self) -> None:
        shapes = {self.losses.shape[:-1], self.predictions.shape[:-1], self.targets.shape}
        is_of_examples = self.targets.ndim == 1 and len(shapes) == 1
        if not (is_of_examples and self.losses.shape == self.predictions.shape):
            raise ValueError("its losses, predictions and targets do not fit")

    def measures(self, metrics: Sequence[str]) -> dict[str, FloatArray]:
        """Return the mean loss and each metric (S,)."""
        return {LOSS: self.losses.mean(0), **{name: self._metric(name) for name in metrics}}

    def of_first(self, metrics: Sequence[str]) -> Measures:
        """Return the mean loss and each metric of the first setting."""
        first = Outcomes(self.losses[:, :1], self.predictions[:, :1], self.targets)
        of_metrics = {name: float(first._metric(name)[0]) for name in metrics}
        return {LOSS: float(self.losses[:, 0].mean()), **of_metrics}

    def units(self, metrics: Sequence[str]) -> dict[str, FloatArray]:
        """Return for the loss and each metric values (units, S) with the measure as their mean.

        Units of loss and accuracy are examples. Other metrics are no means over examples: their
        units are random groups of examples, and the values are pseudo-values of the jackknife over
        groups (Tukey 1958), which may be tested like means. Their mean is the metric up to its
        bias.
        """
        values = {name: self._pseudo_values(name) for name in metrics if name != ACCURACY}
        if ACCURACY in metrics:
            values[ACCURACY] = (self.predictions == self.targets[:, None]).astype(np.float64)
        return {LOSS: self.losses, **{name: values[name] for name in metrics}}

    def _pseudo_values(self, name: str) -> FloatArray:
        return pseudo_values(len(self.targets), lambda rows: self._metric(name, rows))

    def _metric(self, name: str, rows: BoolArray | slice = slice(None)) -> FloatArray:
        predictions, targets = self.predictions[rows], self.targets[rows]
        if name == PERPLEXITY:
            return perplexity(self.losses[rows], targets)
        return np.array([METRICS[name](column, targets) for column in predictions.T])


def pseudo_values(n_examples: int, metric: Callable[[BoolArray], FloatArray]) -> FloatArray:
    """Return pseudo-values (groups, S) of the jackknife over random groups of examples.

    ``metric`` computes values (S,) of the marked examples.
    """
    n = min(_GROUPS, n_examples)
    groups = np.random.default_rng(0).permutation(n_examples) % n
    rest = [metric(groups != group) for group in range(n)]
    return n * metric(np.ones(n_examples, dtype=bool)) - (n - 1) * np.stack(rest)


@dataclass(frozen=True)
class Derivatives:
    """Derivatives of each example's loss by the gate of each head.

    ``by_gate`` and ``by_token`` are (examples, layers, heads): the derivative, and the sum over
    tokens of the absolute value of each token's part in it. ``tokens``, ``losses`` and
    ``predictions`` are (examples,), with losses and predictions as in `Outcomes`; of models that
    write text ``tokens`` are (examples, layers), the queries of each layer. Raises ValueError for
    arrays that do not fit.
    """

    by_gate: Float32Array
    by_token: Float32Array
    tokens: IntArray
    losses: FloatArray
    predictions: FloatArray

    def __post_init__(self) -> None:
        shape, of_examples = self.by_gate.shape, (self.losses, self.predictions)
        shapes = {array.shape for array in of_examples} | {self.by_token.shape}
        fits = shapes == {shape[:1], shape} and self.tokens.shape in (shape[:1], shape[:2])
        if self.by_gate.ndim != 3 or not fits:
            raise ValueError("its derivatives, tokens, losses and predictions do not fit")


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
    is_predicted, right = (values[:, None] == classes for values in (predicted, target))

    def covariance(a: BoolArray, b: BoolArray) -> float:
        return float(((a - a.mean(0)) * (b - b.mean(0))).sum())

    scale = covariance(is_predicted, is_predicted) * covariance(right, right)
    return covariance(is_predicted, right) / np.sqrt(scale) if scale > 0 else 0.0


def spearman(predicted: FloatArray, target: FloatArray) -> float:
    """Return the rank correlation of predictions and targets; 0 if either is constant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.ConstantInputWarning)
        correlation = float(stats.spearmanr(predicted, target).statistic)
    return 0.0 if np.isnan(correlation) else correlation


def share_of_tokens(right: FloatArray, tokens: FloatArray) -> float:
    """Return the share of right tokens among all tokens of the targets, numbers (examples,)."""
    return float(right.sum() / tokens.sum())


def perplexity(losses: FloatArray, tokens: FloatArray) -> FloatArray:
    """Return (S,): the exponential of the mean loss of a token.

    ``losses`` (examples, S) are means over the tokens of each example.
    """
    return np.asarray(np.exp(tokens @ losses / tokens.sum()))


METRICS: dict[str, Callable[[FloatArray, FloatArray], float]] = {
    ACCURACY: accuracy,
    "f1": f1,
    "matthews": matthews,
    "spearman": spearman,
    TOKEN_ACCURACY: share_of_tokens,
}
"""Metrics of predictions."""


def metrics_of(objective: str, n_classes: int) -> tuple[str, ...]:
    """Return the names of the metrics for an objective."""
    if objective == REGRESSION:
        return ("spearman",)
    if objective == MASKED_LM:
        return ()
    if objective in WRITING:
        return (TOKEN_ACCURACY, PERPLEXITY)
    return ("accuracy", "f1", "matthews") if n_classes == 2 else ("accuracy", "matthews")
