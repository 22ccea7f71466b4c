"""Page of claims of papers."""

from __future__ import annotations

from headroles.drawing.page import Page
from headroles.drawing.plain_page import plain_page
from headroles.studies.claims.table import ClaimTable


def claims_page(result: ClaimTable) -> Page:
    """Make the page of claims of papers."""
    return plain_page(result, "Which claims of papers hold for this model?")
