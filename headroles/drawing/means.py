"""Means of scores that were not tested: a map of heads for a role."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headroles.drawing.style import draw_values, grid_of, score_label, words_label
from headroles.role_names import find_role

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headroles.scoring.scores import HeadScores


def draw_means(scores: HeadScores, role: str, ax: Axes | None = None) -> Axes:
    """Draw layers x heads for a role: the colour is the mean score over all examples, untested.

    Raises UsageError for a role that was not scored.
    """
    name = find_role(role, scores.roles)
    means = scores.means()
    values = means[means["role"] == name].set_index(["layer", "head"])["mean"]
    grid = grid_of(means, values, (scores.n_layers, scores.n_heads))
    title = words_label(scores.in_words(name))
    return draw_values(ax, grid, title, score_label(scores.score.name))
