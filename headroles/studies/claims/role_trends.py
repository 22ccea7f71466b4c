"""Trends of a share of heads over the layers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from headroles.studies.claims.answers import HeadAnswers
from headroles.studies.claims.claim import Finding, NotTestable
from headroles.studies.claims.measured import Measured
from headroles.studies.claims.orders import correlations, trend

FloatArray = NDArray[np.float64]


def share_trend(
    measured: Measured, share: Callable[[HeadAnswers], FloatArray], places: FloatArray
) -> Finding:
    """Test whether a share of heads (layers,) rises with the places of the layers (layers,)."""

    def statistic(answers: HeadAnswers) -> float:
        return float(correlations(share(answers)[None], places)[0])

    interval = measured.interval(statistic, statistic(measured.answers))
    shares, seed = share(measured.answers), measured.options.seed
    return trend(shares, places, alpha=measured.alpha, seed=seed, interval=interval)


def role_trend(measured: Measured, role: str) -> Finding:
    """Test whether the share of heads with a role rises with the number of the layer.

    Raises NotTestable where no head has the role.
    """
    if not measured.answers.has(role).any():
        raise NotTestable(f"no head was shown to have the role {role}")
    places = np.arange(measured.answers.shape[0], dtype=np.float64)
    return share_trend(measured, lambda answers: answers.share_by_layer(role), places)
