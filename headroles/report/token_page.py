"""The page of what goes to tokens of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from headroles.report.page import Page, Picture
from headroles.report.plain_page import plain_page
from headroles.report.style import figure_of
from headroles.report.token_shares import draw_token_group
from headroles.scoring import model_name
from headroles.studies.token_groups import TokenGroups

if TYPE_CHECKING:
    import pandas as pd


def token_page(folder: Path) -> Page:
    """The page of the token groups in a folder."""
    result = TokenGroups.load(folder)
    answer = tuple(_answer(result.summary().loc[result.found]))
    pictures = tuple(
        Picture(
            (figure_of(draw_token_group(result, name)),),
            f"{name} tokens: their share of weights and of norms by layer, with intervals; the "
            "dotted line is their share of the tokens, which uniform attention would give them.",
        )
        for name in result.found
    )
    title = f"Which tokens does {model_name(result.provenance)} attend to?"
    return plain_page(result, title, answer, pictures)


def _answer(table: pd.DataFrame) -> Iterator[str]:
    """Which groups of ``table`` get most beyond their share of the tokens, and which most."""
    times = table[["weights", "norms"]].div(table["tokens"], axis=0)
    most, largest = str(times["weights"].idxmax()), str(table["weights"].idxmax())
    beside = (
        f"; the largest part, {table['weights'][largest]:.0%}, goes to the {largest} tokens, "
        f"{times['weights'][largest]:.1f} times theirs"
    )
    yield (
        f"Beyond their share of the tokens, the {most} tokens get most of the attention weights: "
        f"{table['weights'][most]:.0%} of a row on average, {times['weights'][most]:.1f} times "
        f"that share{beside if largest != most else ''}."
    )
    yield (
        f"By norms, which count what heads hand on, the {most} tokens get "
        f"{table['norms'][most]:.0%}, {times['norms'][most]:.1f} times their share."
    )
