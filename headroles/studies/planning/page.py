"""Figure and page of the number of examples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headroles.drawing.page import Page, Picture
from headroles.drawing.plain_page import plain_page
from headroles.drawing.style import DARK, THRESHOLD, figure_of, new_axes
from headroles.errors import UsageError
from headroles.studies.planning.power_plan import PowerPlan

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_plan(plan: PowerPlan, ax: Axes | None = None) -> Axes:
    """Draw the share of heads and roles that are decided, against the size of the corpus.

    Shares are of the planned heads and roles; means at the threshold keep the share below 1.

    Raises UsageError for a plan without any head that examples decide.

    With ``plan`` as `plan_examples` returns it:

    >>> from headroles.report import draw_plan
    >>> draw_plan(plan).get_title()
    'power 0.8, alpha 0.05'
    """
    needed = plan.frame["corpus_examples"].dropna().to_numpy(dtype=np.float64)
    finite = np.sort(needed[np.isfinite(needed)])
    if not len(finite):
        raise UsageError("the plan has no head that any number of examples decides")
    ax = new_axes(ax, 6, 3.4)
    ax.step(finite, np.arange(1, len(finite) + 1) / len(needed), where="post", color=DARK)
    pilot = plan.plan.examples
    ax.axvline(pilot, color=THRESHOLD, linestyle="dotted", label=f"pilot: {pilot} examples")
    ax.set(xscale="log", xlabel="examples of the corpus", ylim=(0, 1.02))
    ax.set_ylabel("share of heads and roles decided")
    ax.set_title(f"power {plan.plan.power:g}, alpha {plan.plan.alpha:g}")
    ax.legend(fontsize="small", loc="lower right")  # below the curve, which ends at the top
    return ax


def plan_page(result: PowerPlan) -> Page:
    """Make the page of the number of examples."""
    needed = result.frame["corpus_examples"].dropna().sort_values().to_numpy()
    pictures: tuple[Picture, ...] = ()
    if np.isfinite(needed).any():
        caption = "Share of heads and roles that are decided, by the examples of the corpus."
        pictures = (Picture((figure_of(draw_plan(result)),), caption),)
    return plain_page(result, "How many examples does it take?", pictures)
