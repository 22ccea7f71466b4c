"""Few tests are left undecided."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headroles.studies.claims.answers import HeadAnswers
from headroles.studies.claims.claim import CORPUS, Claim, Finding, NotTestable, reversed_finding
from headroles.studies.claims.means import jackknifed, mean_beyond
from headroles.studies.claims.measured import Measured

FEW = 0.03
_ENDS = (0.05, 0.95)


def share(answers: HeadAnswers) -> float:
    """Share of single tests whose p-value is neither small nor large."""
    p = answers.p_above[~np.isnan(answers.p_above)]
    return float(((p > _ENDS[0]) & (p < _ENDS[1])).mean())


def test(measured: Measured) -> Finding:
    """Test whether the share is below 3 %, by pseudo-values of groups of documents."""
    whole = share(measured.answers)
    without = [share(one) for one in measured.scored.without_groups]
    low, high, pseudo = jackknifed(whole, without, measured.alpha)
    if len(pseudo) < 3 or not np.isfinite(pseudo).all():
        raise NotTestable("there are too few documents to leave groups of them out")
    found = mean_beyond(pseudo - pseudo.mean() + whole, FEW, None, alpha=measured.alpha)
    return reversed_finding(replace(found, low=low, high=high, unit="groups"))


CLAIM = Claim(
    id="undecided-few",
    source="Pande et al. 2021, README and follow-up on mBERT",
    statement="At most 3 % of the tests of heads and roles are left undecided (one-sided p between "
    "0.05 and 0.95, no correction).",
    published="0.02 (GLUE); 0.027 (mBERT)",
    needs=CORPUS,
    effect="share of tests left undecided",
    rule="Random: documents, in ten groups. Null: the share is 3 %. Contradicted if it is larger. "
    "The share falls with the number of examples.",
    test=test,
)
