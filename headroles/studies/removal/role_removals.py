"""Losses without the heads of a role, and without random sets of as many heads of each layer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import comb, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headroles.models.kept_heads import Head
from headroles.studies.removal.ablation_options import RoleImportanceOptions
from headroles.studies.removal.measures import LESS, MORE
from headroles.studies.removal.orders import without_each
from headroles.tasks import TaskRun
from headroles.tasks.outcomes import FloatArray
from headroles.testing import RANK, Hypotheses, answers, find_p_values, size_of

ENOUGH = 10
"""A role is drawn for no longer once so many draws lost more, and so many less, than its heads."""
_ROUND = 25


def compare_removed(
    run: TaskRun,
    heads: Sequence[Head],
    having: Mapping[str, Sequence[Head]],
    options: RoleImportanceOptions,
) -> dict[str, Any]:
    """Rank the loss without the heads of each role among losses without random sets of heads.

    Under H0 the heads of a role are any heads of their layers. Draws are therefore of all heads of
    these layers, those of the role included, as many of each layer as have the role.
    """
    sets = [tuple(own) for own in having.values()]
    losses = run.outcomes(without_each(sets, run.shape)).losses
    observed = losses.mean(0)
    drawn = _draw(run, heads, sets, observed, options)
    ranks = Hypotheses.of_draws(observed, drawn, size=size_of(losses))
    p_values = find_p_values(ranks, options, "two-sided", RANK)
    n_draws = (~np.isnan(drawn)).sum(0)
    low, middle, high = np.full((3, len(sets)), np.nan)
    some = n_draws > 0
    if some.any():
        limits = [options.alpha / 2, 1 - options.alpha / 2]
        low[some], high[some] = np.nanquantile(drawn[:, some], limits, axis=0)
        middle[some] = np.nanmean(drawn[:, some], axis=0)
    return {
        "draws": n_draws,
        "removed_loss": observed,
        "drawn_loss": middle,
        "drawn_low": low,
        "drawn_high": high,
        "removed_difference": observed - middle,
        "p_removed": p_values.single,
        "p_removed_adjusted": p_values.adjusted,
        "answer": answers(p_values.shows(options.alpha), p_values.direction, (MORE, LESS)),
    }


def n_sets_like(own: Iterable[Head], heads: Iterable[Head]) -> int:
    """How many sets have as many heads of each layer as ``own``."""
    all_of = Counter(layer for layer, _ in heads)
    return prod(comb(all_of[layer], n) for layer, n in Counter(at for at, _ in own).items())


def draw_like(own: Iterable[Head], order: Iterable[Head]) -> tuple[Head, ...]:
    """The first heads of an order, as many of each layer as ``own`` has."""
    left = Counter(layer for layer, _ in own)
    chosen = []
    for head in order:
        if left[head[0]]:
            left[head[0]] -= 1
            chosen.append(head)
    return tuple(sorted(chosen))


def _draw(
    run: TaskRun,
    heads: Sequence[Head],
    sets: Sequence[tuple[Head, ...]],
    observed: FloatArray,
    options: RoleImportanceOptions,
) -> FloatArray:
    """Mean losses (draws, roles) without random sets; NaN after a role's last draw.

    One order of all heads serves all roles in each draw: roles with equal numbers of heads in the
    lower layers share what is computed there. Draws of a role end where both of its tails have
    ``ENOUGH``, with p-values that are valid all the same (Besag and Clifford 1991).
    """
    rng = np.random.default_rng(options.seed)
    drawn = np.full((options.draws, len(sets)), np.nan)
    is_open = np.array([n_sets_like(own, heads) > 1 for own in sets])
    for start in range(0, options.draws, _ROUND):
        if not is_open.any():
            break
        open_roles: list[int] = np.flatnonzero(is_open).tolist()
        part = slice(start, min(start + _ROUND, options.draws))
        orders = [
            [heads[place] for place in rng.permutation(len(heads))]
            for _ in range(part.start, part.stop)
        ]
        asked = [draw_like(sets[role], order) for order in orders for role in open_roles]
        drawn[part, open_roles] = _mean_losses(run, asked).reshape(len(orders), -1)
        is_open[open_roles] = ~_end_decided(drawn, observed)[open_roles]
    return drawn


def _mean_losses(run: TaskRun, sets: Sequence[tuple[Head, ...]]) -> FloatArray:
    """The mean loss (sets,) without the heads of each set; no set is run twice."""
    places = {own: place for place, own in enumerate(sorted(set(sets)))}
    losses = run.outcomes(without_each(places, run.shape)).losses.mean(0)
    return np.asarray(losses[[places[own] for own in sets]], dtype=np.float64)


def _end_decided(drawn: FloatArray, observed: FloatArray) -> NDArray[np.bool_]:
    """Discard draws after the one with which both tails have ``ENOUGH``; whether there is one."""
    above, below = ((side).cumsum(0) for side in (drawn >= observed, drawn <= observed))
    is_decided = np.minimum(above, below) >= ENOUGH
    drawn[is_decided.cumsum(0) > 1] = np.nan
    return np.asarray(is_decided.any(0))
