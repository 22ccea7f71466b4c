"""Page of claims of papers."""

from __future__ import annotations

from pathlib import Path

from headroles.drawing.page import Page
from headroles.drawing.plain_page import plain_page
from headroles.studies.claims.table import ClaimTable


def claims_page(folder: Path) -> Page:
    """The page of claims of papers."""
    return plain_page(ClaimTable.load(folder), "Which claims of papers hold for this model?")
