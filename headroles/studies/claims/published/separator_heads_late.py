"""Separator heads sit in late layers."""

from __future__ import annotations

from headroles.studies.claims.claim import CORPUS, Claim, Finding
from headroles.studies.claims.measured import Measured
from headroles.studies.claims.role_trends import role_trend


def test(measured: Measured) -> Finding:
    """Test whether the share of heads with the role rises with the layer."""
    return role_trend(measured, "delimiter:sep")


CLAIM = Claim(
    id="separator-heads-late",
    source="Pande et al. 2021, README",
    statement="Heads that attend to separators sit in later layers.",
    published="in words only",
    needs=CORPUS,
    effect="correlation of a layer's share of such heads with its number",
    rule="Random: the order of the layers. Null: any order is as likely. Contradicted if such "
    "heads sit in earlier layers.",
    test=test,
)
