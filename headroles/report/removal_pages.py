"""Pages of what models lose without heads: a question, its answer, a figure, and the tables."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from headroles.report.losses import draw_pruning_curves, draw_task_drops
from headroles.report.page import Page, Picture
from headroles.report.plain_page import plain_page
from headroles.report.style import figure_of
from headroles.report.worth import draw_ablations, draw_importance, draw_role_importance
from headroles.report.worth_maps import ablations_map, importance_map
from headroles.studies.removal import (
    Ablations,
    Importance,
    PruningCurves,
    RoleImportance,
    TaskDrops,
)
from headroles.studies.removal.measures import LOSS

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes


def importance_page(folder: Path) -> Page:
    """The page of the importance of heads in a folder."""
    result = Importance.load(folder)
    estimators = list(dict.fromkeys(result.frame["estimator"]))
    pictures = tuple(
        Picture(
            (figure_of(draw_importance(result, name)),),
            f"Importance by layer and head, estimator {name}.",
        )
        for name in estimators
    )
    title = f"On which attention heads does the loss of {result.record.model.name} depend?"
    return plain_page(result, title, pictures, importance_map(result))


def ablations_page(folder: Path) -> Page:
    """The page of what is lost without heads."""
    result = Ablations.load(folder)
    pictures: tuple[Picture, ...] = ()
    if (result.frame["set"] == "single").any():
        caption = (
            "Change of the loss without each head alone. A circle: shown to be worse; a "
            "triangle: shown to be better."
        )
        pictures = (Picture((figure_of(draw_ablations(result)),), caption),)
    title = f"What does {result.record.model.name} lose without attention heads?"
    return plain_page(result, title, pictures, ablations_map(result))


def role_importance_page(folder: Path) -> Page:
    """The page of whether heads with a role matter more."""
    result = RoleImportance.load(folder)
    alpha = result.record.compared.alpha
    caption = (
        "Loss without all heads with a role, less the mean loss without random sets of as many "
        f"heads of each layer; lines hold {1 - alpha:.0%} of the random sets. In brackets the "
        "number of heads with the role."
    )
    pictures = (Picture((figure_of(draw_role_importance(result)),), caption),)
    return plain_page(result, "Do attention heads with a role matter more?", pictures)


def curves_page(folder: Path) -> Page:
    """The page of what is lost as more and more heads go."""
    result = PruningCurves.load(folder)
    caption = (
        "what is reached without a share of the heads, by order of removing them, with intervals; "
        "the dotted line is the whole model."
    )
    pictures = by_measure(partial(draw_pruning_curves, result), result.measure, caption)
    title = f"How many attention heads can {result.record.model.name} do without?"
    return plain_page(result, title, pictures)


def task_drops_page(folder: Path) -> Page:
    """The page of which layers or heads matter for which task."""
    result = TaskDrops.load(folder)
    caption = (
        "what is lost without heads, as a share of what the whole model reaches. * differs from "
        "0; > more and < less than in the other tasks, each task's mean taken off."
    )
    pictures = by_measure(partial(draw_task_drops, result), result.measure, caption)
    title = "Which attention heads matter for which task?"
    return plain_page(result, title, pictures)


def by_measure(draw: Callable[[str], Axes], first: str, caption: str) -> tuple[Picture, ...]:
    """A figure of what the task is measured by, and one of the loss."""
    return tuple(
        Picture((figure_of(draw(measure)),), f"{measure}: {caption}")
        for measure in dict.fromkeys((first, LOSS))
    )
