"""Sets of heads that are removed together, gates without them, and the rise of the loss."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from headroles.arrays import FloatArray
from headroles.errors import UsageError
from headroles.models.heads.remaining import Head
from headroles.models.heads.surgery import heads_of
from headroles.studies.classification.role_table import RoleTable
from headroles.studies.importance.options import AblateOptions
from headroles.studies.importance.shared_heads import NOT_SHARED, SharedLayers
from headroles.tasks.running import DERIVATIVES, TaskRun
from headroles.wording import head_name

THIRDS = ("lower", "middle", "upper")


def present_heads(run: TaskRun) -> list[Head]:
    """Return the heads that a model has, by layer and number. Raises UsageError if it has none."""
    heads = heads_of(run.encoder.model)
    if not heads:
        raise UsageError(
            f"all heads of {run.encoder.description.model} are removed; take a model that has some"
        )
    return heads


def without(removed: Iterable[Head], shape: tuple[int, int]) -> torch.Tensor:
    """Return gates (layers, heads), closed for the removed heads."""
    gates = torch.ones(shape)
    for head in removed:
        gates[head] = 0
    return gates


def without_each(sets: Iterable[Iterable[Head]], shape: tuple[int, int]) -> torch.Tensor:
    """Return gates (sets, layers, heads): for each set of heads those of `without`."""
    return torch.stack([without(removed, shape) for removed in sets])


def sorted_by(values: FloatArray, heads: Sequence[Head]) -> list[Head]:
    """Return heads by values (layers, heads), the smallest first; ties by layer and number."""
    return sorted(heads, key=lambda head: (values[head], head))


def rises_of(run: TaskRun, shared: SharedLayers = NOT_SHARED) -> FloatArray:
    """Return (layers, heads): the rise of the mean loss without each head; NaN if removed.

    A head of ``shared`` layers is removed from its whole group, and stands in the first layer.
    """
    heads, gates = _single(run, shared)
    losses = run.outcomes(gates).losses.mean(0)
    rises = np.full(run.shape, np.nan)
    rises[tuple(zip(*heads, strict=True))] = losses[1:] - losses[0]
    return rises


def _single(run: TaskRun, shared: SharedLayers) -> tuple[list[Head], torch.Tensor]:
    """Return the heads that `rises_of` removes; open gates, followed by the gates without each."""
    heads = shared.units(present_heads(run))
    return heads, without_each([[], *(shared.spread([head]) for head in heads)], run.shape)


def passes_to_choose(order: str, run: TaskRun, steps: int = 1) -> float:
    """Return how many passes over the examples of a run `choose_heads` takes."""
    if order == "ablation":
        return run.n_passes(_single(run, NOT_SHARED)[1])
    return DERIVATIVES * {"importance": 1, "reestimated": steps}.get(order, 0)


def heads_by_role(table: RoleTable, run: TaskRun) -> dict[str, list[Head]]:
    """Return the heads of each role that any head of the model has.

    Raises UsageError for roles of a model of another size.
    """
    found = (int(table.frame["layer"].max()) + 1, int(table.frame["head"].max()) + 1)
    if found != run.shape:
        raise UsageError(
            f"the roles are of {found[0]} layers x {found[1]} heads, and the model has "
            f"{run.shape[0]} x {run.shape[1]}; take roles of this model or its origin"
        )
    heads = set(present_heads(run))
    having = {role: [one for one in table.heads_with(role) if one in heads] for role in table.roles}
    return {role: own for role, own in having.items() if own}


@dataclass(frozen=True)
class Removal:
    """Heads that are removed together, and their name in tables."""

    kind: str
    name: str
    heads: tuple[Head, ...]
    layer: int = -1
    head: int = -1


def removals_of(run: TaskRun, options: AblateOptions) -> list[Removal]:
    """Return the sets of heads to remove, kind by kind."""
    kinds = (_of_kind(kind, run, options) for kind in options.sets)
    return [removal for kind in kinds for removal in kind if removal.heads]


def _of_kind(kind: str, run: TaskRun, options: AblateOptions) -> Iterator[Removal]:
    """Yield the removals of a kind, of which some may have no heads."""
    heads = present_heads(run)
    layers = {at: tuple(head for head in heads if head[0] == at) for at, _ in heads}
    if kind == "single":
        for head in heads:
            yield Removal(kind, head_name(head), (head,), *head)
    elif kind == "others":
        for head in heads:
            rest = tuple(other for other in layers[head[0]] if other != head)
            yield Removal(kind, f"layer {head[0]} but {head[1]}", rest, *head)
    elif kind == "layers":
        for layer, own in layers.items():
            yield Removal(kind, f"layer {layer}", own, layer)
    elif kind == "thirds":
        thirds = np.array_split(np.arange(run.shape[0]), len(THIRDS))
        for name, third in zip(THIRDS, thirds, strict=True):
            own = tuple(head for head in heads if head[0] in third)
            yield Removal(kind, f"{name} third", own)
    else:
        for role, having in heads_by_role(RoleTable.load(str(options.roles_from)), run).items():
            yield Removal(kind, role, tuple(sorted(having)))
