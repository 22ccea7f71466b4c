"""Frequent words are handed on with short vectors."""

from __future__ import annotations

from headroles.studies.claims.claim import CORPUS, Claim, Finding, reversed_finding
from headroles.studies.claims.means import DIFFERENCES, mean_beyond, mean_of_known
from headroles.studies.claims.measured import Measured
from headroles.studies.inspection.token_reading import LENGTH, OTHER, WITH_FREQUENCY


def test(measured: Measured) -> Finding:
    """Test whether the lengths ||f(x)|| of words fall with their frequency."""
    values = measured.share_of_tokens(OTHER, f"{LENGTH}{WITH_FREQUENCY}")
    means = mean_of_known(values, 1)
    found = mean_beyond(means, 0.0, measured.tokens[1], alpha=measured.alpha, bounds=DIFFERENCES)
    return reversed_finding(found)


CLAIM = Claim(
    id="frequent-words-little",
    source="Kobayashi et al. 2020, abstract",
    statement="Frequent words are handed on with shorter vectors than rare ones.",
    published="in words only",
    needs=CORPUS,
    effect="rank correlation of frequency and ||f(x)|| within examples, mean over layers",
    rule="Random: documents. Null: a mean correlation of 0, punctuation and special tokens left "
    "out. Contradicted if lengths rise with frequency.",
    test=test,
)
