"""Lines and points: one head over all roles, its scores, and how sure a corpus makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headroles.errors import UsageError
from headroles.report.style import BRIGHT, DARK, THRESHOLD, new_axes, plain, score_label
from headroles.roles import find_role
from headroles.testing import NO, UNDECIDED, YES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headroles.scoring import HeadScores
    from headroles.studies import PowerPlan, RoleTable

_LOOKS = {
    YES: {"color": DARK, "marker": "o"},
    NO: {"color": "0.6", "marker": "s"},
    UNDECIDED: {"color": BRIGHT, "marker": "D"},
}


def draw_head(table: RoleTable, layer: int, head: int, ax: Axes | None = None) -> Axes:
    """One head over all roles: means with their intervals, and the threshold of each role.

    Roles without a mean are left out. The form of a point is the answer.

    Raises UsageError for a head that the table does not have.
    """
    frame = table.frame
    rows = frame[(frame["layer"] == layer) & (frame["head"] == head) & frame["mean"].notna()]
    if not len(rows):
        raise UsageError(f"the table has no means of head {layer}-{head}; it must have one to draw")
    ax = new_axes(ax, 7, 1.2 + 0.24 * len(rows))
    places = np.arange(len(rows))
    ax.vlines(
        rows["threshold"],
        places - 0.4,
        places + 0.4,
        color=THRESHOLD,
        linestyle="dotted",
        label="threshold",
    )
    for answer, look in _LOOKS.items():
        own = (rows["answer"] == answer).to_numpy()
        if own.any():
            part = rows[own]
            # An interval need not lie around the mean: simultaneous ones of some methods do not.
            ax.hlines(places[own], part["ci_low"], part["ci_high"], color=look["color"])
            ax.plot(part["mean"], places[own], linestyle="none", label=answer, **look)  # type: ignore[arg-type]
    ax.set_yticks(places, [plain(role) for role in rows["role"]])
    ax.set(ylim=(len(rows) - 0.5, -0.5), xlabel=score_label(table.record.score))
    ax.set_title(f"head {layer}-{head}")
    ax.legend(fontsize="small")
    return ax


def draw_scores(
    scores: HeadScores,
    layer: int,
    head: int,
    role: str,
    threshold: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Distribution over examples of the scores of a head, with their mean and the threshold.

    Without ``threshold``, that of the role. Raises UsageError for a head or role that the scores do
    not have, and where no example has a score.
    """
    own = scores.of_head((layer, head), role)
    own = own[~np.isnan(own)].astype(np.float64)
    if not len(own):
        raise UsageError(f"no example has a score of head {layer}-{head} for {role}")
    found = next(one for one in scores.roles if one.id == role)
    limit = found.threshold(scores.score, threshold)
    ax = new_axes(ax, 6, 3.4)
    ax.hist(own, bins=min(50, max(5, int(np.sqrt(len(own))))), color="0.75", edgecolor="white")
    ax.axvline(own.mean(), color=DARK, linewidth=2, label=f"mean {own.mean():.3g}")
    ax.axvline(
        limit, color=THRESHOLD, linestyle="dotted", linewidth=2, label=f"threshold {limit:g}"
    )
    ax.set(xlabel=f"{scores.score.name} score of an example", ylabel="examples")
    ax.set_title(f"head {layer}-{head}, {plain(role)} ({len(own)} examples)")
    ax.legend(fontsize="small")
    return ax


def draw_error(table: RoleTable, role: str, ax: Axes | None = None) -> Axes:
    """How far the interval of a mean reaches to a side, against the number of examples.

    For the median head of the role and that of nine tenths: the half width of the intervals of the
    table, which falls with the root of the number of examples if those to come are like these,
    and their documents too. The point is where the table is.

    Raises UsageError for a role that the table does not have, or that has no intervals.
    """
    role = find_role(role, table.roles)
    rows = table.frame[table.frame["role"] == role]
    half = ((rows["ci_high"] - rows["ci_low"]) / 2).replace(np.inf, np.nan).dropna()
    if not len(half):
        raise UsageError(f"the table has no intervals for {role}; it must have some to draw")
    n_now = int(rows["n"].max())
    n = np.geomspace(max(2, n_now / 16), n_now * 16, 100)
    ax = new_axes(ax, 6, 3.4)
    for share, name, look in ((0.5, "median head", "solid"), (0.9, "nine tenths", "dashed")):
        now = float(half.quantile(share))
        (line,) = ax.plot(n, now * np.sqrt(n_now / n), color=DARK, linestyle=look, label=name)
        ax.plot([n_now], [now], "o", color=line.get_color())
    ax.set(xscale="log", xlabel="examples with a score", ylim=(0, None))
    ax.set_ylabel("half width of the interval")
    ax.set_title(plain(role))
    ax.legend(fontsize="small")
    return ax


def draw_plan(plan: PowerPlan, ax: Axes | None = None) -> Axes:
    """The share of heads and roles that are decided, against the examples of the corpus.

    Of those that can be planned; what no number of examples decides keeps the share below 1.

    Raises UsageError if there is nothing that can be planned.
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
