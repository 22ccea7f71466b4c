"""Orders of removing heads: by importance, by layers, by role, at random."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

from headroles.errors import UsageError
from headroles.head_rows import HeadRows
from headroles.models.heads.gates import HeadSites
from headroles.models.heads.projections import layers_that_share
from headroles.models.heads.remaining import Head
from headroles.options import Convert, Seed, split_names
from headroles.studies.classification.role_table import RoleTable
from headroles.studies.importance.importance import ImportanceOptions, normalise, values_of
from headroles.studies.inspection.origin import read_head
from headroles.studies.removals import RolesFromOptions, at_most, rises_of, sorted_by, without
from headroles.tasks.outcomes import Derivatives
from headroles.tasks.reading import Task
from headroles.tasks.running import TaskRun

_Plain = Literal["bottom", "top", "middle", "both_ends", "alternate", "random", "random_per_layer"]
Order = Literal["importance", "reestimated", "ablation", "with_role", "without_role", _Plain]
BY_ESTIMATE, BY_ROLE = ("importance", "reestimated"), ("with_role", "without_role")
_USED_BY = {
    **dict.fromkeys(("role", "roles_from"), BY_ROLE),
    **dict.fromkeys(("estimator", "normalisation"), BY_ESTIMATE),
    "steps": ("reestimated",),
}


def _heads(value: str | Sequence[str | tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    parts = split_names(value) if isinstance(value, str) else value
    heads = (part if isinstance(part, tuple | list) else read_head(str(part)) for part in parts)
    return tuple((int(layer), int(head)) for layer, head in heads)


@dataclass(frozen=True, kw_only=True)
class SelectionOptions(RolesFromOptions, ImportanceOptions):
    """Options of choosing heads to remove."""

    estimator: Literal["absolute", "signed", "token", "taylor"] = "absolute"
    """Estimator of importance that orders go by."""
    role: str | None = None
    """Role whose heads the orders with_role and without_role are about: its id, its words or its
    relation, such as nsubj."""
    at_least: Annotated[int, Meta(ge=0)] = 0
    """Heads that every layer keeps."""
    protect: Annotated[Sequence[tuple[int, int]] | None, Convert(_heads)] = None
    """Heads that stay, as in 3-11,0-2."""
    steps: Annotated[int, Meta(ge=1)] = 10
    """Steps in which the order reestimated removes heads."""
    seed: Seed = 0
    """Seed of random choices."""

    def check_orders(self, orders: Sequence[tuple[str, str | None]]) -> None:
        """Raise UsageError for an order without its role, and an option that no order uses.

        ``orders`` are names of orders, each with its role.
        """
        names = [order for order, _ in orders]
        for order, role in orders:
            if order in BY_ROLE and (role is None or self.roles_from is None):
                raise UsageError(
                    f"the order {order} needs `role` and `roles_from`, a folder with roles"
                )
        for name, users in _USED_BY.items():
            if getattr(self, name) != getattr(SelectionOptions, name) and not {*users} & {*names}:
                raise UsageError(
                    f"`{name}` does nothing with the order {', '.join(names)}; leave "
                    f"it out, or choose the order {' or '.join(users)}"
                )


Units = Mapping[Head, Sequence[Head]]
"""Heads that are removed at once, by the first of them."""


def units_of(sites: HeadSites) -> Units:
    """Return the units of a model: a head of all layers that share an attention module.

    Raises UsageError if different numbers of layers share modules.
    """
    groups = list(layers_that_share(sites.layers).values())
    if len(sizes := {len(group) for group in groups}) > 1:
        raise UsageError(
            f"layers of this model share attention modules in groups of {sorted(sizes)}; heads "
            "can only be removed from models whose groups are of one size"
        )
    layers = {group[0]: group for group in groups}
    return {
        (first, number): [(layer, number) for layer in layers[first]]
        for first, number in sites.heads
        if first in layers
    }


def choose_heads(
    order: str,
    n_removed: int,
    heads: Iterable[Head] | Units,
    options: SelectionOptions,
    run: TaskRun | None = None,
    names: HeadRows = HeadRows(),  # noqa: B008 - it cannot change
) -> list[Head]:
    """Choose the heads to remove first: ``n_removed``, or those of as many units.

    ``names`` are the kinds of attention of the layers; orders by layers begin in each of them.

    Raises UsageError for an order that needs a run, for protected heads that the model lacks, and
    where protected heads, and heads that every layer keeps, do not leave ``n_removed``.
    """
    units = heads if isinstance(heads, Mapping) else {head: [head] for head in heads}
    firsts = list(units)
    unit_of = {head: first for first, unit in units.items() for head in unit}
    protected = {unit_of.get(head, head) for head in options.protect or ()}
    room = _room(n_removed, firsts, protected, options.at_least)
    if order not in (*BY_ESTIMATE, "ablation"):
        ordered = _without_task(order, firsts, options, names)
    elif run is None:
        raise UsageError(f"the order {order} needs a task; name its file after the model")
    elif order == "ablation":
        ordered = sorted_by(rises_of(run, list(units.values())), firsts)
    else:
        ordered = []
        steps = 1 if order == "importance" else min(options.steps, n_removed)
        for step in range(1, steps + 1):
            ordered += _by_importance(run, ordered, units, options)
            ordered = _first(round(n_removed * step / steps), ordered, room, protected)
    chosen = _first(n_removed, ordered, room, protected)
    if len(chosen) < n_removed:
        raise UsageError(
            f"{n_removed} heads cannot be removed from layers of which no two are adjacent; remove "
            f"{len(chosen)} at most in the order {order}"
        )
    return [head for first in chosen for head in units[first]]


def _first(
    n: int, ordered: Iterable[Head], room: Mapping[int, int], protected: set[Head]
) -> list[Head]:
    """Return the first ``n`` heads that may be removed."""
    return list(islice(at_most(room, (head for head in ordered if head not in protected)), n))


def _without_task(
    order: str, heads: Sequence[Head], options: SelectionOptions, names: HeadRows
) -> list[Head]:
    """Return all heads in an order that needs no task; at random where it leaves a choice."""
    indices = np.random.default_rng(options.seed).permutation(len(heads))
    ordered = [heads[index] for index in indices]
    if order in BY_ROLE:
        table = RoleTable.load(str(options.roles_from))
        first = names.first(table.record.attention)
        having = {(first + layer, head) for layer, head in table.heads_with(str(options.role))}
        is_last = order == "without_role"
        return sorted(ordered, key=lambda head: (head in having) == is_last)
    of_layer = {at: [head for head in ordered if head[0] == at] for at, _ in heads}
    if order == "random_per_layer":  # one head of every layer, then another, and so on
        return sorted(ordered, key=lambda head: of_layer[head[0]].index(head))
    if order == "random":
        return ordered
    layers = _rows_in_order(order, 1 + max(of_layer), names)
    return [head for layer in layers for head in of_layer.get(layer, ())]


def _rows_in_order(order: str, n_rows: int, names: HeadRows) -> list[int]:
    """Return layers as `order_layers` does; of several kinds one of each, then another of each."""
    places: list[tuple[float, int]] = []
    for part in names.parts.values():
        rows = range(n_rows)[part]
        layers = order_layers(order, len(rows))
        places += [(place / len(rows), rows[layer]) for place, layer in enumerate(layers)]
    return [row for _, row in sorted(places)]


def _by_importance(
    run: TaskRun, removed: Sequence[Head], units: Units, options: SelectionOptions
) -> list[Head]:
    """Return the units that are left without ``removed`` ones, the least important first."""
    gates = without([head for first in removed for head in units[first]], run.shape)
    derivatives = _summed(run.derivatives(gates=gates), units)
    means = values_of(derivatives, options.estimator).mean(0).reshape(run.shape)
    left = [head for head in units if head not in removed]
    return sorted_by(normalise(means, options.normalisation), left)


def _summed(derivatives: Derivatives, units: Units) -> Derivatives:
    """Return the derivatives by gates that units share: sums over their layers.

    Sums by token are of absolute values, and so an upper bound.
    """
    groups = {unit[0][0]: [layer for layer, _ in unit] for unit in units.values()}
    summed = {name: getattr(derivatives, name).copy() for name in ("by_gate", "by_token")}
    for values in summed.values():
        for first, layers in groups.items():
            values[:, first] = values[:, layers].sum(1)
    return replace(derivatives, **summed)


def _room(
    n_removed: int, heads: Sequence[Head], protected: set[Head], at_least: int
) -> dict[int, int]:
    """Return how many heads each layer may lose.

    Raises UsageError for protected heads that are not there, and for too many to remove.
    """
    sizes = Counter(layer for layer, _ in heads)
    for layer, number in sorted(protected.difference(heads)):
        present = [str(head) for at, head in heads if at == layer]
        has = f"the heads {', '.join(present)} there" if present else "no heads in that layer"
        raise UsageError(
            f"the head {layer}-{number} is to be protected, but the model has {has}; layers "
            "and heads count from 0"
        )
    kept = Counter(layer for layer, _ in protected)
    room = {at: size - min(size, max(kept[at], at_least)) for at, size in sizes.items()}
    if n_removed > (most := sum(room.values())):
        raise UsageError(
            f"{n_removed} heads cannot be removed: every layer keeps {at_least} "
            f"(`at_least`) and {len(protected)} are protected (`protect`), so that {most} of "
            f"{len(heads)} may go; keep at least {len(heads) - most}"
        )
    return room


def order_layers(order: str, n_layers: int) -> list[int]:
    """Return layers in the order of their removal.

    ``bottom`` begins with the first layer, ``top`` with the last, ``middle`` with those in the
    middle, the lower of two first; ``both_ends`` takes the first, the last, the second, the last
    but one, and so on; ``alternate`` every second layer, no two of which are adjacent. Budhraja et
    al. (2020) name these strategies; the definitions are ours.
    """
    layers, last = range(n_layers), n_layers - 1
    if order == "alternate":
        return [*layers[1::2]]
    first = {
        "bottom": lambda layer: layer,
        "top": lambda layer: -layer,
        "middle": lambda layer: abs(2 * layer - last),
        "both_ends": lambda layer: min(layer, last - layer),
    }[order]
    return sorted(layers, key=first)


def warn_of_one_file(task: Task, tested: Task) -> Iterator[str]:
    """Warn of a test that has the examples by which heads were chosen."""
    if task.digest == tested.digest:
        yield (
            f"heads were chosen and measured in one file, {tested.file}: heads chosen by examples "
            "do better on these examples than on others; take other examples for the test"
        )
