"""Outcomes of the examples of a task: losses, predictions, derivatives by gates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Outcomes:
    """Outcomes of examples under S settings of gates.

    ``losses`` and ``predictions`` are (examples, S); predictions are classes or numbers, NaN for
    masked language models.
    """

    losses: FloatArray
    predictions: FloatArray


@dataclass(frozen=True)
class Derivatives:
    """Derivatives of each example's loss by the gate of each head.

    ``by_gate`` and ``by_token`` are (examples, layers, heads): the derivative, and the sum over
    tokens of the absolute value of each token's part in it. ``tokens``, ``losses`` and
    ``predictions`` are (examples,), the last two those of `Outcomes` at the same gates.
    """

    by_gate: NDArray[np.float32]
    by_token: NDArray[np.float32]
    tokens: NDArray[np.int64]
    losses: FloatArray
    predictions: FloatArray

    @property
    def outcomes(self) -> Outcomes:
        """Outcomes of the examples, as those of one setting of gates."""
        return Outcomes(self.losses[:, None], self.predictions[:, None])
