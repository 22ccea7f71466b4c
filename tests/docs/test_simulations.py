"""Simulations of claims run, and cover every claim that has a test."""

from __future__ import annotations

from docs.studies.claims_null import rates, simulations
from headroles.studies.claims.claims import CLAIMS


def test_simulations_of_claims_run() -> None:
    made = list(simulations())
    for claim, null, draw in made:
        assert null
        shown, contradicted = rates(draw, 3)
        assert 0 <= shown + contradicted <= 2, claim
    without = {name for name in CLAIMS if "independently" in CLAIMS[name].rule}
    of_copies = {"special-tokens-little", "frequent-words-little"}
    assert {claim for claim, _, _ in made} - {"trends over layers"} == (
        set(CLAIMS) - without - of_copies
    )
