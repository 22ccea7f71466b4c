"""Orders of removing heads: by importance, by layers, by role, at random."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_args

import numpy as np
from msgspec import Meta

from headroles.errors import UsageError
from headroles.models.heads.projections import find_projections, layers_that_share
from headroles.models.heads.remaining import Head
from headroles.models.heads.surgery import heads_of
from headroles.options import Convert, Seed, fields_of, split_names
from headroles.studies.classification.role_table import RoleTable
from headroles.studies.importance.importance import RankingOptions, normalise, values_of
from headroles.studies.inspection.again import read_head
from headroles.studies.removals import RoleOptions, at_most, rises_of, sorted_by, without
from headroles.tasks.options import RunOptions
from headroles.tasks.outcomes import Derivatives
from headroles.tasks.running import TaskRun

if TYPE_CHECKING:
    from transformers import PreTrainedModel

ByTask = Literal["importance", "reestimated", "ablation"]
ByRole = Literal["with_role", "without_role"]
ByLayer = Literal["bottom", "top", "middle", "both_ends", "alternate"]
Random = Literal["random", "random_per_layer"]
Order = Literal[ByTask, ByRole, ByLayer, Random]
BY_TASK, BY_ROLE, BY_LAYER, ORDERS = map(get_args, (ByTask, ByRole, ByLayer, Order))
BY_ESTIMATE = ("importance", "reestimated")
_USED_BY = {
    **dict.fromkeys(("role", "roles_from"), BY_ROLE),
    **dict.fromkeys(("estimator", "normalisation"), BY_ESTIMATE),
    "steps": ("reestimated",),
}


@dataclass(frozen=True, kw_only=True)
class TestSetOptions(RunOptions):
    """Options of a study with a test on other examples."""

    __test__ = False
    test_examples: Annotated[int | None, Meta(ge=2)] = None
    """Most examples to take of the test file; `examples` counts those of TASK."""

    def of_test(self) -> Self:
        """Return the options to read the test with."""
        return replace(self, examples=self.test_examples)


def _heads(given: Any) -> tuple[tuple[int, int], ...]:
    if not isinstance(given, str) and all(isinstance(head, tuple | list) for head in given):
        return tuple((int(layer), int(head)) for layer, head in given)
    return tuple(map(read_head, split_names(given)))


@dataclass(frozen=True, kw_only=True)
class SelectionOptions(RoleOptions, RankingOptions):
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

    def refuse_idle(self, orders: Sequence[str]) -> None:
        """Raise UsageError for an option that none of the orders uses."""
        for field in fields_of(type(self)):
            users = _USED_BY.get(field.name, orders)
            if getattr(self, field.name) != field.default and not {*users} & {*orders}:
                raise UsageError(
                    f"`{field.name}` does nothing with the order {', '.join(orders)}; leave "
                    f"it out, or choose the order {' or '.join(users)}"
                )

    def check_role(self, order: str) -> None:
        """Raise UsageError for an order by role without a role and a folder of roles."""
        if order in BY_ROLE and (self.role is None or self.roles_from is None):
            raise UsageError(
                f"the order {order} needs `role` and `roles_from`, a folder with roles"
            )


Units = Mapping[Head, Sequence[Head]]
"""Heads that are removed at once, by the first of them."""


def units_of(model: PreTrainedModel) -> Units:
    """Return the units of a model: a head of all layers that share an attention module.

    Raises UsageError if different numbers of layers share modules.
    """
    groups = list(layers_that_share(find_projections(model)).values())
    if len(sizes := {len(group) for group in groups}) > 1:
        raise UsageError(
            f"layers of this model share attention modules in groups of {sorted(sizes)}; heads "
            "can only be removed from models whose groups are of one size"
        )
    layers = {group[0]: group for group in groups}
    return {
        (first, number): [(layer, number) for layer in layers[first]]
        for first, number in heads_of(model)
        if first in layers
    }


def choose_heads(
    order: str,
    n_removed: int,
    heads: Iterable[Head] | Units,
    options: SelectionOptions,
    run: TaskRun | None = None,
) -> list[Head]:
    """Choose ``n_removed`` heads, or units of heads, to remove first.

    Raises UsageError for an order that needs a run, for protected heads that the model lacks, and
    where protected heads, and heads that every layer keeps, do not leave ``n_removed``.
    """
    units = heads if isinstance(heads, Mapping) else {head: [head] for head in heads}
    firsts = list(units)
    room = _room(n_removed, firsts, options)
    indices = np.random.default_rng(options.seed).permutation(len(firsts))
    ordered = [firsts[index] for index in indices]
    if order in BY_LAYER:
        layers = order_layers(order, 1 + max(room))
        ordered = [head for layer in layers for head in ordered if head[0] == layer]
    elif order == "random_per_layer":  # one head of every layer, then another, and so on
        of_layer = {layer: [head for head in ordered if head[0] == layer] for layer in room}
        ordered = sorted(ordered, key=lambda head: of_layer[head[0]].index(head))
    elif order in BY_ROLE:
        having = set(RoleTable.load(str(options.roles_from)).heads_with(str(options.role)))
        is_last = order == "without_role"
        ordered = sorted(ordered, key=lambda head: (head in having) == is_last)
    elif order in BY_TASK:
        if run is None:
            raise UsageError(f"the order {order} needs a task; name its file after the model")
        if order in BY_ESTIMATE:
            return _by_importance(order, run, n_removed, units, options, room)
        ordered = sorted_by(rises_of(run, list(units.values())), firsts)
    chosen = _first(n_removed, ordered, options, room)
    if len(chosen) < n_removed:
        raise UsageError(
            f"{n_removed} heads cannot be removed from layers of which no two are adjacent; remove "
            f"{len(chosen)} at most in the order {order}"
        )
    return chosen


def _first(
    n_removed: int, order: Iterable[Head], options: SelectionOptions, room: Mapping[int, int]
) -> list[Head]:
    """Return the first ``n_removed`` heads of an order that may be removed."""
    free = (head for head in order if head not in (options.protect or ()))
    return list(islice(at_most(room, free), n_removed))


def _by_importance(
    order: str,
    run: TaskRun,
    n_removed: int,
    units: Units,
    options: SelectionOptions,
    room: Mapping[int, int],
) -> list[Head]:
    """Return the least important heads, estimated again after each step."""
    steps = 1 if order == "importance" else min(options.steps, n_removed)
    removed: list[Head] = []
    for step in range(1, steps + 1):
        gates = without([head for first in removed for head in units[first]], run.shape)
        derivatives = _summed(run.derivatives(gates=gates), units)
        means = values_of(derivatives, options.estimator).mean(0).reshape(run.shape)
        left = [head for head in units if head not in removed]
        ordered = [*removed, *sorted_by(normalise(means, options.normalisation), left)]
        removed = _first(round(n_removed * step / steps), ordered, options, room)
    return removed


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


def _room(n_removed: int, heads: Sequence[Head], options: SelectionOptions) -> dict[int, int]:
    """Return how many heads each layer may lose.

    Raises UsageError for protected heads that are not there, and for too many to remove.
    """
    protected, sizes = set(options.protect or ()), Counter(layer for layer, _ in heads)
    for layer, number in sorted(protected.difference(heads)):
        present = [str(head) for at, head in heads if at == layer]
        has = f"the heads {', '.join(present)} there" if present else "no heads in that layer"
        raise UsageError(
            f"the head {layer}-{number} is to be protected, but the model has {has}; layers "
            "and heads count from 0"
        )
    kept = Counter(layer for layer, _ in protected)
    room = {at: size - min(size, max(kept[at], options.at_least)) for at, size in sizes.items()}
    if n_removed > (most := sum(room.values())):
        raise UsageError(
            f"{n_removed} heads cannot be removed: every layer keeps {options.at_least} "
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
