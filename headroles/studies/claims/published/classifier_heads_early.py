"""Classifier heads sit in early layers."""

from __future__ import annotations

from headroles.studies.claims.claim import CORPUS, Claim, Finding, reversed_finding
from headroles.studies.claims.measured import Measured
from headroles.studies.claims.role_trends import role_trend


def test(measured: Measured) -> Finding:
    """Test whether the share of heads with the role falls with the layer."""
    return reversed_finding(role_trend(measured, "delimiter:cls"))


CLAIM = Claim(
    id="classifier-heads-early",
    source="Pande et al. 2021, README",
    statement="Heads that attend to the classifier token sit in early layers.",
    published="in words only",
    needs=CORPUS,
    effect="correlation of a layer's share of such heads with its number",
    rule="Random: the order of the layers. Null: any order is as likely. Contradicted if such "
    "heads sit in later layers.",
    test=test,
)
