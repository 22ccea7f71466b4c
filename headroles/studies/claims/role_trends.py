"""Does a role belong to early or to late layers?"""

from __future__ import annotations

import numpy as np

from headroles.studies.claims.answers import HeadAnswers
from headroles.studies.claims.claim import Finding, NotTestable, reversed_finding
from headroles.studies.claims.kinds import correlations, trend
from headroles.studies.claims.measured import Measured


def role_trend(measured: Measured, role: str, *, falling: bool = False) -> Finding:
    """Whether the share of heads with a role rises with the number of the layer, or falls."""
    shares = measured.answers.share_by_layer(role)
    if not shares.any():
        raise NotTestable(f"no head was shown to have the role {role}")
    places = np.arange(len(shares), dtype=np.float64)

    def statistic(answers: HeadAnswers) -> float:
        return float(correlations(answers.share_by_layer(role)[None], places)[0])

    interval = measured.interval(statistic, statistic(measured.answers))
    found = trend(
        shares, places, alpha=measured.alpha, seed=measured.options.seed, interval=interval
    )
    return reversed_finding(found) if falling else found
