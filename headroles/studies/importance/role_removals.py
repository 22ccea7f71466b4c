"""Losses without the heads of a role, and without random sets of as many heads of each layer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import comb, prod
from typing import Any

import numpy as np

from headroles.arrays import BoolArray, FloatArray
from headroles.models.heads.remaining import Head
from headroles.studies.importance.measures import LESS, MORE
from headroles.studies.importance.options import RoleImportanceOptions
from headroles.studies.importance.removals import without_each
from headroles.tasks.running import TaskRun
from headroles.testing.answers import answers
from headroles.testing.catalogue import RANK
from headroles.testing.evidence import find_p_values
from headroles.testing.hypotheses import Hypotheses, size_of

_ENOUGH = 10
"""Draws of a role end once this many lost more, and this many less, than without its heads."""
_ROUND = 4
_ROUNDING = 1e-9


def enough_draws(options: RoleImportanceOptions) -> int:
    """Return the number k of draws in each tail after which a role needs no more draws.

    With k in both tails after n draws, the p-value is at least 2 (1 + k) / (1 + n), and would
    hardly be smaller after all ``draws``.
    """
    undecided = int(options.alpha * (1 + options.draws) / 2 + _ROUNDING)
    return min(undecided, _ENOUGH) or _ENOUGH


def expected_passes(
    run: TaskRun,
    heads: Sequence[Head],
    having: Mapping[str, Sequence[Head]],
    options: RoleImportanceOptions,
) -> float:
    """Estimate how many passes `compare_removed` takes."""
    sets = [tuple(own) for own in having.values()]
    drawn = [own for own in sets if n_sets_like(own, heads) > 1]
    draws = _expected_draws(np.empty((0, len(drawn))), np.zeros(len(drawn)), options)
    return run.n_passes(without_each(sets, run.shape)) + draws * _cost(run, drawn)


def compare_removed(
    run: TaskRun,
    heads: Sequence[Head],
    having: Mapping[str, Sequence[Head]],
    options: RoleImportanceOptions,
) -> dict[str, Any]:
    """Rank the loss without the heads of each role among losses without random sets of heads.

    Under H0 the heads of a role are any heads of their layers. Draws are therefore of all heads of
    these layers, heads with the role included, as many of each layer as have the role.
    """
    sets = [tuple(own) for own in having.values()]
    losses = run.outcomes(without_each(sets, run.shape)).losses
    observed = losses.mean(0)
    drawn = _draw(run, heads, sets, observed, options)
    ranks = Hypotheses.of_draws(observed, drawn, size=size_of(losses))
    p_values = find_p_values(ranks, options, "two-sided", RANK)
    n_draws = (~np.isnan(drawn)).sum(0)
    low, middle, high = np.full((3, len(sets)), np.nan)
    if (some := n_draws > 0).any():
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
    """Count the sets with as many heads of each layer as ``own``."""
    all_of = Counter(layer for layer, _ in heads)
    return prod(comb(all_of[layer], n) for layer, n in Counter(at for at, _ in own).items())


def draw_like(own: Iterable[Head], order: Iterable[Head]) -> tuple[Head, ...]:
    """Return the first heads of an order, as many of each layer as ``own`` has."""
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
    """Return mean losses (draws, roles) without random sets; NaN after a role's last draw.

    One order of all heads serves all roles in each draw: roles with equal numbers of heads in the
    lower layers share passes through these layers. Draws of a role end once both of its tails have
    `enough_draws`; its p-value stays valid (Besag and Clifford 1991).
    """
    rng, enough = np.random.default_rng(options.seed), enough_draws(options)
    drawn = np.full((options.draws, len(sets)), np.nan)
    is_open = np.array([n_sets_like(own, heads) > 1 for own in sets])
    start, cost = 0, _cost(run, [own for own, one in zip(sets, is_open, strict=True) if one])
    while start < options.draws and is_open.any():
        open_roles: list[int] = np.flatnonzero(is_open).tolist()
        run.expect(cost * _expected_draws(drawn[:start, open_roles], observed[open_roles], options))
        part = slice(start, min(start + max(_ROUND, start // 4), options.draws))
        orders = [
            [heads[place] for place in rng.permutation(len(heads))]
            for _ in range(part.start, part.stop)
        ]
        asked = [draw_like(sets[role], order) for order in orders for role in open_roles]
        cost = _cost(run, asked)
        places = {own: place for place, own in enumerate(dict.fromkeys(asked))}
        losses = run.outcomes(without_each(places, run.shape)).losses.mean(0)
        drawn[part, open_roles] = losses[[places[own] for own in asked]].reshape(len(orders), -1)
        is_open[open_roles] = ~_end_decided(drawn, observed, enough)[open_roles]
        start = part.stop
    return drawn


def _cost(run: TaskRun, sets: Sequence[tuple[Head, ...]]) -> float:
    """Return how many passes each of ``sets`` takes, shared passes divided among the sets."""
    if not sets:
        return 0.0
    return run.n_passes(without_each(dict.fromkeys(sets), run.shape)) / len(sets)


def _expected_draws(
    drawn: FloatArray, observed: FloatArray, options: RoleImportanceOptions
) -> float:
    """Estimate how many more draws roles take, by the share of draws in the tails so far.

    Before the first draw, all ranks of a role count as equally probable.
    """
    n_drawn, enough = len(drawn), enough_draws(options)
    tail = np.minimum((drawn >= observed).sum(0), (drawn <= observed).sum(0))
    needed = (enough - tail) * (n_drawn + 2) / (tail + 1 / 4)
    return float(np.minimum(needed, options.draws - n_drawn).sum())


def _end_decided(drawn: FloatArray, observed: FloatArray, enough: int) -> BoolArray:
    """Discard draws after both tails have ``enough``; return the roles (R,) with such tails."""
    above, below = (drawn >= observed).cumsum(0), (drawn <= observed).cumsum(0)
    is_decided = np.minimum(above, below) >= enough
    drawn[is_decided.cumsum(0) > 1] = np.nan
    return np.asarray(is_decided.any(0))
