"""Points of pruning curves: the heads that each order removes, of each share and draw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from headroles.errors import UsageError
from headroles.models.remaining_heads import Head
from headroles.record import Recorded
from headroles.studies.importance.removals import present_heads
from headroles.studies.pruning.curve_options import CurveOptions
from headroles.studies.pruning.options import BY_LAYER, BY_TASK
from headroles.studies.pruning.orders import choose_heads
from headroles.tasks.running import TaskRun


class Point(Recorded, frozen=True):
    """Heads that an order removes, of one share and one draw, and the place of their outcomes."""

    order: str
    share: float
    seed: int
    removed: tuple[Head, ...]
    setting: int


def find_points(
    tested: TaskRun, runs: Sequence[TaskRun], options: CurveOptions
) -> tuple[list[Point], list[tuple[Head, ...]]]:
    """Return the points of all orders, and the settings: different sets of removed heads.

    The first setting is the whole model. ``runs`` are over the examples that each draw finds orders
    with; they may be empty if no order needs examples.

    Raises UsageError as `choose_heads`, and for a share of no heads or of all.
    """
    heads = present_heads(tested)
    counts = _counts(len(heads), options)
    places: dict[frozenset[Head], int] = {frozenset(): 0}
    points = []
    for order in options.orders:
        for seed, removed in _draws(order, counts, heads, options, runs):
            for share, own in zip(options.shares, removed, strict=True):
                setting = places.setdefault(frozenset(own), len(places))
                points.append(Point(order, share, seed, tuple(own), setting))
    return points, [tuple(sorted(own)) for own in places]


def _counts(n_heads: int, options: CurveOptions) -> list[int]:
    counts = [round(share * n_heads) for share in options.shares]
    for share, count in zip(options.shares, counts, strict=True):
        if not 0 < count < n_heads:
            raise UsageError(
                f"a share of {share:g} is {count} of {n_heads} heads; it must be one at least and "
                "leave one (--shares)"
            )
    return counts


def _draws(
    order: str,
    counts: Sequence[int],
    heads: Sequence[Head],
    options: CurveOptions,
    runs: Sequence[TaskRun],
) -> Iterator[tuple[int, list[list[Head]]]]:
    """Yield the seed of each draw, and the heads to remove for each of ``counts``."""
    name, own = options.of_order(order)
    for draw in range(options.draws):
        seed, run = options.seed + draw, runs[draw] if name in BY_TASK else None
        drawn = replace(own, seed=seed)
        if name in BY_LAYER:  # groups of more layers need not include those of fewer
            yield seed, [choose_heads(name, count, heads, drawn) for count in counts]
        else:
            path = choose_heads(name, max(counts), heads, drawn, run)
            yield seed, [path[:count] for count in counts]
