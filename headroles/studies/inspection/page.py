"""Page of the attention that tokens of each kind get."""

from __future__ import annotations

from headroles.drawing.page import Page, Picture
from headroles.drawing.plain_page import plain_page
from headroles.drawing.style import figure_of
from headroles.studies.inspection.figures import draw_token_group
from headroles.studies.inspection.token_groups import ALL_LAYERS, TokenGroups


def token_page(result: TokenGroups) -> Page:
    """Make the page of token groups."""
    pictures = tuple(
        Picture(
            (figure_of(draw_token_group(result, name)),),
            f"{name} tokens: their share of weights and of norms by layer, with intervals; the "
            "dotted line is their share of the tokens, as with uniform attention.",
        )
        for name in result.found
        if set(result.frame["layer"]) != {ALL_LAYERS}
    )
    title = f"Which tokens does {result.record.model.name} attend to?"
    return plain_page(result, title, pictures)
