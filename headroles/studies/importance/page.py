"""Maps and pages of the importance of heads to a task."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from headroles.drawing.grids import grid_of, text_grid_of
from headroles.drawing.head_map import HeadMap, View
from headroles.drawing.page import Page, Picture
from headroles.drawing.plain_page import plain_page
from headroles.drawing.style import figure_of
from headroles.studies.importance.ablation import Ablations
from headroles.studies.importance.by_role import RoleImportance
from headroles.studies.importance.by_task import TaskDrops
from headroles.studies.importance.figures import (
    STRONGEST,
    draw_ablations,
    draw_importance,
    draw_role_importance,
    draw_task_drops,
)
from headroles.studies.importance.importance import Importance
from headroles.studies.importance.measures import BETTER, LOSS, WORSE

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes


_SIGNS = {WORSE: "●", BETTER: "▽"}


def importance_map(result: Importance) -> HeadMap:
    """Return the map of importance, an estimator as a view."""
    views = []
    for name in dict.fromkeys(result.frame["estimator"]):
        ranks = result.of(name, "rank")
        facts = {
            "interval": (result.of(name, "ci_low"), result.of(name, "ci_high")),
            "share of its layer": (result.of(name, "normalised"),),
            "rank": (ranks,),
        }
        marks = np.where(ranks <= STRONGEST, np.nan_to_num(ranks).astype(int).astype(str), "")
        unit = f"importance ({name})"
        views.append(View(name, name, "estimators", result.of(name), marks, facts, unit))
    legend = ((f"1 to {STRONGEST}", "rank of the most important heads", False),)
    title = "Importance of heads: layers are rows, heads are columns"
    return HeadMap(title, "importance", tuple(views), legend, choose="Estimator")


def ablations_map(result: Ablations) -> HeadMap | None:
    """Return the map of losses without single heads; None where no head was removed by itself."""
    rows = result.frame[result.frame["set"] == "single"]
    if rows.empty:
        return None
    own = rows.set_index(["layer", "head"])
    numbers = {
        name: grid_of(rows, own[name])
        for name in ("loss", "loss_change", "ci_low", "ci_high", "accuracy_change")
    }
    facts = {
        "interval": (numbers["ci_low"], numbers["ci_high"]),
        "loss": (numbers["loss"],),
        "change of accuracy": (numbers["accuracy_change"],),
        "answer": (text_grid_of(rows, own["answer"]),),
        "within the margin": (text_grid_of(rows, own["equivalent"].map({True: "yes", False: ""})),),
    }
    view = View(
        name="single",
        words="each head alone",
        group="removed",
        values=numbers["loss_change"],
        marks=text_grid_of(rows, own["answer"].map(_SIGNS).fillna("")),
        facts=facts,
        unit="change of the loss",
    )
    legend = (
        ("●", "without it the loss is worse", True),
        ("▽", "without it the loss is better", True),
        ("", "undecided", False),
    )
    title = "Change of the loss without each head: layers are rows, heads are columns"
    return HeadMap(title, "change of the loss", (view,), legend, is_signed=True, choose="Removed")


def importance_page(result: Importance) -> Page:
    """Make the page of the importance of heads."""
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


def ablations_page(result: Ablations) -> Page:
    """Make the page of the changes of the loss without heads."""
    pictures: tuple[Picture, ...] = ()
    if (result.frame["set"] == "single").any():
        caption = (
            "Change of the loss without each head alone. Circle: the loss is worse; triangle: the "
            "loss is better."
        )
        pictures = (Picture((figure_of(draw_ablations(result)),), caption),)
    title = f"What does {result.record.model.name} lose without attention heads?"
    return plain_page(result, title, pictures, ablations_map(result))


def role_importance_page(result: RoleImportance) -> Page:
    """Make the page of the tests whether heads with a role matter more."""
    alpha = result.record.compared.alpha
    caption = (
        "Loss without all heads with a role, less the mean loss without random sets of as many "
        f"heads of each layer; lines hold {1 - alpha:.0%} of the random sets. In brackets the "
        "number of heads with the role."
    )
    pictures = (Picture((figure_of(draw_role_importance(result)),), caption),)
    return plain_page(result, "Do attention heads with a role matter more?", pictures)


def task_drops_page(result: TaskDrops) -> Page:
    """Make the page of the layers or heads that matter for each task."""
    caption = (
        "drop without heads, as a share of the whole model's value. * differs from 0; > more and < "
        "less than in the other tasks, after subtracting each task's mean."
    )
    pictures = by_measure(partial(draw_task_drops, result), result.measure, caption)
    title = "Which attention heads matter for which task?"
    return plain_page(result, title, pictures)


def by_measure(draw: Callable[[str], Axes], first: str, caption: str) -> tuple[Picture, ...]:
    """Return a figure of the measure ``first``, and one of the loss."""
    return tuple(
        Picture((figure_of(draw(measure)),), f"{measure}: {caption}")
        for measure in dict.fromkeys((first, LOSS))
    )
