"""One head looks one token back, another one ahead."""

from __future__ import annotations

from headroles.studies.claims.claim import CORPUS, Claim, Finding
from headroles.studies.claims.means import SHARES, heads_for_each
from headroles.studies.claims.measured import Measured

SHARE = 0.9
ROLES = {"one back": "position:-1", "one ahead": "position:+1"}


def test(measured: Measured) -> Finding:
    """Test whether each direction has a head whose first choice is there in 90 % of tokens."""
    hits = {name: measured.hits_of(role) for name, role in ROLES.items()}
    return heads_for_each(hits, SHARE, measured.halves, SHARES)


CLAIM = Claim(
    id="positional-heads",
    source="Voita et al. 2019",
    statement="There is a head whose first choice is one token back in at least 90 % of tokens, "
    "and another for one token ahead.",
    published="0.90 and more",
    needs=CORPUS,
    effect="share of first choices, the smaller of both directions",
    rule="Random: documents; the head is chosen on one half of them. Null: a share of 90 %. "
    "Contradicted if every head is shown to be below.",
    test=test,
)
