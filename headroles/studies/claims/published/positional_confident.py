"""Heads that look at one place are confident."""

from __future__ import annotations

import numpy as np

from headroles.studies.claims.claim import CORPUS, Claim, Finding, NotTestable
from headroles.studies.claims.means import SHARES, all_of, mean_beyond, mean_of_known
from headroles.studies.claims.measured import Measured
from headroles.studies.claims.published.positional_heads import ROLES, SHARE

CONFIDENT = 0.8


def test(measured: Measured) -> Finding:
    """Test whether every head that hits one place in 90 % of tokens has a confidence above 0.8."""
    hits = [mean_of_known(measured.hits_of(role), 0) for role in ROLES.values()]
    heads = np.flatnonzero(np.nanmax(hits, axis=0) >= SHARE)
    if not len(heads):
        raise NotTestable("no head has its first choice at one place in 90 % of tokens")
    confidence, halves = measured.hits_of("confidence"), measured.halves
    parts = [
        mean_beyond(
            confidence[:, head], CONFIDENT, halves.clusters, alpha=halves.alpha, bounds=SHARES
        )
        for head in heads
    ]
    return all_of(parts, ["head {}-{}".format(*divmod(head, halves.shape[1])) for head in heads])


CLAIM = Claim(
    id="positional-confident",
    source="Voita et al. 2019",
    statement="Every positional head has a confidence above 0.8.",
    published="0.80 and more",
    needs=CORPUS,
    effect="confidence, the smallest of positional heads",
    rule="Random: documents. Null: a mean of 0.8 for some positional head. Contradicted if one of "
    "them is shown to be below.",
    test=test,
)
