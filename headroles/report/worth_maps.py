"""Maps of what heads are worth to a task: importance by estimator, and losses without heads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headroles.report.head_map import HeadMap, View
from headroles.report.maps import grid_of, text_grid_of
from headroles.report.worth import STRONGEST
from headroles.studies.removal.measures import BETTER, WORSE

if TYPE_CHECKING:
    from headroles.studies.removal import Ablations, Importance

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
    own = rows.astype({"layer": int, "head": int}).set_index(["layer", "head"])
    frame = own.reset_index()
    facts = {
        "interval": tuple(grid_of(frame, own[name]) for name in ("ci_low", "ci_high")),
        "loss": (grid_of(frame, own["loss"]),),
        "change of accuracy": (grid_of(frame, own["accuracy_change"]),),
        "answer": (text_grid_of(frame, own["answer"]),),
        "within the margin": (
            text_grid_of(frame, own["equivalent"].map({True: "yes"}).fillna("")),
        ),
    }
    marks = text_grid_of(frame, own["answer"].map(_SIGNS).fillna(""))
    view = View(
        name="single",
        words="each head alone",
        group="removed",
        values=grid_of(frame, own["loss_change"]),
        marks=marks,
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
