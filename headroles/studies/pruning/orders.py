"""Orders of removing heads: by importance, by layers, by role, at random."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
from headroles.studies.options import read_head
from headroles.studies.removals import RoleOptions, rises_of, sorted_by, without
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
    _check(n_removed, firsts, options)
    if order in BY_LAYER:
        ordered = _by_layer(order, n_removed, firsts, options)
    elif order == "random":
        ordered = _shuffled(firsts, options)
    elif order == "random_per_layer":
        turns: Counter[int] = Counter()  # one head of every layer, then another, and so on
        numbered = []
        for head in _shuffled(firsts, options):
            numbered.append((turns[head[0]], head))
            turns[head[0]] += 1
        ordered = [head for _, head in sorted(numbered, key=lambda pair: pair[0])]
    elif order in BY_ROLE:
        having = set(RoleTable.load(str(options.roles_from)).heads_with(str(options.role)))
        is_last = order == "without_role"
        ordered = sorted(_shuffled(firsts, options), key=lambda head: (head in having) == is_last)
    elif run is None:
        raise UsageError(f"the order {order} needs a task; name its file after the model")
    elif order == "ablation":
        ordered = sorted_by(rises_of(run, list(units.values())), firsts)
    else:
        steps = 1 if order == "importance" else min(options.steps, n_removed)
        ordered = _by_importance(run, n_removed, units, options, steps)
    return _walk(ordered, n_removed, firsts, options)


def _by_importance(
    run: TaskRun, n_removed: int, units: Units, options: SelectionOptions, steps: int
) -> list[Head]:
    """Return the least important heads, estimated again after each step."""
    removed: list[Head] = []
    for step in range(1, steps + 1):
        gates = without([head for first in removed for head in units[first]], run.shape)
        derivatives = _summed(run.derivatives(gates=gates), units)
        means = values_of(derivatives, options.estimator).mean(0).reshape(run.shape)
        left = [head for head in units if head not in removed]
        order = [*removed, *sorted_by(normalise(means, options.normalisation), left)]
        removed = _walk(order, round(n_removed * step / steps), list(units), options)
    return removed


def _summed(derivatives: Derivatives, units: Units) -> Derivatives:
    """Return the derivatives by gates that units share: sums over their layers.

    Sums by token are of absolute values, and so an upper bound.
    """
    layers = {unit[0][0]: [layer for layer, _ in unit] for unit in units.values() if len(unit) > 1}
    if not layers:
        return derivatives
    summed = {name: getattr(derivatives, name).copy() for name in ("by_gate", "by_token")}
    for first, group in layers.items():
        for values in summed.values():
            values[:, first] = values[:, group].sum(1)
    return replace(derivatives, **summed)


def _walk(
    order: Iterable[Head], n_removed: int, heads: Sequence[Head], options: SelectionOptions
) -> list[Head]:
    """Return the first ``n_removed`` heads of an order that may be removed."""
    left = Counter(layer for layer, _ in heads)
    chosen: list[Head] = []
    for head in order:
        if len(chosen) == n_removed:
            break
        if head not in (options.protect or ()) and left[head[0]] > options.at_least:
            left[head[0]] -= 1
            chosen.append(head)
    if len(chosen) < n_removed:
        raise UsageError(
            f"{n_removed} heads cannot be removed: protected heads, the heads that every layer "
            f"keeps ({options.at_least}) and the order leave {len(chosen)}; remove fewer"
        )
    return chosen


def _check(n_removed: int, heads: Sequence[Head], options: SelectionOptions) -> None:
    """Raise UsageError for protected heads that are not there, and for too many to remove."""
    protected = set(options.protect or ())
    for layer, number in sorted(protected.difference(heads)):
        present = [str(head) for at, head in heads if at == layer]
        has = f"the heads {', '.join(present)} there" if present else "no heads in that layer"
        raise UsageError(
            f"the head {layer}-{number} is to be protected, but the model has {has}; layers "
            "and heads count from 0"
        )
    sizes = Counter(layer for layer, _ in heads)
    free = Counter(head[0] for head in heads if head not in protected)
    most = sum(min(free[at], max(0, size - options.at_least)) for at, size in sizes.items())
    if n_removed > most:
        raise UsageError(
            f"{n_removed} heads cannot be removed: every layer keeps {options.at_least} "
            f"(`at_least`) and {len(protected)} are protected (`protect`), so that {most} of "
            f"{len(heads)} may go; keep at least {len(heads) - most}"
        )


def _by_layer(
    order: str, n_removed: int, heads: Sequence[Head], options: SelectionOptions
) -> list[Head]:
    """Return the heads of whole layers, shuffled within each layer."""
    sizes = Counter(layer for layer, _ in heads)
    n_layers = max(sizes) + 1
    shuffled = _shuffled(heads, options)
    for n_chosen in range(n_layers + 1):
        layers = choose_layers(order, n_layers, n_chosen)
        if sum(sizes[layer] for layer in layers) >= n_removed:
            break
    return [head for layer in layers for head in shuffled if head[0] == layer]


def choose_layers(order: str, n_layers: int, n_chosen: int) -> list[int]:
    """Return ``n_chosen`` layers in the order of their removal.

    ``bottom`` and ``top`` are the first and the last; ``middle`` starts at (L - k) // 2;
    ``both_ends`` are ceil(k / 2) from the bottom and floor(k / 2) from the top; no two of
    ``alternate`` are adjacent, so that they are half of all at most. Budhraja et al. (2020) name
    these strategies; the definitions are ours.

    Raises UsageError for more than half of the layers of ``alternate``.
    """
    layers, middle = list(range(n_layers)), (n_layers - 1) / 2
    if order in ("bottom", "top"):
        return layers[:: 1 if order == "bottom" else -1][:n_chosen]
    if order == "middle":
        start = (n_layers - n_chosen) // 2
        return sorted(layers[start : start + n_chosen], key=lambda layer: abs(layer - middle))
    if order == "both_ends":
        ends = [*layers[: -(-n_chosen // 2)], *layers[n_layers - n_chosen // 2 :]]
        return sorted(ends, key=lambda layer: min(layer, n_layers - 1 - layer))
    if n_chosen > n_layers // 2:
        raise UsageError(
            f"{n_chosen} of {n_layers} layers cannot be chosen so that no two are adjacent; remove "
            "half of the heads at most in the order alternate"
        )
    return layers[1::2][:n_chosen]


def _shuffled(heads: Sequence[Head], options: SelectionOptions) -> list[Head]:
    order = np.random.default_rng(options.seed).permutation(len(heads))
    return [heads[place] for place in order]
