"""Hard concrete gates: random numbers from 0 to 1 that are often exactly 0 or 1, and learnable.

The distribution is that of Louizos et al. (2018): a number between 0 and 1 with the odds
``exp(log_alpha)``, stretched to a larger interval, and clipped to 0 and 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import torch
from scipy.optimize import brentq
from scipy.special import expit
from torch import Tensor

from headroles.errors import UsageError

_EPSILON = 1e-6
_FAR = 50.0


@dataclass(frozen=True)
class HardConcrete:
    """Distribution of gates, given ``log_alpha`` of any shape; the defaults are the paper's.

    ``temperature`` is that of the number before it is stretched to (``low``, ``high``). Raises
    UsageError unless low < 0 < 1 < high, without which gates would never be exactly 0 or 1.
    """

    temperature: float = 0.33
    low: float = -0.1
    high: float = 1.1

    def __post_init__(self) -> None:
        if not self.low < 0 < 1 < self.high:
            raise UsageError(
                f"gates are stretched to ({self.low:g}, {self.high:g}); the interval must begin "
                "below 0 and end above 1"
            )

    def gates(self, log_alpha: Tensor, uniform: Tensor) -> Tensor:
        """Compute gates from uniform numbers in (0, 1), with gradients by ``log_alpha``."""
        noise = torch.logit(uniform, eps=_EPSILON)
        return self._stretch(torch.sigmoid((noise + log_alpha) / self.temperature))

    def typical(self, log_alpha: Tensor) -> Tensor:
        """Return the gate without noise, as the code of Voita et al. (2019) tests models."""
        return self._stretch(torch.sigmoid(log_alpha))

    def p_nonzero(self, log_alpha: Tensor) -> Tensor:
        """Return the probability that a gate is not 0; the sum is the expected number of open
        gates.
        """
        return torch.sigmoid(log_alpha + self._edge)

    def p_one(self, log_alpha: Tensor) -> Tensor:
        """Return the probability that a gate is exactly 1."""
        return torch.sigmoid(log_alpha - self.temperature * log((1 - self.low) / (self.high - 1)))

    def is_open(self, log_alpha: Tensor) -> Tensor:
        """Tell whether 1 is likelier than 0, by which Voita et al. (2019) decide on a head at the
        end.
        """
        return self.p_one(log_alpha) > 1 - self.p_nonzero(log_alpha)

    def shift_to(self, log_alpha: Tensor, expected: float) -> float:
        """Return the shift of every ``log_alpha`` that leads to so many expected open gates.

        ``expected`` is above 0 and below the number of gates.
        """
        values = log_alpha.detach().double().cpu().numpy()

        def excess(shift: float) -> float:
            return float(expit(values + shift + self._edge).sum() - expected)

        # at these ends all gates are as good as closed, or as good as open: the root lies between
        found: float = brentq(excess, -_FAR - values.max(), _FAR - values.min())
        return found

    @property
    def _edge(self) -> float:
        return -self.temperature * log(-self.low / self.high)

    def _stretch(self, unstretched: Tensor) -> Tensor:
        return (unstretched * (self.high - self.low) + self.low).clamp(0, 1)
