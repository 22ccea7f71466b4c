"""Fine-tuning takes attention from separators."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headroles.studies.claims.claim import SECOND_MODEL, Claim, Finding
from headroles.studies.claims.means import SHARES, mean_beyond, mean_of_known
from headroles.studies.claims.measured import Measured

ROLE, HALF = "delimiter:sep", 0.5


def test(measured: Measured) -> Finding:
    """Test whether scores of former separator heads fall in most documents."""
    before, after = measured.scored.scores, measured.later.scored.scores
    change = after.column(ROLE).astype(np.float64) - before.column(ROLE)
    heads = measured.answers.has(ROLE).ravel()
    if not heads.any():
        heads[:] = True
    values, documents = mean_of_known(change[:, heads], 1), measured.scored.clusters
    if documents is not None:
        of = [values[documents == one] for one in np.unique(documents)]
        values = np.array([mean_of_known(one, 0) for one in of])
    falls = np.where(np.isnan(values), np.nan, HALF - np.sign(values) / 2)
    found = mean_beyond(falls, HALF, None, alpha=measured.alpha, bounds=SHARES)
    told = f"mean change {np.nanmean(values):+.3f} times uniform attention"
    return replace(found, unit="examples" if documents is None else "documents", note=told)


CLAIM = Claim(
    id="separators-spread",
    source="Pande et al. 2021, README",
    statement="Fine-tuning spreads the attention of separator heads to other tokens.",
    published="in words only",
    needs=SECOND_MODEL,
    effect="share of documents in which separator heads attend less to separators",
    rule="Random: documents. Null: half of them. Contradicted if these heads attend to separators "
    "more in most documents.",
    test=test,
)
