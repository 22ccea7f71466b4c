"""Losses, predictions and derivatives by gates of the examples of a task."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headroles.arrays import Float32Array, FloatArray, IntArray
from headroles.passes.saved_batches import ArrayTypes

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
