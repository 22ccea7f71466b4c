"""Fine-tuning takes attention from separators."""

from __future__ import annotations

import numpy as np

from headroles.studies.claims.claim import SECOND_MODEL, Claim, Finding, reversed_finding
from headroles.studies.claims.kinds import mean_beyond, mean_of_known
from headroles.studies.claims.measured import Measured

ROLE = "delimiter:sep"


def test(measured: Measured) -> Finding:
    """Do the scores of heads that attended to separators before fall on average?"""
    before, after = measured.scored.scores, measured.later.scored.scores
    change = after.column(ROLE).astype(np.float64) - before.column(ROLE)
    heads = measured.answers.has(ROLE).ravel()
    if not heads.any():
        heads[:] = True
    values = mean_of_known(change[:, heads], 1)
    found = mean_beyond(values, 0.0, measured.scored.clusters, alpha=measured.alpha)
    return reversed_finding(found)


CLAIM = Claim(
    id="separators-spread",
    source="Pande et al. 2021, README",
    statement="Fine-tuning spreads the attention of separator heads to other tokens.",
    published="in words only",
    needs=SECOND_MODEL,
    effect="change of the separator score of separator heads, in times uniform attention",
    rule="Random: documents. Null: no change. Contradicted if these heads attend to separators "
    "more.",
    test=test,
)
