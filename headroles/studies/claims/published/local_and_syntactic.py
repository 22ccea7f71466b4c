"""Syntactic heads are often local heads too."""

from __future__ import annotations

import numpy as np

from headroles.studies.claims.answers import LOCAL, SYNTACTIC, HeadAnswers
from headroles.studies.claims.claim import TREES, Claim, Finding, NotTestable
from headroles.studies.claims.measured import Measured
from headroles.studies.claims.orders import in_layers


def share(answers: HeadAnswers) -> float:
    """Share of the heads with the role syntactic that have local too; NaN without any."""
    syntactic = answers.has(SYNTACTIC)
    return float(answers.has(LOCAL)[syntactic].mean()) if syntactic.any() else np.nan


def test(measured: Measured) -> Finding:
    """Test whether syntactic heads are local more often than random heads of their layers."""
    answers = measured.answers
    if not answers.has(SYNTACTIC).any():
        raise NotTestable("no head was shown to be syntactic")
    whole = share(answers)
    return in_layers(
        answers.has(LOCAL).astype(np.float64),
        answers.has(SYNTACTIC),
        seed=measured.options.seed,
        interval=measured.interval(share, whole),
        effect=whole,
    )


CLAIM = Claim(
    id="local-and-syntactic",
    source="Pande et al. 2021, README; follow-up on mBERT",
    statement="Heads with a syntactic role have the local role too.",
    published="0.42 to 0.88 (four GLUE tasks); 0.71 (mBERT)",
    needs=TREES,
    effect="share of syntactic heads that are local",
    rule="Random: heads of the same layers. Null: syntactic heads are local as often as the other "
    "heads of their layers. Contradicted if they are local less often.",
    test=test,
)
