"""Special tokens and punctuation get little when norms are counted."""

from __future__ import annotations

import numpy as np

from headroles.studies.claims.claim import CORPUS, Claim, Finding, reversed_finding
from headroles.studies.claims.means import DIFFERENCES, mean_beyond
from headroles.studies.claims.measured import Measured
from headroles.studies.inspection.token_reading import (
    CLASSIFIER,
    DIFFERENCE,
    PUNCTUATION,
    SEPARATORS,
)


def test(measured: Measured) -> Finding:
    """Test whether the share of these tokens is smaller by norms than by weights."""
    parts = [
        np.nan_to_num(measured.share_of_tokens(group, DIFFERENCE))
        for group in (CLASSIFIER, SEPARATORS, PUNCTUATION)
    ]
    values = np.sum(parts, axis=0).mean(axis=1)
    found = mean_beyond(values, 0.0, measured.tokens[1], alpha=measured.alpha, bounds=DIFFERENCES)
    return reversed_finding(found)


CLAIM = Claim(
    id="special-tokens-little",
    source="Kobayashi et al. 2020, abstract",
    statement="Special tokens and punctuation get a smaller share by norms than by weights.",
    published="in words only",
    needs=CORPUS,
    effect="share by norms less share by weights, mean over layers and heads",
    rule="Random: documents. Null: no difference. Contradicted if the share by norms is larger.",
    test=test,
)
