"""Pages of studies: a question, the answer from the numbers, a figure, and what results show."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from headroles.report.distributions import draw_plan
from headroles.report.page import Page, Picture
from headroles.report.plain_page import plain_page
from headroles.report.replicates import draw_layer_counts, draw_replication
from headroles.report.style import figure_of
from headroles.studies.claims.table import ClaimTable
from headroles.studies.power_plan import PowerPlan
from headroles.studies.replication_tables import LayerCounts, Replication

_MOST_MAPS = 4


def replication_page(folder: Path) -> Page:
    """The page of what was shown in several score sets."""
    result = Replication.load(folder)
    sets, over = len(result.asked.names), result.asked.over
    heads = result.heads()
    everywhere = heads[heads["at_least"] == sets]
    counts = everywhere["role"].value_counts()
    pictures = [
        Picture(
            (figure_of(draw_replication(result)),),
            f"Number of roles that each head was shown to have in all {sets} {over}.",
        )
    ]
    pictures += [
        Picture(
            (figure_of(draw_replication(result, role)),),
            f"{role}: in at least how many {over} each head has it.",
        )
        for role in map(str, counts.index[:_MOST_MAPS])
    ]
    return plain_page(result, f"Which roles replicate over {over}?", tuple(pictures))


def layer_counts_page(folder: Path) -> Page:
    """The page of how many heads of each layer have roles in several models."""
    result = LayerCounts.load(folder)
    total = result.frame.groupby(["set", "role"])["with_role"].sum().groupby("role")
    most = total.max()
    roles = [str(one) for one in most.nlargest(_MOST_MAPS).index]
    pictures = tuple(
        Picture(
            (figure_of(draw_layer_counts(result, one)),),
            f"{one}: heads that have it, by layer; the mean over sets, with the fewest and "
            "the most.",
        )
        for one in roles
    )
    return plain_page(result, "In which layers are heads with a role?", pictures)


def claims_page(folder: Path) -> Page:
    """The page of claims of papers."""
    return plain_page(ClaimTable.load(folder), "Which claims of papers hold for this model?")


def plan_page(folder: Path) -> Page:
    """The page of how many examples it takes."""
    result = PowerPlan.load(folder)
    needed = result.frame["corpus_examples"].dropna().sort_values().to_numpy()
    pictures: tuple[Picture, ...] = ()
    if np.isfinite(needed).any():
        caption = "Share of heads and roles that are decided, by the examples of the corpus."
        pictures = (Picture((figure_of(draw_plan(result)),), caption),)
    return plain_page(result, "How many examples does it take?", pictures)
