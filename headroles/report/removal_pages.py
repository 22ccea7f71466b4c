"""Pages of what models lose without heads: a question, its answer, a figure, and the tables."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headroles.report.losses import draw_pruning_curves, draw_task_drops
from headroles.report.page import Page, Picture
from headroles.report.plain_page import plain_page
from headroles.report.rows import with_interval
from headroles.report.style import figure_of
from headroles.report.worth import draw_ablations, draw_importance, draw_role_importance
from headroles.report.worth_maps import ablations_map, importance_map
from headroles.scoring import model_name
from headroles.studies.removal import (
    Ablations,
    Importance,
    PruningCurves,
    RoleImportance,
    TaskDrops,
)
from headroles.studies.removal.measures import BETTER, LESS, LOSS, MORE, WORSE

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes


def importance_page(folder: Path) -> Page:
    """The page of the importance of heads in a folder."""
    result = Importance.load(folder)
    estimators = list(dict.fromkeys(result.frame["estimator"]))
    first = estimators[0]
    top = result.frame[result.frame["estimator"] == first].nsmallest(1, "rank").to_dict("records")
    sure = result.reliability[first]["full"]
    answer = [
        f"Other examples would give an order of heads whose rank correlation with this one is "
        f"about {sure:.2f} (estimator {first}; 1 is the same order)."
        if np.isfinite(sure)
        else "There are too few heads or examples to tell whether others would give this order."
    ]
    if top:
        one = top[0]
        answer.insert(
            0,
            f"By the estimator {first} head {one['layer']}-{one['head']} is the most important: "
            f"{with_interval(one, 'importance')}.",
        )
    pictures = tuple(
        Picture(
            (figure_of(draw_importance(result, name)),),
            f"Importance by layer and head, estimator {name}.",
        )
        for name in estimators
    )
    title = f"On which attention heads does the loss of {model_name(result.provenance)} depend?"
    return plain_page(result, title, tuple(answer), pictures, importance_map(result))


def ablations_page(folder: Path) -> Page:
    """The page of what is lost without heads."""
    result = Ablations.load(folder)
    counts = result.frame["answer"].value_counts()
    worst = result.frame.nlargest(1, "loss_change").to_dict("records")
    answer = [
        f"Of {len(result.frame)} removals, {counts.get('worse', 0)} were shown to make the loss "
        f"worse and {counts.get('better', 0)} to make it better; "
        f"{int(result.frame['equivalent'].sum())} to change it by less than the margin."
    ]
    answer += [
        f"The loss is largest without {one['removed']}: it changes by {one['loss_change']:+.3g} "
        f"({one['ci_low']:.3g} to {one['ci_high']:.3g})."
        for one in worst
    ]
    pictures: tuple[Picture, ...] = ()
    if (result.frame["set"] == "single").any():
        caption = (
            "Change of the loss without each head alone. A circle: shown to be worse; a "
            "triangle: shown to be better."
        )
        pictures = (Picture((figure_of(draw_ablations(result)),), caption),)
    title = f"What does {model_name(result.provenance)} lose without attention heads?"
    return plain_page(result, title, tuple(answer), pictures, ablations_map(result))


def role_importance_page(folder: Path) -> Page:
    """The page of whether heads with a role matter more."""
    result = RoleImportance.load(folder)
    frame, alpha = result.frame, result.provenance["compared"]["alpha"]
    more, less = (int((frame["answer"] == answer).sum()) for answer in (MORE, LESS))
    answer = (
        f"For {more} of {len(frame)} roles the loss without their heads was shown to be larger "
        f"than without random sets of as many heads of each layer, for {less} to be smaller.",
    )
    caption = (
        "Loss without all heads with a role, less the mean loss without random sets of as many "
        f"heads of each layer; lines hold {1 - alpha:.0%} of the random sets. In brackets the "
        "number of heads with the role."
    )
    pictures = (Picture((figure_of(draw_role_importance(result)),), caption),)
    return plain_page(result, "Do attention heads with a role matter more?", answer, pictures)


def curves_page(folder: Path) -> Page:
    """The page of what is lost as more and more heads go."""
    result = PruningCurves.load(folder)
    against = result.curves["against"]
    rows, shares = result.overall(LOSS), result.curves["shares"]
    best = rows.nsmallest(1, "value").to_dict("records")
    where = f"With {shares[0]:.0%}" if len(shares) == 1 else "On average over the shares"
    answer = [
        f"{where} of the heads removed, the loss is{' least' if len(rows) > 1 else ''} in the "
        f"order {one['order']}: "
        f"{with_interval(one, 'value')}; the whole model has "
        f"{result.curves['whole'][LOSS]:.3g}."
        for one in best
    ]
    for told in (BETTER, WORSE):
        if shown := [str(row.order) for row in rows.itertuples() if row.answer == told]:
            answer.append(f"Shown to be {told} than {against}: {', '.join(shown)}.")
    compared = rows["answer"][rows["order"] != against]
    if len(compared) and not compared.isin([BETTER, WORSE]).any():
        answer.append(f"No order was shown to be better or worse than {against}.")
    caption = (
        "what is reached without a share of the heads, by order of removing them, with intervals; "
        "the dotted line is the whole model."
    )
    pictures = _by_measure(partial(draw_pruning_curves, result), result.measure, caption)
    title = f"How many attention heads can {model_name(result.provenance)} do without?"
    return plain_page(result, title, tuple(answer), pictures)


def task_drops_page(folder: Path) -> Page:
    """The page of which layers or heads matter for which task."""
    result = TaskDrops.load(folder)
    rows = result.frame[result.frame["measure"] == LOSS]
    worse = int((rows["answer"] == WORSE).sum())
    more = int((rows["deviates"] == MORE).sum())
    answer = [
        f"Of {len(rows)} pairs of a removal and a task, {worse} were shown to make the loss of the "
        f"task worse, and {more} to matter more for it than for the other tasks."
    ]
    for one in rows.nlargest(1, "relative_drop").to_dict("records"):
        answer.append(
            f"The relative change of the loss is largest in {one['task']} without "
            f"{one['removed']}: {one['relative_drop']:+.1%}."
        )
    caption = (
        "what is lost without heads, as a share of what the whole model reaches. * differs from "
        "0; > more and < less than in the other tasks, each task's mean taken off."
    )
    pictures = _by_measure(partial(draw_task_drops, result), result.measure, caption)
    title = "Which attention heads matter for which task?"
    return plain_page(result, title, tuple(answer), pictures)


def _by_measure(draw: Callable[[str], Axes], first: str, caption: str) -> tuple[Picture, ...]:
    """A figure of what the task is measured by, and one of the loss."""
    return tuple(
        Picture((figure_of(draw(measure)),), f"{measure}: {caption}")
        for measure in dict.fromkeys((first, LOSS))
    )
