"""Hard concrete gates: random numbers from 0 to 1 that are often exactly 0 or 1, and learnable.

The distribution is that of Louizos et al. (2018): a number between 0 and 1 with the odds
``exp(log_alpha)``, stretched to a larger interval, and clipped to 0 and 1. ``log_alpha`` may have
any shape.
"""

from __future__ import annotations

from math import log

import torch
from scipy.optimize import brentq
from scipy.special import expit
from torch import Tensor

TEMPERATURE = 0.33
"""Temperature of the number before it is stretched to (`_LOW`, `_HIGH`), as in the paper."""
_LOW, _HIGH = -0.1, 1.1
_EDGE = -TEMPERATURE * log(-_LOW / _HIGH)
_EPSILON = 1e-6
_FAR = 50.0


def gates(log_alpha: Tensor, uniform: Tensor) -> Tensor:
    """Compute gates from uniform numbers in (0, 1), with gradients by ``log_alpha``."""
    noise = torch.logit(uniform, eps=_EPSILON)
    unstretched = torch.sigmoid((noise + log_alpha) / TEMPERATURE)
    return (unstretched * (_HIGH - _LOW) + _LOW).clamp(0, 1)


def p_nonzero(log_alpha: Tensor) -> Tensor:
    """Return the probability that a gate is not 0; the sum is the expected number of open gates."""
    return torch.sigmoid(log_alpha + _EDGE)


def p_one(log_alpha: Tensor) -> Tensor:
    """Return the probability that a gate is exactly 1."""
    return torch.sigmoid(log_alpha - TEMPERATURE * log((1 - _LOW) / (_HIGH - 1)))


def is_open(log_alpha: Tensor) -> Tensor:
    """Tell whether 1 is likelier than 0, by which Voita et al. (2019) decide on a head at the
    end.
    """
    return p_one(log_alpha) > 1 - p_nonzero(log_alpha)


def shift_to(log_alpha: Tensor, expected: float) -> float:
    """Return the shift of every ``log_alpha`` that leads to so many expected open gates.

    ``expected`` is above 0 and below the number of gates.
    """
    values = log_alpha.detach().double().cpu().numpy()

    def excess(shift: float) -> float:
        return float(expit(values + shift + _EDGE).sum() - expected)

    # at these ends all gates are as good as closed, or as good as open: the root lies between
    found: float = brentq(excess, -_FAR - values.max(), _FAR - values.min())
    return found
