"""Which heads are removed at every point of pruning curves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from headroles.errors import UsageError
from headroles.models.remaining_heads import Head
from headroles.record import Recorded
from headroles.studies.importance.removals import present_heads
from headroles.studies.pruning.curve_options import CurveOptions
from headroles.studies.pruning.options import BY_LAYER, BY_TASK
from headroles.studies.pruning.orders import choose_heads
from headroles.tasks.running import TaskRun


class Point(Recorded, frozen=True):
    """Heads that an order removes, of one share and one draw. ``setting`` is where it was run."""

    order: str
    share: float
    seed: int
    removed: tuple[Head, ...]
    setting: int


@dataclass(frozen=True)
class Points:
    """All points, and the sets of heads that were run; the first is none, the whole model."""

    points: tuple[Point, ...]
    sets: tuple[tuple[Head, ...], ...]

    def settings(self, order: str, share: float) -> list[int]:
        """Return the settings of an order and a share, one for each draw."""
        return [one.setting for one in self.points if (one.order, one.share) == (order, share)]

    def n_removed(self, share: float) -> int:
        """Return how many heads a share is."""
        return next(len(one.removed) for one in self.points if one.share == share)


def find_points(tested: TaskRun, runs: Sequence[TaskRun], options: CurveOptions) -> Points:
    """Return the points of all orders; heads that several of them remove are run once.

    ``runs`` are over the examples that each draw finds orders with, none if no order needs any.

    Raises UsageError for an order that lacks what it needs, and where so many heads cannot go.
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
    return Points(tuple(points), tuple(tuple(sorted(own)) for own in places))


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
    """Return the seed of each draw, and the heads that are removed at each of ``counts``."""
    name, own = options.of_order(order)
    for draw in range(options.draws):
        seed, run = options.seed + draw, runs[draw] if name in BY_TASK else None
        drawn = replace(own, seed=seed)
        if name in BY_LAYER:  # the middle of a model is another one for other numbers of layers
            yield seed, [choose_heads(name, count, heads, drawn) for count in counts]
        else:
            path = choose_heads(name, max(counts), heads, drawn, run)
            yield seed, [path[:count] for count in counts]
