"""The page of what goes to tokens of each kind."""

from __future__ import annotations

from pathlib import Path

from headroles.report.page import Page, Picture
from headroles.report.plain_page import plain_page
from headroles.report.run_facts import model_name
from headroles.report.style import figure_of
from headroles.report.token_shares import draw_token_group
from headroles.studies.token_groups import TokenGroups


def token_page(folder: Path) -> Page:
    """The page of the token groups in a folder."""
    result = TokenGroups.load(folder)
    table = result.summary().loc[result.found]
    by_weights, by_norms = str(table["weights"].idxmax()), str(table["norms"].idxmax())
    answer = [
        f"By attention weights most goes to {by_weights} tokens: {table['weights'].max():.0%} of a "
        f"row, on average over heads and layers; they are {table['tokens'][by_weights]:.0%} of "
        "the tokens.",
        f"By norms, which count what heads hand on, most goes to {by_norms} tokens: "
        f"{table['norms'].max():.0%}.",
    ]
    figures = tuple(figure_of(draw_token_group(result, name)) for name in result.found)
    caption = (
        "Shares of weights and of norms that go to the tokens of each group, by layer, with "
        "intervals; the dotted line is the share of the tokens, as uniform attention gives it."
    )
    title = f"Which tokens does {model_name(result.provenance)} attend to?"
    return plain_page(result, title, tuple(answer), (Picture(figures, caption),))
