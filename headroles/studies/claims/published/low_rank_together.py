"""Queries and keys of a layer's heads share dimensions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headroles.models.als import head_singular
from headroles.models.subspaces import dimensions_for, random_sums, sum_singular
from headroles.studies.claims.claim import WEIGHTS, Claim, Finding, reversed_finding
from headroles.studies.claims.kinds import ranked_among
from headroles.studies.claims.measured import Measured

SHARE = 0.99
_DRAWS = 59


def test(measured: Measured) -> Finding:
    """Does the sum over heads take fewer dimensions than sums of heads in random spaces?"""
    rng = np.random.default_rng(measured.options.seed)
    observed, drawn = [], []
    for query, key in measured.maps:
        most = min(query.shape[0] * query.shape[1], query.shape[2])
        strength = head_singular(query, key)[1]
        by_chance = random_sums(strength, query.shape[2], _DRAWS, rng)
        observed.append(dimensions_for(sum_singular(query, key), SHARE) / most)
        drawn.append([dimensions_for(one, SHARE) / most for one in by_chance])
    found = ranked_among(float(np.mean(observed)), np.mean(drawn, axis=0), len(observed), "layers")
    told = f"heads in random spaces: {np.mean(drawn):.2f}"
    return reversed_finding(replace(found, note=told))


CLAIM = Claim(
    id="low-rank-together",
    source="Cordonnier et al. 2020, section 3",
    statement="The heads of a layer together take fewer query and key dimensions than heads that "
    "share nothing would.",
    published="in words only (heads alone are of full rank, together of low rank)",
    needs=WEIGHTS,
    effect="dimensions for 99 % of the energy of the sum over heads, as a share of all",
    rule="Random: the spaces of the heads, each with its own singular values, 59 times. Null: they "
    "are independent. Contradicted if more dimensions are taken.",
    test=test,
)
