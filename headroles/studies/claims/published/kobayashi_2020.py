"""Claims of Kobayashi et al. (2020)."""

from __future__ import annotations

import numpy as np

from headroles.studies.claims.claim import CORPUS, Finding, claim, reversed_finding
from headroles.studies.claims.means import DIFFERENCES, mean_beyond, mean_of_known
from headroles.studies.claims.measured import Measured
from headroles.studies.inspection.token_reading import (
    CLASSIFIER,
    DIFFERENCE,
    LENGTH,
    OTHER,
    PUNCTUATION,
    SEPARATORS,
    WITH_FREQUENCY,
)


@claim(
    source="Kobayashi et al. 2020, abstract",
    statement="Special tokens and punctuation get a smaller share of attention by norms than by "
    "weights.",
    published="in words only",
    needs=CORPUS,
    effect="share by norms less share by weights, mean over layers and heads",
    rule="Random: documents. Null: no difference. Contradicted if the share by norms is larger.",
)
def special_tokens_little(measured: Measured) -> Finding:
    """Test whether the share of these tokens is smaller by norms than by weights."""
    parts = [
        np.nan_to_num(measured.share_of_tokens(group, DIFFERENCE))
        for group in (CLASSIFIER, SEPARATORS, PUNCTUATION)
    ]
    values = np.sum(parts, axis=0).mean(axis=1)
    found = mean_beyond(values, 0.0, measured.tokens[1], alpha=measured.alpha, bounds=DIFFERENCES)
    return reversed_finding(found)


@claim(
    source="Kobayashi et al. 2020, abstract",
    statement="Frequent words have shorter vectors f(x) than rare words.",
    published="in words only",
    needs=CORPUS,
    effect="rank correlation of frequency and ||f(x)|| within examples, mean over layers",
    rule="Random: documents. Null: a mean correlation of 0, without punctuation and special "
    "tokens. Contradicted if lengths rise with frequency.",
)
def frequent_words_little(measured: Measured) -> Finding:
    """Test whether the lengths ||f(x)|| of words fall with their frequency."""
    values = measured.share_of_tokens(OTHER, f"{LENGTH}{WITH_FREQUENCY}")
    means = mean_of_known(values, 1)
    found = mean_beyond(means, 0.0, measured.tokens[1], alpha=measured.alpha, bounds=DIFFERENCES)
    return reversed_finding(found)
