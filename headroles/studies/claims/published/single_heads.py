"""Single heads find determiners, objects and possessives."""

from __future__ import annotations

from headroles.studies.claims.claim import TREES, Claim, Finding
from headroles.studies.claims.means import SHARES, heads_for_each
from headroles.studies.claims.measured import DETERMINERS, OBJECTS, POSSESSIVES, Measured

ACCURATE = 0.75


def test(measured: Measured) -> Finding:
    """Test whether some head finds three quarters of the arcs, for each of the three relations."""
    hits = measured.of_relations((DETERMINERS, OBJECTS, POSSESSIVES), measured.hits_of)
    return heads_for_each(hits, ACCURATE, measured.halves, SHARES)


CLAIM = Claim(
    id="single-heads",
    source="Clark et al. 2019",
    statement="Single heads find determiners, objects and possessives in more than three quarters "
    "of the cases.",
    published="0.943 (det), 0.868 (dobj), 0.805 (poss)",
    needs=TREES,
    effect="share of arcs found, the smallest of the three relations",
    rule="Random: documents; the head is chosen on one half of them. Null: a share of 0.75. "
    "Contradicted if for one relation every head is shown to be below.",
    test=test,
)
