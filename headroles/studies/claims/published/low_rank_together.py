"""Queries and keys of a layer's heads share dimensions."""

from __future__ import annotations

from dataclasses import replace

from headroles.studies.claims.claim import WEIGHTS, Claim, Finding, reversed_finding
from headroles.studies.claims.measured import Measured
from headroles.studies.claims.orders import ranked_among


def test(measured: Measured) -> Finding:
    """Test whether the sum over heads takes fewer dimensions than heads in random spaces."""
    shares = measured.dimensions
    observed, *drawn = shares.mean(axis=0).tolist()
    found = ranked_among(observed, drawn, len(shares), "layers")
    told = f"heads in random spaces: {sum(drawn) / len(drawn):.2f}"
    return reversed_finding(replace(found, note=told))


CLAIM = Claim(
    id="low-rank-together",
    source="Cordonnier et al. 2020, as others report it",
    statement="The heads of a layer together take fewer query and key dimensions than heads that "
    "share nothing would.",
    published="in words only (heads alone are of full rank, together of low rank)",
    needs=WEIGHTS,
    effect="dimensions for 99 % of the energy of the sum over heads, as a share of all",
    rule="Random: the spaces of the heads, each with its own singular values, 59 times. Null: they "
    "are independent. Contradicted if more dimensions are taken.",
    test=test,
)
