"""For each relation a head beats the best fixed offset by ten points."""

from __future__ import annotations

import numpy as np

from headroles.studies.claims.claim import TREES, Claim, Finding
from headroles.studies.claims.kinds import all_of, some_head
from headroles.studies.claims.measured import OBJECTS, Measured
from headroles.studies.offsets import rival_of

MARGIN = 0.1
RELATIONS = (("nsubj",), OBJECTS, ("amod",), ("advmod",))


def gains(measured: Measured, relation: str) -> np.ndarray:
    """(examples, heads in both directions): hits less those of the best offset."""
    parts = []
    for direction in ("to_governor", "to_dependent"):
        role = f"syntactic:{relation}:{direction}"
        hits, rival = measured.hits_of(role), rival_of(measured.hits, role)
        assert rival is not None
        parts.append(hits - rival.hits[:, None])
    return np.concatenate(parts, axis=1)


def test(measured: Measured) -> Finding:
    """Is there such a head for all four relations, in either direction?"""
    names = [measured.relation(one) for one in RELATIONS]
    parts = [
        some_head(
            gains(measured, name),
            MARGIN,
            measured.second_half,
            measured.hit_clusters,
            alpha=measured.alpha,
            shape=measured.shape,
        )
        for name in names
    ]
    return all_of(parts, names)


CLAIM = Claim(
    id="syntactic-heads",
    source="Voita et al. 2019, section 5.2.2 and table 1",
    statement="For each of subjects, objects, adjectives and adverbs there is a head that finds "
    "the other end at least 10 points more often than the best fixed offset.",
    published="0.06 to 0.38 (the better direction, WMT and OpenSubtitles)",
    needs=TREES,
    effect="hits beyond the best offset, the smallest of the four relations",
    rule="Random: documents; head and offset are chosen on one half of them. Null: 10 points. "
    "Contradicted if for some relation every head is shown to be below.",
    test=test,
)
