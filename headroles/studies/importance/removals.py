"""Heads that are removed together: which there are, gates without them, and what is lost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from headroles.errors import UsageError
from headroles.models.remaining_heads import Head
from headroles.models.surgery import heads_of
from headroles.role_names import find_role
from headroles.studies.classification.role_table import RoleTable
from headroles.studies.importance.options import AblateOptions
from headroles.studies.importance.shared_heads import SharedLayers
from headroles.tasks.outcomes import FloatArray
from headroles.tasks.running import DERIVATIVES, TaskRun


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


def rises_of(run: TaskRun, shared: SharedLayers | None = None) -> FloatArray:
    """Return (layers, heads): the rise of the mean loss without each head; NaN if removed.

    A head of ``shared`` layers is removed from its whole group, and stands in the first layer.
    """
    heads, gates = _single(run, shared)
    losses = run.outcomes(gates).losses.mean(0)
    rises = np.full(run.shape, np.nan)
    for place, head in enumerate(heads, start=1):
        rises[head] = losses[place] - losses[0]
    return rises


def _single(run: TaskRun, shared: SharedLayers | None = None) -> tuple[list[Head], torch.Tensor]:
    """Return the heads that `rises_of` removes, and gates: open ones, then those of each head."""
    heads = present_heads(run)
    sets = [[head] for head in heads]
    if shared is not None:
        heads = shared.units(heads)
        sets = [shared.spread([head]) for head in heads]
    return heads, without_each([[], *sets], run.shape)


def passes_to_choose(order: str, run: TaskRun, steps: int = 1) -> float:
    """Return how many passes over the examples of a run `choose_heads` takes."""
    if order == "ablation":
        return run.n_passes(_single(run)[1])
    return DERIVATIVES * {"importance": 1, "reestimated": steps}.get(order, 0)


def load_roles(folder: str, role: str | None = None) -> RoleTable:
    """Return the role table of a folder. Raises UsageError for a role that it does not have."""
    table = RoleTable.load(Path(folder))
    if role is not None:
        find_role(role, table.roles)
    return table


def heads_by_role(table: RoleTable, run: TaskRun) -> dict[str, list[Head]]:
    """Return the heads of each role that any head of the model has.

    Raises UsageError for roles of a model of another size.
    """
    check_roles(table, run)
    heads = set(present_heads(run))
    having = {role: [one for one in table.heads_with(role) if one in heads] for role in table.roles}
    return {role: own for role, own in having.items() if own}


def check_roles(table: RoleTable, run: TaskRun) -> None:
    """Raise UsageError for roles of a model of another size."""
    found = (int(table.frame["layer"].max()) + 1, int(table.frame["head"].max()) + 1)
    if found != run.shape:
        raise UsageError(
            f"the roles are of {found[0]} layers x {found[1]} heads, and the model has "
            f"{run.shape[0]} x {run.shape[1]}; take roles of this model or its origin"
        )


THIRDS = ("lower", "middle", "upper")


@dataclass(frozen=True)
class Removal:
    """Heads that are removed together, and what tables call them."""

    kind: str
    name: str
    heads: tuple[Head, ...]
    layer: int = -1
    head: int = -1


def removals_of(run: TaskRun, options: AblateOptions) -> list[Removal]:
    """Return the sets of heads that are removed, as asked for."""
    heads = present_heads(run)
    layers = sorted({layer for layer, _ in heads})
    of_layer = {layer: tuple(one for one in heads if one[0] == layer) for layer in layers}
    found: list[Removal] = []
    for kind in options.sets:
        if kind == "single":
            found += [Removal(kind, f"{one[0]}-{one[1]}", (one,), *one) for one in heads]
        elif kind == "others":
            for one in heads:
                rest = tuple(other for other in of_layer[one[0]] if other != one)
                if rest:
                    found.append(Removal(kind, f"layer {one[0]} but {one[1]}", rest, *one))
        elif kind == "layers":
            found += [
                Removal(kind, f"layer {layer}", own, layer) for layer, own in of_layer.items()
            ]
        elif kind == "thirds":
            for name, own in zip(
                THIRDS, np.array_split(np.arange(run.shape[0]), len(THIRDS)), strict=True
            ):
                third = tuple(head for head in heads if head[0] in own)
                if third:
                    found.append(Removal(kind, f"{name} third", third))
        else:
            having = heads_by_role(load_roles(str(options.roles_from)), run)
            found += [Removal(kind, role, tuple(sorted(own))) for role, own in having.items()]
    return found
