"""For each relation a head beats the best fixed offset by ten points."""

from __future__ import annotations

from headroles.studies.claims.claim import TREES, Claim, Finding
from headroles.studies.claims.means import DIFFERENCES, heads_for_each
from headroles.studies.claims.measured import OBJECTS, Measured

MARGIN = 0.1
RELATIONS = (("nsubj",), OBJECTS, ("amod",), ("advmod",))


def test(measured: Measured) -> Finding:
    """Test whether all four relations have such a head, in either direction."""
    gains = measured.of_relations(RELATIONS, measured.gains_of)
    return heads_for_each(gains, MARGIN, measured.halves, DIFFERENCES)


CLAIM = Claim(
    id="syntactic-heads",
    source="Voita et al. 2019",
    statement="For each of subjects, objects, adjectives and adverbs there is a head that finds "
    "the other end at least 10 points more often than the best fixed offset.",
    published="0.01 to 0.38 (the better direction, WMT and OpenSubtitles)",
    needs=TREES,
    effect="hits beyond the best offset, the smallest of the four relations",
    rule="Random: documents; head and offset are chosen on one half of them. Null: 10 points. "
    "Contradicted if for some relation every head is shown to be below.",
    test=test,
)
