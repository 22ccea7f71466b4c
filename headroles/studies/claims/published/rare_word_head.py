"""One head looks at the rarest word."""

from __future__ import annotations

from headroles.studies.claims.claim import CORPUS, Claim, Finding
from headroles.studies.claims.means import SHARES, heads_for_each
from headroles.studies.claims.measured import Measured

SHARE = 0.5


def test(measured: Measured) -> Finding:
    """Test whether some head has the rarest word as first choice for half of the words."""
    hits = {"rarest word": measured.hits_of("rare")}
    return heads_for_each(hits, SHARE, measured.halves, SHARES)


CLAIM = Claim(
    id="rare-word-head",
    source="Voita et al. 2019",
    statement="There is a head whose first choice is the rarest word of the sentence for more than "
    "half of the words.",
    published="0.66 (OpenSubtitles); one of the two rarest above 0.50 (WMT)",
    needs=CORPUS,
    effect="share of first choices",
    rule="Random: documents; the head is chosen on one half of them. Null: a share of 0.5. "
    "Contradicted if every head is shown to be below.",
    test=test,
)
