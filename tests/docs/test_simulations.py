"""Simulations run, and those of claims cover every claim that has a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.studies.simulations.__main__ import STUDIES
from docs.studies.simulations.claims import rows_of, simulations
from headroles.studies.claims.claims import CLAIMS

OF_SCORES = ("level", "families", "answers", "limit", "half", "intervals", "replicate", "changes")


def test_simulations_of_claims_run() -> None:
    made = {str(row["claim"]).strip("`"): row for row in rows_of(simulations(), 3)}
    assert all({"null hypothesis", "shown", "contradicted"} <= set(row) for row in made.values())
    without = {name for name in CLAIMS if "independently" in CLAIMS[name].rule}
    of_copies = {"special-tokens-little", "frequent-words-little"}
    assert {*made} - {"trends over layers"} == set(CLAIMS) - without - of_copies


@pytest.mark.parametrize("what", OF_SCORES)
def test_simulations_of_scores_run(what: str, prepared: Path) -> None:
    folders = [prepared / name for name in ("BEFORE", "AFTER")]
    rows = list(STUDIES[what][0](folders if what == "changes" else folders[:1], 2))
    assert rows
    assert all("sample" in row and len(row) > 1 for row in rows)
